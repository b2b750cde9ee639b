"""Parts of a gang: sub-jobs that start whole by themselves, and what topology a gang or a part of it asks for.

A PodGroup may split its pods by sub-group policies. Pods that a policy selects form one sub-job for each combination of
values of its match keys; all other pods are the default sub-job. A sub-job has its own minimum, and perhaps its own
network topology; a policy may ask for so many ready sub-jobs before the gang may start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster.objects import labels as labels_of
from cluster.selectors import matches_selector
from scheduler.model.build import section, whole
from scheduler.model.resources import Ints
from scheduler.model.tasks import READY_SET, TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.model.jobs import JobInfo

HARD, SOFT = "hard", "soft"
MODES = (HARD, SOFT)


@dataclass(frozen=True, slots=True)
class Topology:
    """How close pods must be (`hard`) or should be (`soft`); the limit is a tier or a tier's name, or neither."""

    mode: str
    tier: int | None = None
    tier_name: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """One sub-group policy: `size` is a sub-job's minimum, `least` how many ready sub-jobs the gang needs."""

    name: str
    size: int
    least: int
    keys: tuple[str, ...]
    selector: Mapping[str, Any] | None
    topology: Topology | None

    def values(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """The values that tell the sub-job of a pod with these labels; empty when the policy does not take it."""
        if self.selector is not None and not matches_selector(self.selector, labels):
            return ()
        found = tuple(labels.get(key) or "" for key in self.keys)
        return found if all(found) else ()


@dataclass(slots=True, eq=False)
class SubJob:
    """Some tasks of a job. `group` is the name of its policy, empty for the default sub-job.

    `match_index` is the first match value where it is a number. Counts by status follow the tasks by themselves.
    """

    uid: str
    job: JobInfo = field(repr=False)
    group: str = ""
    min_available: int = 1
    match_index: int = 0
    topology: Topology | None = None
    tasks: dict[str, TaskInfo] = field(default_factory=dict, repr=False)
    counts: list[int] = field(default_factory=lambda: [0] * len(TaskStatus), repr=False)
    best_effort: int = 0

    @property
    def priority(self) -> int:
        """The highest priority of its tasks, at least 0."""
        return max(0, *(task.priority for task in self.tasks.values()), 0)

    def ready_count(self) -> int:
        """Tasks that hold, or held to their good end, a node."""
        return sum(self.counts[status] for status in READY_SET)

    def missing(self) -> int:
        """How many more tasks must get a node before the sub-job is ready."""
        return self.min_available - self.ready_count() - self.best_effort

    def is_ready(self) -> bool:
        """Whether its minimum holds a node; pending tasks that ask nothing count."""
        return self.missing() <= 0

    def is_pipelined(self) -> bool:
        """Whether it would be ready once what is being released is free."""
        return self.missing() <= self.counts[TaskStatus.PIPELINED]

    def pending(self) -> list[TaskInfo]:
        """Pending tasks, in order of arrival."""
        return [task for task in self.tasks.values() if task.status is TaskStatus.PENDING]

    def pending_request(self) -> Ints:
        """The sum of what its pending tasks ask for, whatever the minimum."""
        total = np.zeros(self.job.width, np.int64)
        for task in self.pending():
            total += task.cls.request
        return total

    def enter(self, task: TaskInfo, status: TaskStatus) -> None:
        """Count a task in a status."""
        self.counts[status] += 1
        self.best_effort += status is TaskStatus.PENDING and task.cls.best_effort

    def leave(self, task: TaskInfo, status: TaskStatus) -> None:
        """The inverse of `enter`."""
        self.counts[status] -= 1
        self.best_effort -= status is TaskStatus.PENDING and task.cls.best_effort


@dataclass(slots=True, eq=False)
class Parts:
    """The sub-jobs of one job that has policies or a topology. Without policies there is one: the whole gang.

    `least` is the minimum of the default sub-job.
    """

    job: JobInfo = field(repr=False)
    least: int = 1
    policies: Sequence[Policy] = ()
    topology: Topology | None = None
    sub_jobs: dict[str, SubJob] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Whether tasks are divided alike."""
        if not isinstance(other, Parts):
            return NotImplemented
        mine, theirs = ((one.least, one.policies, one.topology) for one in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def add(self, task: TaskInfo) -> None:
        """Give a task its sub-job."""
        sub = self._of(task)
        sub.tasks[task.uid] = task
        task.sub = sub
        sub.enter(task, task.status)

    def remove(self, task: TaskInfo) -> None:
        """Take a task out of its sub-job; one without tasks is forgotten."""
        sub = task.sub
        if sub is None:
            return
        sub.leave(task, task.status)
        del sub.tasks[task.uid]
        task.sub = None
        if not sub.tasks:
            del self.sub_jobs[sub.uid]

    def moved(self, tasks: Sequence[TaskInfo], old: TaskStatus) -> None:
        """Tasks have another status than `old` now."""
        for task in tasks:
            if task.sub is not None:
                task.sub.leave(task, old)
                task.sub.enter(task, task.status)

    def of_group(self, group: str) -> list[SubJob]:
        """The sub-jobs of one policy."""
        return [sub for sub in self.sub_jobs.values() if sub.group == group]

    def enough(self, *, pipelined: bool = False) -> bool:
        """Whether each policy has as many ready sub-jobs as it asks for."""
        for policy in self.policies:
            if policy.least:
                subs = self.of_group(policy.name)
                if sum(sub.is_pipelined() if pipelined else sub.is_ready() for sub in subs) < policy.least:
                    return False
        return True

    def too_few(self) -> tuple[Policy, int] | None:
        """A policy of which fewer sub-jobs exist than it needs, and how many there are."""
        for policy in self.policies:
            count = len(self.of_group(policy.name))
            if count < policy.least:
                return policy, count
        return None

    def _of(self, task: TaskInfo) -> SubJob:
        labels = labels_of(dict(task.pod))
        for policy in self.policies:
            values = policy.values(labels)
            if values:
                uid = f"{self.job.uid}/{policy.name}-{'-'.join(values)}"
                index = int(values[0]) if values[0].isascii() and values[0].isdigit() and len(values[0]) < 10 else 0
                return self._get(uid, policy.name, policy.size, index, policy.topology)
        return self._get(self.job.uid, "", self.least, 0, self.topology)

    def _get(self, uid: str, group: str, least: int, index: int, topology: Topology | None) -> SubJob:
        found = self.sub_jobs.get(uid)
        if found is None:
            found = self.sub_jobs[uid] = SubJob(uid, self.job, group, least, index, topology)
        return found


def read(spec: Mapping[str, Any], job: JobInfo, min_available: int) -> Parts | None:
    """The parts of a PodGroup by its spec; None for a plain gang. Raises ValueError that says where."""
    topology = _topology(section(spec, "networkTopology"), "networkTopology")
    policies = [_policy(policy, f"subGroupPolicy[{i}]") for i, policy in enumerate(_listed(spec, "subGroupPolicy"))]
    return Parts(job, 1 if policies else min_available, policies, topology) if policies or topology else None


def _listed(spec: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = spec.get(name) or ()
    if not isinstance(found, list | tuple):
        raise ValueError(f"{name} must be a list")
    return found


def _policy(policy: Any, where: str) -> Policy:
    if not isinstance(policy, Mapping):
        raise ValueError(f"{where} must be a mapping")
    keys = tuple(str(key) for key in policy.get("matchLabelKeys") or ())
    return Policy(
        str(policy.get("name") or ""),
        max(whole(policy, "subGroupSize", 1), 0),
        max(whole(policy, "minSubGroups", 0), 0),
        keys,
        policy.get("labelSelector"),
        _topology(section(policy, "networkTopology"), f"{where}.networkTopology"),
    )


def _topology(spec: Mapping[str, Any], where: str) -> Topology | None:
    if not spec:
        return None
    mode = spec.get("mode") or HARD
    if mode not in MODES:
        raise ValueError(f"{where}.mode must be hard or soft, not {mode!r}")
    tier = whole(spec, "highestTierAllowed", -1) if spec.get("highestTierAllowed") is not None else None
    return Topology(mode, tier, str(spec.get("highestTierName") or ""))
