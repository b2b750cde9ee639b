"""The end of a cycle that nobody is told of: jobs get the phase that they have then, and nothing is written."""

from __future__ import annotations

from scheduler.framework.session import Session
from scheduler.status import Writes, standing_of


class Quiet:
    """Keeps phases, as `scheduler.status.StatusKeeper` does, and hands on every verdict of the session."""

    def close(self, ssn: Session) -> Writes:
        """Give the jobs that changed their phase."""
        for job in ssn.roster.unsaid():
            if ssn.jobs.get(job.uid) is job:
                phase = standing_of(ssn, job)
                if phase != job.phase:
                    job.phase = phase
                    job.touch()
        ssn.roster.heard()
        return Writes(verdicts=dict(ssn.verdicts))
