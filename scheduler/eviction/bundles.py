"""What gangs can lose to a gang: single tasks beyond their minimum, or all of theirs in a domain at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.model.jobs import JobInfo
from scheduler.model.resources import Ints
from scheduler.model.tasks import READY_SET, TaskInfo, TaskStatus


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job that go together or not at all. `safe`: the job stays as whole as it is without them."""

    job: JobInfo
    tasks: tuple[TaskInfo, ...]
    safe: bool

    def freed(self) -> Ints:
        """What comes free."""
        total: Ints = np.sum([task.request for task in self.tasks], axis=0)
        return total

    def worth(self, need: Ints) -> float:
        """How much of the need it meets for each part of the need that its whole job holds; without bound when safe."""
        if self.safe:
            return float("inf")
        asked = need > 0
        local = np.minimum(self.freed()[asked] / need[asked], 1).sum()
        held = np.sum([task.request for task in self.job.tasks.values()], axis=0)[asked] / need[asked]
        return float(local / held.sum()) if held.sum() else float("inf")


def of_job(job: JobInfo, tasks: Sequence[TaskInfo], *, whole: bool) -> list[Bundle]:
    """The bundles of a job's tasks in a domain, those of lowest priority first; the last is the rest, if `whole` may go."""
    ordered = sorted(tasks, key=lambda task: (task.priority, task.uid))
    margin = _Margin(job)
    safe: list[TaskInfo] = []
    rest: list[TaskInfo] = []
    for task in ordered:
        (safe if margin.takes(task) else rest).append(task)
    bundles = [Bundle(job, (task,), True) for task in safe]
    if rest and whole:
        bundles.append(Bundle(job, tuple(rest), False))
    return bundles


class _Margin:
    """What a gang can still lose before it, one of its roles or one of its groups of parts falls below its minimum."""

    def __init__(self, job: JobInfo) -> None:
        self._broken = job.ready_count() < job.min_available
        self._job = job.ready_count() - job.min_available
        self._roles: dict[str, int] = {}
        if job.role_min_counts():
            ready: defaultdict[str, int] = defaultdict(int)
            for task in job.tasks.values():
                ready[task.role] += task.status in READY_SET or (task.status is TaskStatus.PENDING and task.cls.best_effort)
            self._roles = {role: ready[role] - least for role, least in job.role_min.items()}
        self._groups: dict[str, int] = {}
        self._broken_parts: set[str] = set()
        for policy in job.parts.policies if job.parts is not None else ():
            if policy.least:
                subs = job.parts.of_group(policy.name) if job.parts is not None else []
                self._groups[policy.name] = sum(sub.is_ready() for sub in subs) - policy.least
                self._broken_parts |= {sub.uid for sub in subs if not sub.is_ready()}

    def takes(self, task: TaskInfo) -> bool:
        """Whether the task can go too; if so, it is taken off what is left."""
        if self._broken:
            return True
        sub = task.sub
        counts = sub is not None and sub.group in self._groups and sub.uid not in self._broken_parts
        if self._job <= 0 or self._roles.get(task.role, 1) <= 0:
            return False
        if counts and sub is not None and self._groups[sub.group] <= 0:
            return False
        self._job -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        if counts and sub is not None:
            self._broken_parts.add(sub.uid)
            self._groups[sub.group] -= 1
        return True


def in_order(bundles: Iterable[Bundle], need: Ints, key: Callable[[JobInfo], Any]) -> list[Bundle]:
    """Safe ones first, then by `key` of their jobs, then those that meet most of the need for what is lost."""
    return sorted(bundles, key=lambda b: (not b.safe, key(b.job), -b.worth(need), b.job.uid, b.tasks[0].priority, b.tasks[0].uid))
