"""What kept jobs waiting, stretch by stretch: kept when verdicts change, so that a page can explain every gap later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobs.models import Hold, Job


def record(jobs: Sequence[Job], at: datetime) -> None:
    """Keep what these jobs wait for since `at`: nothing more, the same cause as before, or another.

    Numbers of one cause move with every cycle; the first ones stand for the stretch. Call it in the transaction that wrote
    the verdicts.
    """
    open_ = {hold.job_uid: hold for hold in Hold.objects.filter(job_uid__in=[job.uid for job in jobs], until=None)}
    new, over = [], []
    for job in jobs:
        held, verdict = open_.get(job.uid), job.verdict
        if verdict and held and (held.stage, held.code) == (verdict["stage"], verdict["code"]):
            continue
        if held:
            held.until = max(at, held.since)
            over.append(held)
        if verdict:
            new.append(Hold(job_uid=job.uid, since=at, stage=verdict["stage"], code=verdict["code"], verdict=verdict))
    Hold.objects.bulk_update(over, ["until"], batch_size=500)
    Hold.objects.bulk_create(new, batch_size=500)
