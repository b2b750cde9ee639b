"""Who was given nodes, cycle by cycle, as rows: kept longer than the cycles themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from portal.models import Placement
from scheduler.framework.record import CycleRecord


def rows(records: Sequence[CycleRecord], owners: Mapping[str, str]) -> list[Placement]:
    """A row for each job of each cycle; `owners` has the uid of each job by its gang's key."""
    return [
        Placement(
            at=datetime.fromtimestamp(record.at, UTC),
            cycle=record.number,
            queue=served.queue,
            job=key,
            job_uid=owners.get(key, ""),
            pods=served.pods,
            taken=served.taken,
        )
        for record in records
        for key, served in record.served.items()
    ]


def name(jobs: Mapping[str, str]) -> None:
    """Give rows their jobs, once it is known whose the gangs are."""
    wanted = Placement.objects.filter(job__in=jobs, job_uid="")
    for key in set(wanted.values_list("job", flat=True)):
        wanted.filter(job=key).update(job_uid=jobs[key])
