"""A job's life as lanes of bars over one axis of time. Positions are percentages, so that the page needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter

from django.utils.translation import gettext as _

from jobs.choices import JobPhase, PodPhase, job_mark
from jobs.models import Job, PhaseChange, Pod
from jobs.pages.axis import OUTLOOK, Axis, Bar, Lane
from jobs.pages.facts import Facts
from jobs.pages.gaps import Duration, Gap, durations, gaps
from jobs.pages.lanes import decisions_lane, pods_lane, queue_lane, scheduler_lane

SHOWN_TASKS = 12
SHOWN_GAPS = 4
ENDING = (JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.TERMINATING, JobPhase.COMPLETING)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes between two instants; `now` is a percentage, None when the job is over."""

    start: datetime
    end: datetime
    lanes: list[Lane]
    ticks: list[tuple[float, str, datetime]]
    now: float | None
    hidden_tasks: int
    durations: list[Duration] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @property
    def early_gaps(self) -> list[Gap]:
        """All but the newest: of a job that waits for long there are many."""
        return self.gaps[:-SHOWN_GAPS] if len(self.gaps) > SHOWN_GAPS + 1 else []

    @property
    def late_gaps(self) -> list[Gap]:
        """The newest, in the order in which they came; one more is shown where it would be hidden alone."""
        return self.gaps[len(self.early_gaps) :]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Each state that occurs, with its words, in order of appearance; states of one mark may have several."""
        lanes = (lane for lane in self.lanes if lane.kind in ("job", "task"))
        return list(dict.fromkeys((bar.state, bar.word) for lane in lanes for bar in lane.bars if bar.state != OUTLOOK))


def build(
    job: Job, changes: Sequence[PhaseChange], pods: Sequence[Pod], present: datetime, facts: Facts | None = None
) -> Timeline:
    """Draw the job's phases, and for each task when its pods waited and ran; with `facts` all the other lanes too."""
    over = job.finished_at if JobPhase(job.phase).is_final and job.finished_at else job.deleted_at
    start = min([job.created_at, *(change.at for change in changes)])
    last = over or max(present, start + timedelta(seconds=1))
    last = max(last, start + timedelta(seconds=1))
    end = last if over else _end(start, last, facts)
    axis = Axis(start, end, last)
    tasks = _in_order(job, {pod.task for pod in pods})
    phases = _phases(job, changes, axis, over)
    ending = job.phase_since if job.phase in ENDING else None
    drawn = [Lane(task, _task([p for p in pods if p.task == task], axis, ending), "task") for task in tasks[:SHOWN_TASKS]]
    lanes = [Lane(_("Job"), phases), *drawn]
    if facts is not None:
        upper = [queue_lane(job, facts, axis), scheduler_lane(job, facts, axis), pods_lane(job, pods, axis)]
        lanes = [lanes[0], *(lane for lane in upper if lane), *drawn, decisions_lane(facts, axis)]
    outlook = axis.outlook(facts.start) if facts is not None and facts.start is not None and not over else None
    if outlook is not None:
        lanes[0] = replace(lanes[0], bars=[*phases, outlook])
    hidden = max(0, len(tasks) - SHOWN_TASKS)
    times, explained = durations(phases, last), gaps(job, phases, facts or Facts(), last)
    return Timeline(start, end, lanes, axis.ticks(), None if over else axis.place(last), hidden, times, explained)


def _end(start: datetime, last: datetime, facts: Facts | None) -> datetime:
    """A little room right of now; as much as what is foretold needs, up to a third of the axis."""
    past = last - start
    ahead = last + past * 0.04
    foretold = facts.start if facts is not None else None
    if foretold is None or foretold.p50 is None:
        return ahead
    return min(max(ahead, (foretold.p90 or foretold.p50) + past * 0.02), last + past * 0.5)


def _in_order(job: Job, names: set[str]) -> list[str]:
    """Tasks as the manifest has them; those that it has no more come last."""
    spec = job.manifest.get("spec") or {}
    places = {str(task.get("name")): place for place, task in enumerate(spec.get("tasks") or ()) if isinstance(task, dict)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _phases(job: Job, changes: Sequence[PhaseChange], axis: Axis, over: datetime | None) -> list[Bar]:
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


def _task(pods: Iterable[Pod], axis: Axis, ending: datetime | None) -> list[Bar]:
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
