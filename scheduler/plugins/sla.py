"""sla: a job that has waited too long is admitted, and keeps what could be reserved for it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, ClassVar

from cluster.durations import parse_duration
from cluster.said import said, told
from scheduler.framework.plugin import Vote
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

WAITING_TIME = "sla-waiting-time"
_ANNOTATIONS = (f"volcano.sh/{WAITING_TIME}", WAITING_TIME)


@plugin
class Sla:
    """The earliest deadline goes first; jobs without one come last.

    Argument: `sla-waiting-time` (a duration such as "1h30m"), for every job whose PodGroup has no annotation of its own.
    It forces what the plugins of later tiers would refuse, so it belongs into a tier before theirs.
    """

    name: ClassVar[str] = "sla"
    _now: float

    def __init__(self, arguments: Arguments) -> None:
        self._waiting_time = inf
        if WAITING_TIME in arguments:
            try:
                self._waiting_time = parse_duration(arguments.text(WAITING_TIME, ""))
            except ValueError as error:
                raise arguments.error(WAITING_TIME, told(error)) from None
            if self._waiting_time <= 0:
                raise arguments.error(WAITING_TIME, said("it must be longer than nothing"))

    def on_session_open(self, ssn: Session) -> None:
        self._now = ssn.now
        ssn.add_job_order(self.name, self.deadline)
        ssn.add_enqueueable(self.name, self.forced)
        ssn.add_job_pipelined(self.name, self.forced)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def deadline(self, job: JobInfo) -> float:
        """Until when a job should have started; infinity without a limit. An annotation that is no duration counts for none."""
        for key in _ANNOTATIONS:
            text = job.annotations.get(key)
            if text is not None:
                try:
                    own = parse_duration(text)
                except ValueError:
                    continue
                if own > 0:
                    return job.creation + own
        return job.creation + self._waiting_time

    def forced(self, job: JobInfo) -> Vote:
        """Yes once the deadline has come."""
        return Vote.PERMIT if self._now >= self.deadline(job) else Vote.ABSTAIN
