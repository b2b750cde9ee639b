"""Cycles over a model of a cluster, after some changes, that leave no trace in it.

The model is a `SchedulerCache` that nobody else schedules by. Changes are watch events, as a cluster would tell of them;
what was there before is noted, and put back when the cycles are over, together with what these decided. So a question
costs the cycles that it needs and not a copy of the cluster. If anything fails on the way, the model counts as broken
(`is_broken`), and its owner makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from cluster import objects
from cluster.kinds import NODE, POD, POD_GROUP, QUEUE, Kind
from cluster.port import Binding, Obj, WatchEvent
from scheduler.cache import SchedulerCache
from scheduler.cache.pods import Held
from scheduler.conf import Configuration
from scheduler.cycle import Cycle, run_cycle
from scheduler.framework.explain import Verdict
from scheduler.framework.record import EvictionRecord, QueueShare
from scheduler.model.tasks import TaskStatus
from scheduler.whatif.quiet import Quiet

PodsOf = Callable[[str], Iterable[Obj]]
"""The pods that a controller makes once a job (`namespace/name` of its PodGroup) was admitted."""
CYCLES = 4
"""Cycles after which a question is answered in any case: admitted, made room for, placed, and one more."""


@dataclass(slots=True)
class Played:
    """What some cycles decided, jobs by `namespace/name` of their PodGroups. `binds` are by job, in order.

    `line` is the order in which the first cycle served the jobs; `verdicts` and `shares` are those of the last.
    `cycles` is how many were run, and `settled` whether the last one decided nothing any more.
    """

    binds: dict[str, list[Binding]] = field(default_factory=dict)
    evictions: list[EvictionRecord] = field(default_factory=list)
    admitted: set[str] = field(default_factory=set)
    line: list[str] = field(default_factory=list)
    verdicts: dict[str, Verdict | None] = field(default_factory=dict)
    shares: dict[str, QueueShare] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    cycles: int = 0
    settled: bool = False

    def is_quiet(self) -> bool:
        """Whether nothing happened at all: nobody was admitted, placed or evicted."""
        return not (self.binds or self.evictions or self.admitted)


class Sandbox:
    """Plays changes over a cache. `now` is the cluster's time; `pods_of` makes pods of jobs that are admitted.

    With the extender plugin on, the cache's `post` must be None: other programs might take a question for a decision.
    """

    def __init__(self, cache: SchedulerCache, conf: Configuration, *, now: float, pods_of: PodsOf = lambda uid: ()) -> None:
        self.cache, self.conf, self.now = cache, conf, now
        self.is_broken = False
        self.runs = 0
        self._pods_of = pods_of
        self._undo: list[WatchEvent] = []
        self._held: dict[str, Held] = {}

    def play(
        self,
        changes: Sequence[WatchEvent] = (),
        *,
        cycles: int = CYCLES,
        only: Collection[str] | None = None,
        until: str = "",
        extra: PodsOf | None = None,
    ) -> Played:
        """Make the changes, run cycles until one decides nothing, and put everything back.

        `only` some jobs are served, the others stand still; it ends early once the job `until` has started. `extra` makes
        the pods of jobs that come with the changes.
        """
        found = Played()
        with self._kept():
            for event in changes:
                self._change(event)
            for number in range(cycles):
                done = run_cycle(
                    self.cache, self.conf, Quiet(), number + 1,
                    now=self.now + number, random=Random(0), only=only,  # noqa: S311 - ties and samples, nothing secret
                )  # fmt: skip
                self.runs += 1
                admitted = self._gather(found, done)
                found.settled = not (done.binds or done.evictions or admitted)
                if found.settled or until in found.started or number + 1 == cycles:
                    break
                self._take_in(done, admitted, extra or self._pods_of)
        return found

    def _gather(self, found: Played, done: Cycle) -> set[str]:
        """Add a cycle's decisions; who was admitted in it."""
        found.cycles += 1
        found.line = found.line or done.line
        found.verdicts, found.shares = done.record.verdicts, done.record.queues
        found.evictions += done.record.evictions
        for binding in done.binds:
            job = self.cache.tasks[binding.uid].job
            if job is not None:
                found.binds.setdefault(job.uid, []).append(binding)
                if job.ready_count() + job.pending_best_effort() >= job.min_available:
                    found.started.add(job.uid)
        admitted = {job.uid for job in self.cache.jobs.values() if job.admitted_at == self.now + found.cycles - 1}
        found.admitted |= admitted
        return admitted

    def _take_in(self, done: Cycle, admitted: Iterable[str], pods_of: PodsOf) -> None:
        """What the cluster does before the next cycle: evicted pods go, pods of admitted jobs are made."""
        for eviction in done.evictions:
            task = self.cache.tasks.get(eviction.uid)
            if task is not None:
                self._change(WatchEvent("DELETED", POD, dict(task.pod)))
        for uid in sorted(admitted):
            for pod in pods_of(uid):
                if objects.uid(pod) not in self.cache.tasks:
                    self._change(WatchEvent("ADDED", POD, pod))

    # -- as it was before ----------------------------------------------------------------------------------------------

    @contextmanager
    def _kept(self) -> Iterator[None]:
        before = {uid: (job.phase, job.admitted_at) for uid, job in self.cache.jobs.items()}
        moved = {TaskStatus.BINDING: self.cache.bind_failed, TaskStatus.RELEASING: self.cache.evict_failed}
        self.cache.memo.pop("spared", None)
        self.is_broken = True
        yield
        for task in list(self.cache.tasks.values()):
            if task.status in moved:
                moved[task.status](task.uid)
        while self._undo:
            self.cache.apply(self._undo.pop())
        self.cache.hand_back(self._held)
        self._held.clear()
        for uid, (phase, admitted_at) in before.items():
            job = self.cache.jobs[uid]
            if (job.phase, job.admitted_at) != (phase, admitted_at):
                job.phase, job.admitted_at = phase, admitted_at
                job.touch()
        self.cache.memo.pop("spared", None)
        self.is_broken = False

    def _change(self, event: WatchEvent) -> None:
        """Take an event in, and note how it is taken back."""
        assert event.kind is not None
        if event.kind == POD and (task := self.cache.tasks.get(objects.uid(event.object))) is not None:
            self._held.setdefault(task.uid, (task.gpus, task.cards))
        before = self._there(event.kind, event.object)
        self._undo.append(
            WatchEvent("DELETED", event.kind, event.object) if before is None else WatchEvent("ADDED", event.kind, before)
        )
        self.cache.apply(event)

    def _there(self, kind: Kind, obj: Obj) -> Obj | None:
        """The object as the model has it, None where it has none."""
        cache, name = self.cache, objects.name(obj)
        if kind == POD:
            task = cache.tasks.get(objects.uid(obj))
            return dict(task.pod) if task is not None else None
        if kind == POD_GROUP:
            job = cache.jobs.get(objects.key(obj))
            return dict(job.obj) if job is not None and job.obj else None
        if kind == QUEUE:
            queue = cache.queues.get(name)
            return dict(queue.obj) if queue is not None else None
        if kind == NODE:
            row = cache.nodes.index.get(name)
            return dict(cache.nodes.objects[row]) if row is not None else None
        raise ValueError(f"a trial cannot change a {kind.kind}")
