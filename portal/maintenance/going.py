"""Who leaves when nodes are drained: the pods on them, and what their jobs do about it. Asked of a copy of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cluster import objects
from cluster.embedded.disruption import standing
from cluster.leaving import Stay, has_local_data, is_bare, why_stays
from cluster.port import Obj
from jobs import disrupted
from jobs.disrupted import Disruption
from portal.unblock.copy import View
from scheduler.model.tasks import TaskInfo


@dataclass(frozen=True, slots=True)
class Leaver:
    """One pod of a node: `stay` says why it stays where it does, `group` is the key of its PodGroup, empty for none."""

    pod: Obj
    node: str
    group: str
    stay: Stay | None
    gpus: int
    foreign: str

    @property
    def is_bare(self) -> bool:
        """Whether it is gone for good."""
        return self.stay is None and is_bare(self.pod)

    @property
    def has_local_data(self) -> bool:
        """Whether what it keeps on the node goes with it."""
        return self.stay is None and has_local_data(self.pod)


@dataclass(slots=True)
class Gang:
    """Pods of one PodGroup that are evicted; `disruption` is None where no Job of ours is behind it. `pods` are all it has."""

    key: str
    job: Obj | None
    pods: list[Obj]
    evicted: set[str] = field(default_factory=set)
    disruption: Disruption | None = None

    @property
    def leaving(self) -> Collection[str]:
        """Uids of the pods that leave in all."""
        return self.disruption.leaving if self.disruption is not None else self.evicted

    def is_made_again(self, pod: Obj) -> bool:
        """Whether somebody makes a pod of it again that left."""
        return self.disruption.again if self.disruption is not None else not is_bare(pod)


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget that has a say: of its pods so many go, and so many may at once, now."""

    key: str
    pods: int
    allowed: int

    @property
    def blocks(self) -> bool:
        """Whether it keeps some of them, at least for a while."""
        return self.allowed < self.pods


@dataclass(slots=True)
class Going:
    """Everybody on some nodes, the gangs that lose pods by the keys of their PodGroups, and the budgets that have a say.

    `several` are pods that more than one budget is about: the Eviction API refuses those whatever the budgets allow.
    """

    pods: list[Leaver] = field(default_factory=list)
    gangs: dict[str, Gang] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)
    several: set[str] = field(default_factory=set)

    @property
    def evicted(self) -> list[Leaver]:
        """Those that have to go."""
        return [each for each in self.pods if each.stay is None]


def look(view: View, nodes: Collection[str], removed: Collection[str] = ()) -> Going:
    """Who leaves; of nodes that are `removed` everybody does that has not ended. The copy must be held still."""
    found = Going()
    for task in sorted(view.cache.tasks.values(), key=lambda task: task.key):
        node = str((task.pod.get("spec") or {}).get("nodeName") or "")
        if node in nodes or node in removed:
            stay = why_stays(dict(task.pod))
            found.pods.append(_leaver(view, task, node, None if node in removed and stay is not Stay.ENDED else stay))
    for each in found.evicted:
        if each.group:
            gang = found.gangs.get(each.group) or found.gangs.setdefault(each.group, _gang(view, each.group))
            gang.evicted.add(objects.uid(each.pod))
    for gang in found.gangs.values():
        if gang.job is not None:
            gang.disruption = disrupted.of(gang.job, gang.pods, gang.evicted)
    _ask_budgets(view, found)
    return found


def _leaver(view: View, task: TaskInfo, node: str, stay: Stay | None) -> Leaver:
    pod = dict(task.pod)
    scheduler = str(pod["spec"].get("schedulerName") or "")
    ours = scheduler in view.cache.scheduler_names
    return Leaver(pod, node, _group(task), stay, objects.gpu_count(objects.pod_requests(pod["spec"])), "" if ours else scheduler)


def _group(task: TaskInfo) -> str:
    return task.job.uid if task.job is not None and task.job.obj else ""


def _gang(view: View, key: str) -> Gang:
    return Gang(key, view.job_of(key), [dict(task.pod) for task in view.cache.jobs[key].tasks.values()])


def _ask_budgets(view: View, found: Going) -> None:
    budgets = list(view.cache.budgets.values())
    if not budgets:
        return
    everybody = [dict(task.pod) for task in view.cache.tasks.values()]
    named: dict[str, int] = {}
    for budget in sorted(budgets, key=objects.key):
        pods = [each.pod for each in found.evicted if _covers(budget, each.pod)]
        if not pods:
            continue
        for pod in pods:
            named[objects.uid(pod)] = named.get(objects.uid(pod), 0) + 1
        running = sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)  # others go unasked
        found.budgets.append(Budget(objects.key(budget), running, _allowed(budget, everybody)))
    found.several = {uid for uid, count in named.items() if count > 1}


def _allowed(budget: Obj, everybody: list[Obj]) -> int:
    """Disruptions that are allowed now: as the budget's controller says, or where there is none as it would."""
    said = (budget.get("status") or {}).get("disruptionsAllowed")
    if isinstance(said, int):
        return said
    healthy, needed = standing(budget, list(_members(budget, everybody)))
    return max(healthy - needed, 0)


def _members(budget: Obj, pods: list[Obj]) -> Iterator[Obj]:
    return (pod for pod in pods if _covers(budget, pod))


def _covers(budget: Obj, pod: Obj) -> bool:
    same = objects.namespace(budget) == objects.namespace(pod)
    return same and objects.matches_selector((budget.get("spec") or {}).get("selector"), objects.labels(pod))
