"""numa-aware: pods with CPUs of their own go where these can be had as their, or the node's, NUMA policy wants them.

A node tells of its CPUs by a Numatopology object of its name. Only pods of the class Guaranteed have CPUs of their own, and
only containers that ask for whole ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cluster import objects
from scheduler.framework.plugin import MAX_NODE_SCORE, Event
from scheduler.framework.registry import plugin
from scheduler.model import numa
from scheduler.model.nodes import Block
from scheduler.model.numa import NONE, POLICY, STATIC, NumaInfo
from scheduler.model.resources import Ints, Mask
from scheduler.model.tasks import TaskClass, TaskInfo, TaskStatus
from scheduler.plugins.numa_aware.assignment import assign

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_OFF = ("", NONE)


@plugin
class NumaAware:
    """Filters nodes, prefers those where a pod's CPUs are on few NUMA nodes, and promises CPUs to pods.

    Argument: `weight` (1). A pod with a policy needs a node of the same one; a pod without is held to its node's.
    """

    name: ClassVar[str] = "numa-aware"
    _ssn: Session
    _free: dict[int, int]

    def __init__(self, arguments: Arguments) -> None:
        self._weight = arguments.integer("weight", 1)
        self._asks: dict[TaskClass, tuple[int, ...] | None] = {}
        self._given: dict[str, tuple[int, int]] = {}

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        self._free = _free_by_row(ssn)
        ssn.add_task_predicate(self.name, "numa_policy", self._suits, self._concerns, resolvable=False)
        ssn.add_task_predicate(self.name, "numa_cpus", self._fits, self._concerns, resolvable=False)
        if self._weight:
            ssn.add_task_score(self.name, self._score, lambda task: self._asked(task) is not None and _policy(task) not in _OFF)
        ssn.add_handlers(self._allocated, self._deallocated)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write: what a pod was promised is on its task."""

    # -- what a pod asks -----------------------------------------------------------------------------------------------

    def _asked(self, task: TaskInfo) -> tuple[int, ...] | None:
        """Whole CPUs of each container (0: none of its own); None for a pod that is not Guaranteed."""
        cls = task.cls
        if cls not in self._asks:
            self._asks[cls] = _containers(cls) if is_guaranteed(cls) else None
        return self._asks[cls]

    def _concerns(self, task: TaskInfo) -> bool:
        return self._asked(task) is not None and bool(self._free or _policy(task) not in _OFF)

    # -- what nodes offer ----------------------------------------------------------------------------------------------

    def _info(self, row: int) -> NumaInfo | None:
        return self._ssn.estate.numa.of_node.get(self._ssn.nodes.names[row])

    def _suits(self, task: TaskInfo, at: Block) -> Mask:
        """With a policy of its own: rows that have the same, manage CPUs one by one, and tell of some."""
        policy = _policy(task)
        if policy in _OFF:
            return np.ones(len(at), np.bool_)
        return np.array([
            (info := self._info(row)) is not None
            and info.cpu_manager == STATIC
            and info.topology_manager == policy
            and bool(self._free[row])
            for row in at.rows.tolist()
        ], np.bool_)  # fmt: skip

    def _fits(self, task: TaskInfo, at: Block) -> Mask:
        """Rows that can give the pod its CPUs, or leave CPUs to chance."""
        return np.array([not self._manages(row) or self._cpus(task, row) is not None for row in at.rows.tolist()], np.bool_)

    def _score(self, task: TaskInfo, at: Block) -> Ints:
        """100 less the part that a row's number of NUMA nodes is of the largest among the candidates, cut off."""
        counts = np.array([self._spread(task, row) for row in at.rows.tolist()], np.int64)
        most = int(counts.max(initial=0))
        scores: Ints = (MAX_NODE_SCORE - MAX_NODE_SCORE * counts // max(most, 1)) * self._weight
        return scores

    def _spread(self, task: TaskInfo, row: int) -> int:
        """On how many NUMA nodes of a row the pod's CPUs would be."""
        info, cpus = self._info(row), self._cpus(task, row)
        return sum(bool(cpus & of_node) for of_node in info.layout.numa_nodes.values()) if info is not None and cpus else 0

    def _manages(self, row: int) -> bool:
        """Whether the row's kubelet gives Guaranteed pods CPUs by a NUMA policy."""
        info = self._info(row)
        return info is not None and info.cpu_manager == STATIC and info.topology_manager not in _OFF

    def _cpus(self, task: TaskInfo, row: int) -> int | None:
        """The CPUs that the pod would get on a row now; None when it cannot have them there."""
        info, asked = self._info(row), self._asked(task)
        if info is None or asked is None:
            return None
        return assign(info.layout, info.topology_manager, self._free[row], info.reserved, asked)

    # -- what is given -------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        if event.tasks[0].status not in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED):
            return
        for task in event.tasks:
            info = self._info(task.node)
            if info is None or not self._manages(task.node) or not (cpus := self._cpus(task, task.node)):
                continue
            self._free[task.node] &= ~cpus
            self._given[task.uid] = (task.node, cpus)
            if task.status is TaskStatus.ALLOCATED:
                task.marks = {**task.marks, **numa.marks(info.layout, cpus)}

    def _deallocated(self, event: Event) -> None:
        for task in event.tasks:
            if task.uid in self._given:
                row, cpus = self._given.pop(task.uid)
                self._free[row] |= cpus


def _free_by_row(ssn: Session) -> dict[int, int]:
    """Free CPUs of every row that tells of its own, computed anew only for rows where something changed."""
    nodes = ssn.nodes
    position, known, found = ssn.memo.get(NumaAware.name, (-1, {}, {}))
    changed = nodes.changed_since(position) if position >= 0 else None
    moved: set[int] | None = None if changed is None else set(changed)
    infos = {nodes.index[name]: info for name, info in ssn.estate.numa.of_node.items() if name in nodes.index}
    free = {
        row: found[row] if moved is not None and row not in moved and known.get(row) is info else info.free(_promised(ssn, row))
        for row, info in infos.items()
    }
    ssn.memo[NumaAware.name] = (nodes.position, infos, free)
    return free


def _promised(ssn: Session, row: int) -> dict[str, tuple[str, int]]:
    """What pods on a row were promised, by uid: their key and their CPUs."""
    tasks: Iterable[TaskInfo] = ssn.nodes.tasks[row].values()
    return {
        task.uid: (task.key, cpus)
        for task in tasks
        if (cpus := numa.promised(task.marks) or numa.promised(objects.annotations(task.pod)))
    }


def _policy(task: TaskInfo) -> str:
    return objects.annotations(task.pod).get(POLICY) or ""


def _containers(cls: TaskClass) -> tuple[int, ...]:
    """Whole CPUs of each container; 0 where it asks for none or for a fraction."""
    asked = [objects.container_requests(container).get("cpu", 0) for container in cls.spec.get("containers") or ()]
    return tuple(milli // 1000 if milli % 1000 == 0 else 0 for milli in asked)


def is_guaranteed(cls: TaskClass) -> bool:
    """Kubernetes's class of service: every container asks for cpu and memory, exactly as much as it is limited to."""
    containers = [*(cls.spec.get("containers") or ()), *(cls.spec.get("initContainers") or ())]
    return bool(containers) and all(map(_is_exact, containers))


def _is_exact(container: object) -> bool:
    assert isinstance(container, dict)
    limits = objects.resource_units((container.get("resources") or {}).get("limits"))
    requests = objects.container_requests(container)
    return all(limits.get(name) and requests.get(name) == limits[name] for name in ("cpu", "memory"))
