"""A session: one cycle's view of the model, with what plugins registered and the rules by which their answers combine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from random import Random
from time import perf_counter
from typing import Any

from cluster import objects
from scheduler.conf import Configuration, PluginOption
from scheduler.framework import registry
from scheduler.framework.explain import Verdict
from scheduler.framework.heap import Heap
from scheduler.framework.namespaces import ByNamespace
from scheduler.framework.parts import PartRules
from scheduler.framework.plugin import UNLIMITED, Event, Plugin, Vote
from scheduler.framework.record import QueueShare
from scheduler.framework.registrations import SWITCH_OF, Registrations
from scheduler.framework.statement import Cause, Statement
from scheduler.framework.turns import Turns, turns
from scheduler.framework.victims import VictimRules
from scheduler.framework.view import View
from scheduler.model.jobs import JobInfo
from scheduler.model.nodelocks import NodeLock
from scheduler.model.queues import QueueInfo
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.placement.standing import Evaluator


class Session(Registrations):
    """One cycle over a `View` (a job whose queue is unknown is not in it).

    `total` is the sum of all nodes' allocatable; `now` the instant of opening, `random` the only source of chance; `only` are
    the jobs (uids) that are served, None for all. `schedulable` are the pods (uids) that had room, but whose gang was not
    complete; `leftovers` say of jobs that start why some of their tasks do not; `released` are tasks that their queue let
    through its gate; `locks` are those that binds need, by pod uid; `beyond_request` is what queues hold more than their pods
    ask, in milli-units. `moves` counts how often tasks got or lost a node: what only they can change holds as long as it
    stands still. `asked` and `served` are the jobs whose turn it was to be admitted and to be given nodes, in the order of
    their turns.
    """

    def __init__(
        self,
        uid: str,
        conf: Configuration,
        view: View,
        *,
        now: float,
        random: Random,
        only: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        self.uid, self.conf, self.now, self.random, self.only = uid, conf, now, random, only
        self.stamp = objects.stamp(now)
        self.dims, self.nodes, self.jobs, self.queues = view.dims, view.nodes, view.jobs, view.queues
        self.roster, self.places, self.classes, self.estate = view.roster, view.places, view.classes, view.estate
        self.namespaces, self.budgets, self.quotas = view.namespaces, view.budgets, view.quotas
        self.device_configs, self.usage, self.post, self.memo = view.device_configs, view.usage, view.post, view.memo
        self.total = view.nodes.total()
        self.moves = 0
        self.queue_shares: dict[str, QueueShare] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.leftovers: dict[str, Verdict] = {}
        self.statements: dict[int, Statement] = {}
        self.binds: list[TaskInfo] = []
        self.released: list[TaskInfo] = []
        self.locks: dict[str, NodeLock] = {}
        self.beyond_request: dict[str, Counter[str]] = {}
        self.evictions: list[tuple[TaskInfo, Cause]] = []
        self.admitted: dict[str, JobInfo] = {}
        self.schedulable: set[str] = set()
        self.considered = 0
        self.asked: list[str] = []
        self.served: list[str] = []
        self.opened: dict[str, float] = {}
        self.closed: dict[str, float] = {}
        self._plugins: list[Plugin] = []
        self._tiers: dict[str, list[list[Any]]] = {}
        self._flat: dict[str, list[Any]] = {}

    # -- opening and closing -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the plugins, tier by tier, and let them register."""
        for option in self.conf.plugins():
            self._plugins.append(registry.plugins[option.name](option.arguments))
        for plugin in self._plugins:
            begin = perf_counter()
            self.opening = plugin.name
            plugin.on_session_open(self)
            self.opened[plugin.name] = (perf_counter() - begin) * 1000
        self._tiers = {family: [[item for _, item in tier] for tier in self.named(family)] for family in SWITCH_OF}
        self._flat = {family: [item for tier in tiers for item in tier] for family, tiers in self._tiers.items()}
        self.evaluator = Evaluator(self)
        self.parts = PartRules(self)
        self.victims = VictimRules(self)

    def active(self) -> list[JobInfo]:
        """The jobs for which something may be to do: all but those that started and have nothing pending."""
        return list(self.roster.active.values())

    def contenders(self) -> list[JobInfo]:
        """The active jobs that this session serves: all of them, unless it is a trial of some, for which others stand still."""
        return [job for job in self.roster.active.values() if self.only is None or job.uid in self.only]

    def bind(self, tasks: Sequence[TaskInfo]) -> None:
        """Hand tasks of one job, which have their node, to the binder."""
        self.binds.extend(tasks)
        job = tasks[0].job
        if job is not None:
            job.version += 1

    def refuse(self, job: JobInfo, verdict: Verdict) -> None:
        """Note why a job does not start in this cycle."""
        self.verdicts[job.uid] = verdict

    def admit(self, job: JobInfo) -> None:
        """Let a job into its queue: its pods may be made, and ask for nodes."""
        job.phase, job.admitted_at = "Inqueue", self.now
        job.touch()
        self.verdicts.pop(job.uid, None)
        self.admitted[job.uid] = job

    def close(self) -> None:
        """Let the plugins write what they have to say."""
        for plugin in self._plugins:
            begin = perf_counter()
            plugin.on_session_close(self)
            self.closed[plugin.name] = (perf_counter() - begin) * 1000

    def undo(self) -> None:
        """Take back every reservation that was not committed; evicted pods count in their nodes' lists until they go."""
        for statement in list(self.statements.values()):
            statement.discard()
        self.nodes.relist([task for task, _ in self.evictions])

    def named(self, family: str) -> Iterator[list[tuple[str, Any]]]:
        """Enabled functions of a family with their plugins' names, tier by tier."""
        by_plugin, switch = self._by_family[family], SWITCH_OF[family]
        for tier in self.conf.tiers:
            items = [(option.name, item) for option in tier if _on(option, switch) for item in by_plugin.get(option.name, ())]
            if items:
                yield items

    def is_hierarchical(self, plugin: str) -> bool:
        """Whether a plugin's `enableHierarchy` is on."""
        return self.is_on(plugin, "enableHierarchy")

    def is_on(self, plugin: str, switch: str) -> bool:
        """Whether a switch of a plugin is on."""
        return any(option.name == plugin and option.on(switch) for option in self.conf.plugins())

    def functions(self, family: str) -> list[Any]:
        """All enabled functions of a family, in tier order."""
        return self._flat[family]

    # -- orders --------------------------------------------------------------------------------------------------------

    def job_key(self, job: JobInfo) -> tuple[Any, ...]:
        """Where a job stands among the jobs of its queue; ends with creation and uid."""
        return (*[key(job) for key in self._flat["job_order"]], job.creation, job.uid)

    def job_turns(self, jobs: Iterable[JobInfo]) -> Heap[JobInfo] | ByNamespace:
        """Jobs of one queue in their order, their namespaces taking turns where a plugin says so."""
        orders = self.functions("namespace_order")
        if not orders:
            return Heap(self.job_key, jobs)
        return ByNamespace(lambda name: (*(key(name) for key in orders), name), self.job_key, jobs)

    def queue_key(self, queue: QueueInfo) -> tuple[Any, ...]:
        """Where a queue stands among queues; ends with creation and name."""
        return (*(key(queue) for tier in self._tiers["queue_order"] for key in tier), queue.creation, queue.name)

    def turns(self, queues: Iterable[QueueInfo]) -> Turns:
        """Queues that take turns: what is popped is first now, and may be pushed again."""
        return turns(self.functions("queue_order"), lambda queue: (queue.creation, queue.name), queues)

    def task_key(self, task: TaskInfo) -> tuple[Any, ...]:
        """Where a task stands in its job; ends with the index in its role, creation, name and uid."""
        keys = (key(task) for tier in self._tiers["task_order"] for key in tier)
        return (*keys, task.index, task.creation, task.name, task.uid)

    # -- queues and admission ------------------------------------------------------------------------------------------

    def overused(self, queue: QueueInfo) -> Verdict | None:
        """The first verdict that drops the queue for this cycle."""
        for check in self._flat["overused"]:
            if (verdict := check(queue)) is not None:
                found: Verdict = verdict
                return found
        return None

    def room(self, queue: QueueInfo, cls: TaskClass) -> int:
        """How many more tasks of the class the queue takes: the least that any plugin says."""
        rooms: list[int] = [item.room(queue, cls) for item in self._flat["allocatable"]]
        return min(rooms, default=UNLIMITED)

    def room_refusal(self, queue: QueueInfo, cls: TaskClass) -> Verdict | None:
        """Why the queue takes no task of the class."""
        for item in self.functions("allocatable"):
            if item.room(queue, cls) <= 0:
                verdict: Verdict = item.explain(queue, cls)
                return verdict
        return None

    def open_gate(self, queue: QueueInfo, task: TaskInfo) -> bool:
        """Let a task that its queue's gate holds through, if all limits allow; it is looked at once the gate is off."""
        limits = self._flat["allocatable"]
        if any(item.room(queue, task.cls) <= 0 for item in limits if item.gate is None):
            return False
        if not all(item.gate(queue, task) for item in limits if item.gate is not None):
            return False
        self.released.append(task)
        return True

    def pre_predicate(self, task: TaskInfo) -> Verdict | None:
        """The first verdict that keeps a task off every node."""
        for check in self._flat["pre_predicate"]:
            if (verdict := check(task)) is not None:
                found: Verdict = verdict
                return found
        return None

    def preemptive(self, queue: QueueInfo, tasks: Sequence[TaskInfo]) -> bool:
        """Whether the queue may take from others for all of some tasks: all agree, or nobody is asked."""
        return all(check(queue, tasks) for check in self.functions("preemptive"))

    def enqueueable(self, job: JobInfo) -> Verdict | None:
        """None: admit. Any refusal refuses; the first tier with a permit decides and ends the asking."""
        for tier in self._tiers["enqueueable"]:
            answers = [check(job) for check in tier]
            if refusal := next((answer for answer in answers if isinstance(answer, Verdict)), None):
                return refusal
            if Vote.PERMIT in answers:
                return None
        return None

    def enqueued(self, job: JobInfo) -> None:
        """Tell everybody that the job was admitted."""
        for note in self.functions("enqueued"):
            note(job)

    # -- gangs ---------------------------------------------------------------------------------------------------------

    def job_valid(self, job: JobInfo) -> Verdict | None:
        """The first verdict that keeps the job out."""
        return _first(check(job) for tier in self._tiers["job_valid"] for check in tier)

    def job_ready(self, job: JobInfo) -> bool:
        """All agree, or nobody is asked."""
        for item in self._flat["job_ready"]:  # noqa: SIM110 - asked so often that a generator would be felt
            if not item.check(job):
                return False
        return True

    def job_runs(self, job: JobInfo) -> bool:
        """Whether a job is ready by holding something: one that needs nothing is ready before it starts."""
        return job.ready_count() > 0 and self.job_ready(job)

    def lacking(self, job: JobInfo) -> int:
        """At least so many more tasks, and at least one, must be allocated before the job can be ready."""
        least = 1
        for item in self._flat["job_ready"]:
            if item.lacking is not None:
                least = max(least, item.lacking(job))
        return least

    def job_pipelined(self, job: JobInfo) -> bool:
        """Any rejection refuses; the first tier with a permit decides; nobody objecting is enough."""
        for tier in self._tiers["job_pipelined"]:
            votes = [check(job) for check in tier]
            if Vote.REJECT in votes:
                return False
            if Vote.PERMIT in votes:
                return True
        return True

    def job_starving(self, job: JobInfo) -> bool:
        """The first tier that registers anything: all agree. Nobody: not starving."""
        for tier in self._tiers["job_starving"]:
            return all(check(job) for check in tier)
        return False

    # -- events --------------------------------------------------------------------------------------------------------

    def allocated(self, event: Event) -> None:
        """Tell handlers of tasks that got a node."""
        self.moves += 1
        for handler in self._on_allocate:
            handler(event)

    def deallocated(self, event: Event) -> None:
        """Tell handlers of tasks that lost their node."""
        self.moves += 1
        for handler in self._on_deallocate:
            handler(event)


def _on(option: PluginOption, switch: str | None) -> bool:
    return switch is None or option.on(switch)


def _first(answers: Iterator[Verdict | None]) -> Verdict | None:
    return next((answer for answer in answers if answer is not None), None)
