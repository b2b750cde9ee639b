"""The job list as CSV or JSON, streamed: one row at a time is held, however many match."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import translation

from cluster.exports import Rows
from jobs.choices import job_mark
from jobs.models import Job
from jobs.pages.columns import Column
from jobs.pages.queries import Group
from jobs.rows import JOB_FIELDS, iso
from jobs.summary import line

_TIMES = frozenset({"created_at", "started_at", "finished_at", "phase_since"})
CHUNK = 500


def of_jobs(jobs: QuerySet[Job], table: Iterable[Column], language: str) -> Rows:
    """The jobs with the fields of these columns; the uid comes first, for a name may be given anew."""
    fields = ["uid", *dict.fromkeys(field for column in table for field in column.fields)]
    return fields, _values(jobs, fields, language)


async def _values(jobs: QuerySet[Job], fields: Sequence[str], language: str) -> AsyncIterator[Sequence[Any]]:
    async for job in jobs.only(*JOB_FIELDS).aiterator(chunk_size=CHUNK):
        with translation.override(language):
            yield [_value(job, field) for field in fields]


def _value(job: Job, field: str) -> Any:
    if field == "state":
        return job_mark(job.phase, job.group_phase)
    if field == "why":
        return line(job)
    value = getattr(job, field)
    return iso(value) if field in _TIMES else value


def of_groups(groups: Iterable[Group], dimension: str) -> Rows:
    """Groups with their sums."""

    async def values() -> AsyncIterator[Sequence[Any]]:
        for group in groups:
            yield [group.value, group.jobs, group.up, group.pods, group.gpus, group.held]

    return [dimension, "jobs", "pods_up", "pods", "gpus", "gpus_held"], values()
