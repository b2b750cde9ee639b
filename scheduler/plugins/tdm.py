"""tdm: some nodes are lent by the hour. In their hours they take pods that may be ended at any time, and then lose them.

Hours are UTC. A window whose end is not after its start reaches into the next day.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cluster.durations import parse_duration
from cluster.said import said, told
from scheduler.framework.plugin import MAX_NODE_SCORE, Vote
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import Block
from scheduler.model.resources import Ints, Mask
from scheduler.model.tasks import NO_NODE, TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

ZONE = "volcano.sh/revocable-zone"
PREEMPTABLE = "volcano.sh/preemptable"
MIN_AVAILABLE, MAX_UNAVAILABLE = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"

_ZONES, _PERIOD = "tdm.revocable-zone.", "tdm.evict.period"
_WINDOW = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])-([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_AMOUNT = re.compile(r"([0-9]{1,9})(%?)", re.ASCII)
_DAY = 86_400
_LAST = ("tdm", "evicted")


@dataclass(frozen=True, slots=True)
class Window:
    """Seconds after midnight, both ends belonging to it."""

    start: int
    end: int

    def holds(self, now: float) -> bool:
        """Whether an instant (epoch seconds) is inside."""
        second = now % _DAY
        if self.end <= self.start:
            return second >= self.start or second <= self.end
        return self.start <= second <= self.end


@plugin
class Tdm:
    """Zones by name, from the arguments; nodes say theirs by a label, pods by an annotation that they may run in any."""

    name: ClassVar[str] = "tdm"
    _ssn: Session
    _zone_rows: dict[int, str]

    def __init__(self, arguments: Arguments) -> None:
        self._zones: dict[str, Window] = {}
        names = arguments.keys()
        for key in names:
            if key.startswith(_ZONES):
                found = _WINDOW.fullmatch(arguments.text(key, "").replace(" ", ""))
                if found is None:
                    raise arguments.error(key, said('must be hours like "10:00-21:30"'))
                first, second, third, fourth = map(int, found.groups())
                self._zones[key.removeprefix(_ZONES)] = Window(first * 3600 + second * 60, third * 3600 + fourth * 60)
        try:
            self._period = parse_duration(arguments.text(_PERIOD, "1m"))
        except ValueError as error:
            raise arguments.error(_PERIOD, told(error)) from None

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        self._zone_rows = {row: labels[ZONE] for row, labels in enumerate(ssn.nodes.labels) if labels.get(ZONE)}
        self._active = {zone for zone, window in self._zones.items() if window.holds(ssn.now)}
        if self._zone_rows:
            ssn.add_task_predicate(self.name, "revocable_zone", self._may_run, lambda task: True, resolvable=False)
            ssn.add_task_score(self.name, self._score, is_revocable)
        ssn.add_preemptable(self.name, self._preemptable)
        ssn.add_victim_tasks(self.name, self._due)
        ssn.add_job_order(self.name, is_lent)
        ssn.add_job_pipelined(self.name, lambda job: Vote.PERMIT if job.is_pipelined() else Vote.REJECT)
        ssn.add_job_starving(self.name, lambda job: not is_lent(job) and bool(job.count(TaskStatus.PENDING)))

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    # -- where -----------------------------------------------------------------------------------------------------------

    def _may_run(self, task: TaskInfo, at: Block) -> Mask:
        allowed = is_revocable(task)
        zones = [self._zone_rows.get(row) for row in at.rows.tolist()]
        return np.array([zone is None or (allowed and zone in self._active) for zone in zones], np.bool_)

    def _score(self, task: TaskInfo, at: Block) -> Ints:
        zones = [self._zone_rows.get(row) for row in at.rows.tolist()]
        return np.array([MAX_NODE_SCORE if zone in self._active else 0 for zone in zones], np.int64)

    # -- who goes --------------------------------------------------------------------------------------------------------

    def _preemptable(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Who may be ended at any time ends nobody else; of each job no more go than its disruption budget lets."""
        if preemptor.preemptable or is_revocable(preemptor):
            return []
        return _within_budgets(task for task in candidates if _may_go(task) and task.node not in self._zone_rows)

    def _due(self, running: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Once a period, tasks on nodes whose hours are over."""
        last = self._ssn.memo.get(_LAST)
        if isinstance(last, float) and last <= self._ssn.now < last + self._period:
            return []
        self._ssn.memo[_LAST] = self._ssn.now
        found: list[TaskInfo] = []
        for zone in sorted(self._zones.keys() - self._active):
            found += _within_budgets(task for task in running if _may_go(task) and self._zone_rows.get(task.node) == zone)
        return found


def is_revocable(task: TaskInfo) -> bool:
    """Whether a pod says that it may run on lent nodes: any zone, or that it may be preempted."""
    marks: Mapping[str, str] = task.pod["metadata"].get("annotations") or {}
    return marks[ZONE] == "*" if ZONE in marks else marks.get(PREEMPTABLE) == "true"


def is_lent(job: JobInfo) -> bool:
    """Whether a gang says that it may be preempted; unlike a pod, one that says nothing may not."""
    return (job.annotations.get(PREEMPTABLE) or job.labels.get(PREEMPTABLE)) == "true"


def budget(job: JobInfo) -> int:
    """How many running tasks of a job may go: what its annotations leave, else one."""
    running = job.count(TaskStatus.RUNNING)
    if (most := _amount(job, MAX_UNAVAILABLE)) is not None:
        ended = job.count(TaskStatus.SUCCEEDED) + job.count(TaskStatus.FAILED)
        return max(most - (len(job.tasks) - ended - running), 0)
    if (least := _amount(job, MIN_AVAILABLE)) is not None:
        return max(running - least, 0)
    return 1


def _amount(job: JobInfo, mark: str) -> int | None:
    found = _AMOUNT.fullmatch(job.annotations.get(mark) or "")
    if found is None:
        return None
    return math.ceil(int(found[1]) * len(job.tasks) / 100) if found[2] else int(found[1])


def _may_go(task: TaskInfo) -> bool:
    return task.status is TaskStatus.RUNNING and task.preemptable and task.job is not None and task.node != NO_NODE


def _within_budgets(tasks: Iterable[TaskInfo]) -> list[TaskInfo]:
    left: dict[str, int] = {}
    found = []
    for task in tasks:
        assert task.job is not None
        left[task.job.uid] = left.get(task.job.uid, budget(task.job)) - 1
        if left[task.job.uid] >= 0:
            found.append(task)
    return found
