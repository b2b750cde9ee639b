"""A job's life as lanes of bars over one axis of time. Positions are percentages, so that the page needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter

from django.utils import timezone
from django.utils.translation import gettext as _

from cluster.display import duration
from jobs.choices import GroupPhase, JobPhase, PodPhase, job_mark
from jobs.models import Job, PhaseChange, Pod

SHOWN_TASKS = 12
LABEL_WIDTH = 9.0  # percent of the axis that a bar needs to carry its words
ENDING = (JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.TERMINATING, JobPhase.COMPLETING)
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
        """Each state that occurs, with its words, in order of appearance; states of one mark may have several."""
        return list(dict.fromkeys((bar.state, bar.word) for lane in self.lanes for bar in lane.bars))


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
    ending = job.phase_since if job.phase in ENDING else None
    lanes += [Lane(task, _task([p for p in pods if p.task == task], axis, ending), is_task=True) for task in tasks[:SHOWN_TASKS]]
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


def _task(pods: Iterable[Pod], axis: _Axis, ending: datetime | None) -> list[Bar]:
    """What most moves in a task: a pod that runs, else one that stops, else one that waits; no bar while there is none.

    `ending` is since when the job stops its pods, None when it does not.
    """
    moves: list[tuple[datetime, str, int]] = []
    for pod in pods:
        stretches = _life(pod, ending)
        for (state, begin), (_next, end) in pairwise([*stretches, ("", pod.finished_at or pod.deleted_at)]):
            assert begin is not None
            moves.append((begin, state, 1))
            if end is not None:
                moves.append((max(begin, end), state, -1))
    alive = dict.fromkeys(_TASK_STATES, 0)
    steps: list[tuple[datetime, str]] = []
    for at, group in groupby(sorted(moves, key=itemgetter(0)), key=itemgetter(0)):
        for _at, state, change in group:
            alive[state] += change
        shown = next((state for state, count in alive.items() if count), "")
        if not steps or steps[-1][1] != shown:
            steps.append((at, shown))
    ends: list[datetime | None] = [at for at, _state in steps[1:]]
    return [axis.bar(state, _TASK_STATES[state], at, end) for (at, state), end in zip(steps, [*ends, None], strict=True) if state]


_TASK_STATES = {"running": PodPhase.RUNNING, "terminating": PodPhase.TERMINATING, "pending": PodPhase.PENDING}


def _life(pod: Pod, ending: datetime | None) -> list[tuple[str, datetime | None]]:
    """The states that a pod went through, each with its beginning."""
    found: list[tuple[str, datetime | None]] = [("pending", pod.created_at)]
    if pod.started_at:
        found.append(("running", max(pod.created_at, pod.started_at)))
    if ending and pod.phase == PodPhase.TERMINATING and not (pod.finished_at or pod.deleted_at):
        found.append(("terminating", max(ending, pod.started_at or pod.created_at)))
    return found
