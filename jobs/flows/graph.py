"""A flow drawn on the server: its jobs in columns by how many must be done before, and lines from what each waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from cluster.port import Obj
from jobs.flows.parts import job_name, parts_of, probe_of, targets_of

WIDTH, HEIGHT = 184, 46
GAP_X, GAP_Y = 58, 14
MARGIN = 8
_LETTERS = 20


@dataclass(frozen=True)
class Box:
    """One job: where it is drawn, what it is called, how it is (`phase` empty: it was not made yet)."""

    part: str
    job: str
    label: str
    phase: str
    mark: str
    word: str
    x: int
    y: int
    url: str = ""

    @property
    def middle(self) -> float:
        """Where lines meet it."""
        return self.y + HEIGHT / 2

    @property
    def title(self) -> str:
        """What is said of it when it is pointed at, and read out."""
        return f"{self.job}: {self.word}"


@dataclass(frozen=True)
class Line:
    """From a job to one that waits for it. `is_met` says that it waits no more; `is_probe` that answers are enough."""

    path: str
    is_met: bool
    is_probe: bool


@dataclass(frozen=True)
class Graph:
    """A whole drawing."""

    width: int
    height: int
    boxes: list[Box]
    lines: list[Line]


def layers(parts: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Names by the longest way that leads to them, in each column near to what they wait for."""
    waits = {name: [target for target in targets if target in parts] for name, targets in parts.items()}
    try:
        order = list(TopologicalSorter(waits).static_order())
    except CycleError:  # admission refuses it; what came in elsewhere is drawn all the same
        order = list(waits)
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth.get(target, -1) for target in waits[name]), default=-1)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in parts:
        columns[depth[name]].append(name)
    place: dict[str, float] = {}
    for column in columns:
        column.sort(key=lambda name: _centre(parts[name], place))
        place |= {name: at - (len(column) - 1) / 2 for at, name in enumerate(column)}
    return columns


def _centre(targets: Iterable[str], place: Mapping[str, float]) -> float:
    found = [place[target] for target in targets if target in place]
    return sum(found) / len(found) if found else 0.0


@dataclass(frozen=True)
class State:
    """How a job is: its phase (empty: not made), its mark and its word."""

    phase: str
    mark: str
    word: str


def draw(flow: Obj, states: Mapping[str, State], urls: Mapping[str, str]) -> Graph:
    """The drawing of a flow; `states` and `urls` are those of its jobs, by the jobs' names."""
    title = flow["metadata"]["name"]
    parts = {part["name"]: part for part in parts_of(flow)}
    columns = layers({name: targets_of(part) for name, part in parts.items()})
    tallest = max((len(column) for column in columns), default=0)
    boxes: dict[str, Box] = {}
    for at, column in enumerate(columns):
        top = MARGIN + (tallest - len(column)) * (HEIGHT + GAP_Y) // 2
        for row, name in enumerate(column):
            job = job_name(title, name)
            state = states[job]
            boxes[name] = Box(
                part=name,
                job=job,
                label=name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…",
                phase=state.phase,
                mark=state.mark,
                word=state.word,
                x=MARGIN + at * (WIDTH + GAP_X),
                y=top + row * (HEIGHT + GAP_Y),
                url=urls.get(job, ""),
            )
    waits = [(target, name, part) for name, part in parts.items() for target in targets_of(part) if target in boxes]
    lines = [_line(boxes[target], boxes[name], part) for target, name, part in waits]
    return Graph(
        width=2 * MARGIN + len(columns) * WIDTH + max(0, len(columns) - 1) * GAP_X,
        height=2 * MARGIN + tallest * HEIGHT + max(0, tallest - 1) * GAP_Y,
        boxes=list(boxes.values()),
        lines=lines,
    )


def _line(start: Box, end: Box, part: Any) -> Line:
    x1, y1, x2, y2 = start.x + WIDTH, start.middle, end.x - 6, end.middle
    bend = max(24.0, (x2 - x1) / 2)
    path = f"M{x1} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2} {y2:g}"
    return Line(path, is_met=start.phase == "Completed" or bool(end.phase), is_probe=bool(probe_of(part)))
