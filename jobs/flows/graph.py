"""A flow drawn on the server: its jobs in columns by how many must be done before, and lines from what each waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

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


@dataclass(frozen=True)
class Layout:
    """Where boxes stand: the upper left corner of each by its name, and how large the drawing is."""

    places: dict[str, tuple[int, int]]
    width: int
    height: int


def arrange(waits: Mapping[str, Iterable[str]]) -> Layout:
    """A box for each name, in columns from left to right by what must come first."""
    columns = layers(waits)
    tallest = max((len(column) for column in columns), default=0)
    places = {}
    for at, column in enumerate(columns):
        top = MARGIN + (tallest - len(column)) * (HEIGHT + GAP_Y) // 2
        for row, name in enumerate(column):
            places[name] = (MARGIN + at * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y))
    width = 2 * MARGIN + len(columns) * WIDTH + max(0, len(columns) - 1) * GAP_X
    return Layout(places, width, 2 * MARGIN + tallest * HEIGHT + max(0, tallest - 1) * GAP_Y)


def label_of(name: str) -> str:
    """As much of a name as a box holds."""
    return name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"


def draw(flow: Obj, states: Mapping[str, State], urls: Mapping[str, str]) -> Graph:
    """The drawing of a flow; `states` and `urls` are those of its jobs, by the jobs' names."""
    title = flow["metadata"]["name"]
    parts = {part["name"]: part for part in parts_of(flow)}
    layout = arrange({name: targets_of(part) for name, part in parts.items()})
    boxes: dict[str, Box] = {}
    for name, (x, y) in layout.places.items():
        job = job_name(title, name)
        state, url = states[job], urls.get(job, "")
        boxes[name] = Box(name, job, label_of(name), state.phase, state.mark, state.word, x, y, url)
    waits = [(target, name, part) for name, part in parts.items() for target in targets_of(part) if target in boxes]
    lines = [line(boxes[target], boxes[name], is_probe=bool(probe_of(part))) for target, name, part in waits]
    return Graph(layout.width, layout.height, list(boxes.values()), lines)


def line(start: Box, end: Box, *, is_probe: bool = False, is_met: bool | None = None) -> Line:
    """A line from what must come first; it is met when that is completed or what waits has begun, unless it is said."""
    x1, y1, x2, y2 = start.x + WIDTH, start.middle, end.x - 6, end.middle
    bend = max(24.0, (x2 - x1) / 2)
    path = f"M{x1} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2} {y2:g}"
    met = start.phase == "Completed" or bool(end.phase) if is_met is None else is_met
    return Line(path, is_met=met, is_probe=is_probe)
