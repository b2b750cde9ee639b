"""The job list as CSV or JSON, streamed: a few hundred rows are held, however many match."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.utils import translation

from cluster.exports import Rows
from jobs import starts
from jobs.choices import job_mark
from jobs.models import Job
from jobs.pages.columns import Column
from jobs.pages.queries import Group
from jobs.rows import JOB_FIELDS, iso
from jobs.starts import Start
from jobs.summary import line

_TIMES = frozenset({"created_at", "started_at", "finished_at", "phase_since"})
_STARTS = {"start_p50": "p50", "start_p90": "p90"}
CHUNK = 500


def of_jobs(jobs: QuerySet[Job], table: Iterable[Column], language: str) -> Rows:
    """The jobs with the fields of these columns; the uid comes first, for a name may be given anew."""
    fields = ["uid", *dict.fromkeys(field for column in table for field in column.fields)]
    return fields, _values(jobs, fields, language)


async def _values(jobs: QuerySet[Job], fields: Sequence[str], language: str) -> AsyncIterator[Sequence[Any]]:
    async for some in _chunks(jobs.only(*JOB_FIELDS)):
        foretold = await sync_to_async(starts.likely)(some) if "start_p50" in fields else {}
        for job in some:
            with translation.override(language):
                yield [_value(job, field, foretold.get(job.uid)) for field in fields]


async def _chunks(jobs: QuerySet[Job]) -> AsyncIterator[list[Job]]:
    some: list[Job] = []
    async for job in jobs.aiterator(chunk_size=CHUNK):
        some.append(job)
        if len(some) == CHUNK:
            yield some
            some = []
    yield some


def _value(job: Job, field: str, start: Start | None) -> Any:
    if field == "state":
        return job_mark(job.phase, job.group_phase)
    if field == "why":
        return line(job)
    if field in _STARTS:
        return iso(getattr(start, _STARTS[field])) if start is not None else None
    value = getattr(job, field)
    return iso(value) if field in _TIMES else value


def of_groups(groups: Iterable[Group], dimension: str) -> Rows:
    """Groups with their sums."""

    async def values() -> AsyncIterator[Sequence[Any]]:
        for group in groups:
            yield [group.value, group.jobs, group.up, group.pods, group.gpus, group.held]

    return [dimension, "jobs", "pods_up", "pods", "gpus", "gpus_held"], values()
