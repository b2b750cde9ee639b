"""Jobs (PodGroups) with the arithmetic of gangs. In the scheduler a job is one PodGroup with its pods, which are its tasks.

Counts are kept as tasks change status, so every question here is O(roles) at most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.model.resources import Amounts, Ints, positive, widened
from scheduler.model.tasks import ALLOCATED_SET, READY_SET, TaskClass, TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.framework.explain import Verdict
    from scheduler.model.subjobs import Parts, SubJob

PODS_DUE = 5.0
"""Seconds from a job's admission until its pods should exist."""


_REQUESTED = ALLOCATED_SET | {TaskStatus.PENDING}
_IS_READY = tuple(int(status in READY_SET) for status in TaskStatus)


@dataclass(slots=True, eq=False)
class JobInfo:
    """One PodGroup with its pods; uid is `namespace/name`.

    `allocated` is Σ request over tasks in {Allocated, Binding, Bound, Running}; `requested` is that plus Σ request of
    Pending tasks. `phase` is the PodGroup's phase as this session sees it; `sent` the status that is on its way to the
    cluster; `version` moves with every change of the PodGroup and of its pods; `admitted_at` is when this scheduler let
    it into its queue. `impossible` is set at the opening of a
    session when so many pods are larger than any node that the gang can never start; such a job is charged nothing.
    `parts` are the sub-jobs of a gang with sub-group policies or a network topology; None for a plain gang.
    `nominated` are the pending tasks for which an eviction made room on a node.
    Whoever sets a field from outside says so by `touch`; `touched` is where (`Roster`), None for a job on its own.
    """

    uid: str
    namespace: str
    name: str
    queue: str
    width: int = field(repr=False)
    min_available: int = 0
    role_min: dict[str, int] = field(default_factory=dict)
    min_resources: Amounts | None = None
    priority: int = 0
    creation: float = 0.0
    phase: str = "Pending"
    sent: Mapping[str, Any] | None = field(default=None, repr=False)
    version: int = 0
    admitted_at: float = 0.0
    annotations: Mapping[str, str] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    obj: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tasks: dict[str, TaskInfo] = field(default_factory=dict, repr=False)
    by_status: list[dict[str, TaskInfo]] = field(default_factory=lambda: [{} for _ in TaskStatus], repr=False)
    allocated: Ints = field(init=False, repr=False)
    requested: Ints = field(init=False, repr=False)
    impossible: Verdict | None = None
    parts: Parts | None = field(default=None, repr=False)
    nominated: dict[str, TaskInfo] = field(default_factory=dict, repr=False)
    _roles: dict[str, list[int]] = field(default_factory=dict, repr=False)
    _pending_best_effort: dict[str, int] = field(default_factory=dict, repr=False)
    _best_effort: int = 0
    _ready: int = 0
    _gated: dict[str, TaskInfo] = field(default_factory=dict, repr=False)
    touched: dict[JobInfo, None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.allocated = np.zeros(self.width, np.int64)
        self.requested = np.zeros(self.width, np.int64)

    def touch(self) -> None:
        """Note that something about the job changed: everything that sessions keep of it is looked at again."""
        if self.touched is not None:
            self.touched[self] = None

    # -- membership and status -------------------------------------------------------------------------------------

    def add(self, task: TaskInfo) -> None:
        """Take a task in, counted by its status."""
        self.touch()
        task.job = self
        self.version += 1
        self.tasks[task.uid] = task
        self._enter(task, task.status)
        self._book(task.cls, task.status, 1)
        if self.parts is not None:
            self.parts.add(task)

    def remove(self, task: TaskInfo) -> None:
        """Let a task go; it belongs to no job then."""
        self.touch()
        if self.parts is not None:
            self.parts.remove(task)
        self._leave(task)
        self._book(task.cls, task.status, -1)
        del self.tasks[task.uid]
        self.version += 1
        task.job = None

    def move(self, tasks: Sequence[TaskInfo], status: TaskStatus) -> None:
        """Give tasks of one class and one status another status."""
        if not tasks:
            return
        cls, old = tasks[0].cls, tasks[0].status
        self.touch()
        for task in tasks:
            self._leave(task)
            task.status = status
            self._enter(task, status)
        if self.parts is not None:
            self.parts.moved(tasks, old)
        # What is neither in nor out of the sums before and after is not touched: every bind passes here twice.
        if held := (status in ALLOCATED_SET) - (old in ALLOCATED_SET):
            self.allocated += cls.request * (held * len(tasks))
        if wanted := (status in _REQUESTED) - (old in _REQUESTED):
            self.requested += cls.request * (wanted * len(tasks))

    def _leave(self, task: TaskInfo) -> None:
        status = task.status
        del self.by_status[status][task.uid]
        self._ready -= _IS_READY[status]
        self._roles[task.role][status] -= 1
        if status is TaskStatus.PENDING and task.cls.best_effort:
            self._pending_best_effort[task.role] -= 1
            self._best_effort -= 1
        self._gated.pop(task.uid, None)
        if self.nominated:
            self.nominated.pop(task.uid, None)

    def _enter(self, task: TaskInfo, status: TaskStatus) -> None:
        self.by_status[status][task.uid] = task
        self._ready += _IS_READY[status]
        role = self._roles.get(task.role)
        if role is None:
            role = self._roles[task.role] = [0] * len(TaskStatus)
            self._pending_best_effort[task.role] = 0
        role[status] += 1
        if status is TaskStatus.PENDING and task.cls.best_effort:
            self._pending_best_effort[task.role] += 1
            self._best_effort += 1
        if task.gated and status is TaskStatus.PENDING:
            self._gated[task.uid] = task
        if task.nominated and status is TaskStatus.PENDING:
            self.nominated[task.uid] = task

    def _book(self, cls: TaskClass, status: TaskStatus, times: int) -> None:
        if status in ALLOCATED_SET:
            self.allocated += cls.request * times
        if status in _REQUESTED:
            self.requested += cls.request * times

    def divide(self, parts: Parts | None) -> None:
        """Take other parts over; equal ones stay as they are."""
        if parts != self.parts:
            self.parts = parts
            for task in self.tasks.values():
                task.sub = None
                if parts is not None:
                    parts.add(task)

    def widen(self, width: int) -> None:
        """Follow a grown dimension table."""
        self.width = width
        self.allocated, self.requested = widened(self.allocated, width), widened(self.requested, width)
        if self.min_resources is not None:
            self.min_resources.widen(width)

    def is_fresh(self, now: float) -> bool:
        """Whether the job was admitted so lately that its pods may just be being made."""
        return now < self.admitted_at + PODS_DUE

    # -- gang arithmetic -------------------------------------------------------------------------------------------

    def count(self, status: TaskStatus) -> int:
        """Tasks in a status."""
        return len(self.by_status[status])

    def ready_count(self) -> int:
        """Tasks that hold, or held to their good end, a node of their own."""
        return self._ready

    def waiting_count(self) -> int:
        """Pipelined tasks."""
        return len(self.by_status[TaskStatus.PIPELINED])

    def pending_best_effort(self) -> int:
        """Pending tasks that ask for nothing; they count as ready, since backfill places them."""
        return self._best_effort

    def is_ready(self) -> bool:
        """The gang may be bound (role minimums apart)."""
        return self.ready_count() + self.pending_best_effort() >= self.min_available

    def is_pipelined(self) -> bool:
        """The gang would be ready once what is being released is free."""
        return self.waiting_count() + self.ready_count() + self.pending_best_effort() >= self.min_available

    def is_starving(self) -> bool:
        """The gang lacks tasks that hold or wait for a node (tasks that ask nothing do not count)."""
        return self.waiting_count() + self.ready_count() < self.min_available

    def roles_ready(self, *, pipelined: bool = False) -> bool:
        """Every role has its minimum; not asked at all when the gang's minimum is below the sum of theirs."""
        if self.role_min_counts():
            return all(self._role_count(role, pipelined) >= least for role, least in self.role_min.items())
        return True

    def role_min_counts(self) -> bool:
        """Whether role minimums are to be kept: the gang's minimum is not below their sum."""
        return bool(self.role_min) and self.min_available >= sum(self.role_min.values())

    def _role_count(self, role: str, pipelined: bool) -> int:
        counts = self._roles.get(role)
        if counts is None:
            return 0
        ready = sum(counts[status] for status in READY_SET) + self._pending_best_effort[role]
        return ready + counts[TaskStatus.PIPELINED] if pipelined else ready

    def valid_count(self) -> int:
        """Tasks that can still make up the gang: allocated, succeeded, pipelined or pending."""
        return self.ready_count() + self.waiting_count() + self.count(TaskStatus.PENDING)

    def role_valid_count(self, role: str) -> int:
        """The same for one role."""
        counts = self._roles.get(role)
        if counts is None:
            return 0
        return sum(counts[status] for status in READY_SET) + counts[TaskStatus.PIPELINED] + counts[TaskStatus.PENDING]

    def worth_continuing(self, failed_roles: Collection[str], sub: SubJob | None = None) -> bool:
        """After a task (of a part, if any) found no node: whether the gang can still come together from the others."""
        if self.min_available >= len(self.tasks) or (sub is not None and sub.min_available >= len(sub.tasks)):
            return False
        if self.parts is not None and self.parts.policies:
            return True
        if self.role_min and not self.role_min_counts():
            pending = TaskStatus.PENDING
            others = sum(counts[pending] for role, counts in self._roles.items() if role not in failed_roles)
            return self.ready_count() + others >= self.min_available
        return all(self._role_count(role, False) >= self.role_min.get(role, 0) for role in failed_roles)

    def pending(self) -> Iterable[TaskInfo]:
        """Pending tasks, in order of arrival."""
        return self.by_status[TaskStatus.PENDING].values()

    # -- what the job is charged while it waits ----------------------------------------------------------------------

    def inqueue(self) -> Ints | None:
        """What an admitted job has not placed yet, for proportion and capacity; None when it is charged nothing.

        max(minResources − allocated, 0) on the dimensions that minResources names, less what gated tasks ask.
        """
        if self.min_resources is None or self.impossible is not None or not self._is_charged():
            return None
        lacking = np.where(self.min_resources.present, positive(self.min_resources.values - self.allocated), 0)
        return self._less_gated(lacking) if lacking.any() else None

    def inqueue_full(self) -> Ints | None:
        """The same for overcommit: the whole of minResources while the phase is Inqueue."""
        if self.phase == "Inqueue" and self.min_resources is not None and self.impossible is None:
            return self._less_gated(self.min_resources.values.copy())
        return self.inqueue()

    def elastic(self) -> Ints:
        """What the job holds beyond its minResources."""
        return self.allocated if self.min_resources is None else positive(self.allocated - self.min_resources.values)

    def enqueue_charge(self) -> Ints:
        """minResources less what gated tasks ask: what `JobEnqueued` adds to the running totals."""
        assert self.min_resources is not None
        return self._less_gated(self.min_resources.values.copy())

    def _is_charged(self) -> bool:
        if self.phase != "Running":
            return self.phase == "Inqueue"
        return sum(len(self.by_status[status]) for status in ALLOCATED_SET) >= self.min_available

    def _less_gated(self, charge: Ints) -> Ints:
        for task in self._gated.values():
            charge -= task.cls.request
        return positive(charge)
