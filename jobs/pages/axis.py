"""The parts that a timeline is made of: bars, points and areas in lanes, over one axis of time, in percentages."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from cluster.display import duration
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.starts import Start

OUTLOOK = "outlook"
"""The state of bars that foretell."""
LABEL_WIDTH = 9.0  # percent of the axis that a bar needs to carry its words
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000)


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time in one state; `end` is None while it lasts."""

    state: str
    phase: str
    start: datetime
    end: datetime | None
    left: float
    width: float
    word: str
    label: str

    @property
    def is_wide(self) -> bool:
        """Whether the words fit into it."""
        return self.width >= LABEL_WIDTH


@dataclass(frozen=True, slots=True)
class Point:
    """Something that happened at one instant; `text` says what."""

    at: datetime
    left: float
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Area:
    """An amount over a stretch of the axis: `fill` and `line` are SVG paths in a box of 1000 by 100."""

    start: datetime
    end: datetime
    left: float
    width: float
    fill: str
    line: str
    samples: list[tuple[datetime, float, float | None]]
    """Instant, the amount, and what it is held against."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: the job itself, its queue, the scheduler's view of it, its pods, one of its tasks, what was decided."""

    name: str
    bars: list[Bar]
    kind: str = "job"
    points: list[Point] = field(default_factory=list)
    area: Area | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """Instants between `start` and `end` as percentages; what goes on is drawn up to `last`."""

    start: datetime
    end: datetime
    last: datetime

    def place(self, at: datetime) -> float:
        share = (at - self.start) / (self.end - self.start)
        return round(100 * min(1.0, max(0.0, share)), 3)

    def bar(self, state: str, phase: str, start: datetime, end: datetime | None) -> Bar:
        left, right = self.place(start), self.place(end or self.last)
        span = duration((end or self.last) - start)
        word = _word(state, phase)
        label = _("%(state)s %(duration)s") % {"state": word, "duration": span}
        return Bar(state, phase, start, end, left, round(max(0.0, right - left), 3), word, label)

    def outlook(self, start: Start) -> Bar | None:
        """From the instant by which half of the futures start to that of nine in ten; None where even half is not in sight."""
        if start.p50 is None or start.p50 >= self.end:
            return None
        left, right = self.place(max(start.p50, self.last)), self.place(start.p90 or self.end)
        word = _("Likely start")
        return Bar(OUTLOOK, "", start.p50, start.p90 or self.end, left, round(max(0.0, right - left), 3), word, word)

    def ticks(self) -> list[tuple[float, str, datetime]]:
        span = (self.end - self.start).total_seconds()
        step = next((s for s in STEPS if span / s <= 8), STEPS[-1])
        zero = timezone.localtime(self.start)
        midnight = zero.replace(hour=0, minute=0, second=0, microsecond=0)
        first = midnight + timedelta(seconds=step * -(-(zero - midnight).total_seconds() // step))
        form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%m-%d"
        found = []
        at = first
        while at <= self.end:
            # in UTC first: a time that the clocks leave out is a later one
            place, local = self.place(at), timezone.localtime(at.astimezone(UTC))
            if place <= 97 and (not found or found[-1][2] < local):
                found.append((place, local.strftime(form), local))
            at += timedelta(seconds=step)
        return found


def _word(state: str, phase: str) -> str:
    if state == "inqueue":
        return str(GroupPhase.INQUEUE.label)
    for choices in (JobPhase, PodPhase):
        if phase in choices.values:
            return str(choices(phase).label)
    return phase
