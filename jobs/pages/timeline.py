"""A job's life as lanes of bars over one axis of time. Positions are percentages, so that the page needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils import timezone
from django.utils.translation import gettext as _

from cluster.display import duration
from jobs.choices import GroupPhase, JobPhase, PodPhase, job_mark
from jobs.models import Job, PhaseChange, Pod

SHOWN_TASKS = 12
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
class Lane:
    """One row: the job itself, or one of its tasks."""

    name: str
    bars: list[Bar]
    is_task: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes between two instants; `now` is a percentage, None when the job is over."""

    start: datetime
    end: datetime
    lanes: list[Lane]
    ticks: list[tuple[float, str, datetime]]
    now: float | None
    hidden_tasks: int

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Each state that occurs, with its word, in order of appearance."""
        return list({bar.state: bar.word for lane in self.lanes for bar in lane.bars}.items())


def build(job: Job, changes: Sequence[PhaseChange], pods: Sequence[Pod], present: datetime) -> Timeline:
    """Draw the job's phases, and for each task when its pods waited and ran."""
    over = job.finished_at if JobPhase(job.phase).is_final and job.finished_at else job.deleted_at
    start = min([job.created_at, *(change.at for change in changes)])
    last = over or max(present, start + timedelta(seconds=1))
    last = max(last, start + timedelta(seconds=1))
    end = last if over else last + (last - start) * 0.04  # a little room right of now
    axis = _Axis(start, end, last)
    tasks = sorted({pod.task for pod in pods})
    lanes = [Lane(_("Job"), _phases(job, changes, axis, over))]
    lanes += [Lane(task, _task([p for p in pods if p.task == task], axis), is_task=True) for task in tasks[:SHOWN_TASKS]]
    return Timeline(start, end, lanes, axis.ticks(), None if over else axis.place(last), max(0, len(tasks) - SHOWN_TASKS))


@dataclass(frozen=True, slots=True)
class _Axis:
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
            place = self.place(at)
            if place <= 97:
                found.append((place, at.strftime(form), at))
            at += timedelta(seconds=step)
        return found


def _word(state: str, phase: str) -> str:
    if state == "inqueue":
        return str(GroupPhase.INQUEUE.label)
    for choices in (JobPhase, PodPhase):
        if phase in choices.values:
            return str(choices(phase).label)
    return phase


def _phases(job: Job, changes: Sequence[PhaseChange], axis: _Axis, over: datetime | None) -> list[Bar]:
    """One bar a phase; a final phase is an end, so it has no length."""
    steps: list[tuple[str, str, datetime]] = []
    for change in changes:
        state = job_mark(change.phase, change.group_phase)
        if not steps or steps[-1][0] != state or steps[-1][1] != change.phase:
            steps.append((state, change.phase, change.at))
    if not steps:
        steps = [(job_mark(job.phase, job.group_phase), job.phase, job.phase_since)]
    if steps[0][2] > axis.start:
        steps.insert(0, ("pending", JobPhase.PENDING, axis.start))
    bars = [axis.bar(state, phase, at, following[2]) for (state, phase, at), following in pairwise(steps)]
    state, phase, at = steps[-1]
    bars.append(axis.bar(state, phase, at, over or (at if JobPhase(phase).is_final else None)))
    return bars


def _task(pods: Iterable[Pod], axis: _Axis) -> list[Bar]:
    """Runs of a task, newest pods last: waiting until the first pod started, then running until the last one ended."""
    runs: dict[int, list[Pod]] = {}
    for pod in pods:
        runs.setdefault(pod.job_version, []).append(pod)
    bars = []
    for _version, run in sorted(runs.items()):
        made = min(pod.created_at for pod in run)
        begun = [pod.started_at for pod in run if pod.started_at]
        ends = [pod.finished_at or pod.deleted_at for pod in run]
        done = None if any(end is None for end in ends) else max(end for end in ends if end)
        first = min(begun) if begun else done
        bars.append(axis.bar("pending", "Pending", made, first))
        if begun:
            bars.append(axis.bar("running", "Running", min(begun), done))
    return bars
