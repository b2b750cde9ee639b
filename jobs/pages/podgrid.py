"""Tasks × pods: the newest run of each task as a grid that stays readable from one pod to thousands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil

from jobs.choices import PodPhase
from jobs.models import Pod, Task

ROOMY = 64
MOST = 2_000
"""Pods of a job that are drawn one by one. Of larger jobs each mark stands for many pods of a task in the same state."""
BLOCKS = 100
"""Marks that one task of a large job is drawn with."""
ORDER = (
    PodPhase.FAILED, PodPhase.UNKNOWN, PodPhase.TERMINATING, PodPhase.SUCCEEDED, PodPhase.RUNNING, PodPhase.PENDING,
)  # fmt: skip
"""States of a large task's pods from left to right: what ended badly first, what has not begun last."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a task: its newest pod, or none yet."""

    index: int
    pod: Pod | None

    @property
    def mark(self) -> str:
        """The state mark; a pod with a node that has not started is on its way, which `inqueue` says."""
        if self.pod is None:
            return "pending"
        if self.pod.deleted_at and not self.pod.finished_at:
            return "aborted"
        if self.pod.phase == PodPhase.PENDING and self.pod.node:
            return "inqueue"
        return PodPhase(self.pod.phase).mark if self.pod.phase in PodPhase.values else "unknown"

    @property
    def is_missing(self) -> bool:
        """It has no node yet."""
        return self.pod is None or not self.pod.node


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pods of one task that are in the same phase: how many, and how many marks they are drawn with."""

    phase: PodPhase
    pods: int
    marks: int


@dataclass(frozen=True, slots=True)
class Row:
    """One task: a cell a pod, or, of a large job, stretches of pods by state, `each` pods to a mark."""

    name: str
    replicas: int
    min_available: int
    cells: list[Cell]
    stretches: list[Stretch] = field(default_factory=list)
    each: int = 1

    @property
    def is_roomy(self) -> bool:
        """Whether each cell can carry its node's name."""
        return len(self.cells) <= ROOMY


def is_large(tasks: Iterable[Task]) -> bool:
    """Whether a job has too many pods to draw each of them."""
    return sum(max(task.replicas, sum(task.counts.values())) for task in tasks) > MOST


def grid(tasks: Sequence[Task], pods: Iterable[Pod]) -> list[Row]:
    """A row a task; replicas without a pod are empty places. Pods come newest first within a place."""
    by_task: dict[str, dict[int, Pod]] = {}
    for pod in pods:
        by_task.setdefault(pod.task, {}).setdefault(pod.index, pod)
    rows = []
    for task in tasks:
        places = by_task.pop(task.name, {})
        width = max(task.replicas, max(places, default=-1) + 1)
        rows.append(Row(task.name, task.replicas, task.min_available, [Cell(i, places.get(i)) for i in range(min(width, MOST))]))
    for name, places in sorted(by_task.items()):  # pods of tasks that the job no longer has
        rows.append(Row(name, 0, 0, [Cell(index, pod) for index, pod in sorted(places.items())[:MOST]]))
    return rows


def overview(tasks: Iterable[Task]) -> list[Row]:
    """The rows of a large job, by counts alone: as quick with a hundred thousand pods as with one."""
    return [_counted(task) for task in tasks]


def _counted(task: Task) -> Row:
    counts: Counter[PodPhase] = Counter()
    for phase, number in task.counts.items():
        counts[PodPhase(phase) if phase in PodPhase.values else PodPhase.UNKNOWN] += number
    counts[PodPhase.PENDING] += max(0, task.replicas - sum(task.counts.values()))
    each = max(1, ceil(sum(counts.values()) / BLOCKS))
    found = [Stretch(phase, counts[phase], ceil(counts[phase] / each)) for phase in ORDER if counts[phase]]
    return Row(task.name, task.replicas, task.min_available, [], found, each)
