"""Tasks × pods: the newest run of each task as a grid that stays readable from one pod to thousands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.choices import PodPhase
from jobs.models import Pod, Task

ROOMY = 64
MOST = 5000
"""Cells of one task that a page draws; the rest is counted."""


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
class Row:
    """One task."""

    name: str
    replicas: int
    min_available: int
    cells: list[Cell]
    hidden: int = 0

    @property
    def is_roomy(self) -> bool:
        """Whether each cell can carry its node's name."""
        return len(self.cells) <= ROOMY


def grid(tasks: Sequence[Task], pods: Sequence[Pod]) -> list[Row]:
    """A row a task; replicas without a pod are empty places. Pods come newest first within a place."""
    by_task: dict[str, dict[int, Pod]] = {}
    for pod in pods:
        by_task.setdefault(pod.task, {}).setdefault(pod.index, pod)
    rows = []
    for task in tasks:
        places = by_task.pop(task.name, {})
        width = max(task.replicas, max(places, default=-1) + 1)
        cells = [Cell(i, places.get(i)) for i in range(min(width, MOST))]
        rows.append(Row(task.name, task.replicas, task.min_available, cells, max(0, width - MOST)))
    for name, places in sorted(by_task.items()):  # pods of tasks that the job no longer has
        rows.append(Row(name, 0, 0, [Cell(index, pod) for index, pod in sorted(places.items())[:MOST]]))
    return rows


def runs(pods: Sequence[Pod]) -> int:
    """How often the job's pods were made."""
    return len({pod.job_version for pod in pods})
