"""Every pod of a very large task as one cell, in a drawing of few elements: cells of one state are one path.

It is read at a glance, and each cell has its place, row by row. Reading it takes one statement, which
brings two numbers a pod and no pod by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Max, QuerySet

from jobs.choices import PodPhase
from jobs.models import Pod, Task

WIDE = (100, 200)
"""Cells in a row: of a task that takes no more than BROAD cells, and of a larger one."""
BROAD = 2_500
CELL = 10
MOST = 20_000
"""Pods of a job that are drawn each; of more the stretches by state are all there is."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The cells of one state: `path` draws them, `pods` are so many."""

    mark: str
    phase: str
    path: str
    pods: int


@dataclass(frozen=True, slots=True)
class Map:
    """One task."""

    name: str
    cells: int
    wide: int
    width: int
    height: int
    layers: list[Layer]

    @property
    def grid(self) -> str:
        """The path of the lines between cells."""
        across = "".join(f"M0 {y}h{self.width}" for y in range(CELL, self.height, CELL))
        return across + "".join(f"M{x} 0v{self.height}" for x in range(CELL, self.width, CELL))


def maps(tasks: Sequence[Task], pods: QuerySet[Pod]) -> list[Map]:
    """A map a task; none for a job of more than MOST pods."""
    if sum(task.replicas for task in tasks) > MOST:
        return []
    newest = pods.filter(deleted_at=None).order_by().values_list("task", "index")
    found: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for task, index, state in newest.annotate(state=Max("phase")):
        found[task][index] = state
    return [draw(task.name, task.replicas, found[task.name]) for task in tasks if task.replicas]


def draw(name: str, replicas: int, phases: dict[int, str]) -> Map:
    """Places without a pod are pending."""
    cells = min(MOST, max(replicas, max(phases, default=-1) + 1))
    states = [phases.get(index, PodPhase.PENDING) for index in range(cells)]
    runs: defaultdict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter(states)
    wide = WIDE[cells > BROAD]
    for state, row, column, length in _runs(states, wide):
        x, y, width = column * CELL, row * CELL, length * CELL
        runs[state].append(f"M{x} {y}h{width}v{CELL}h-{width}z")
    layers = [
        Layer(PodPhase(state).mark if state in PodPhase.values else "unknown", state, "".join(runs[state]), counts[state])
        for state in sorted(runs)
    ]
    rows = -(-cells // wide)
    return Map(name, cells, wide, min(cells, wide) * CELL, rows * CELL, layers)


def _runs(states: Sequence[str], wide: int) -> Iterable[tuple[str, int, int, int]]:
    """Cells of one state beside each other within a row: state, row, column, how many."""
    begin = 0
    for at in range(1, len(states) + 1):
        if at == len(states) or at % wide == 0 or states[at] != states[begin]:
            yield states[begin], begin // wide, begin % wide, at - begin
            begin = at
