"""The job list as CSV or JSON, streamed: one row at a time is held, however many match."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import orjson
from django.db.models import QuerySet
from django.utils import translation

from jobs.choices import job_mark
from jobs.models import Job
from jobs.pages.columns import Column
from jobs.pages.queries import Group
from jobs.rows import JOB_FIELDS, iso
from jobs.summary import line

_TIMES = frozenset({"created_at", "started_at", "finished_at", "phase_since"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
CHUNK = 500

Rows = tuple[Sequence[str], AsyncIterator[Sequence[Any]]]
"""The names of the fields, and the values of each row."""


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


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


async def as_csv(rows: Rows) -> AsyncIterator[str]:
    """Lines of CSV, the header first, with a mark that tells spreadsheets that it is UTF-8."""
    fields, found = rows
    writer = csv.writer(_Echo())
    yield "\ufeff" + str(writer.writerow(fields))
    async for values in found:
        yield str(writer.writerow([_safe(_cell(value)) for value in values]))


async def as_json(rows: Rows) -> AsyncIterator[bytes]:
    """An array with an object a row, a line each."""
    fields, found = rows
    between = b"[\n"
    async for values in found:
        yield between + orjson.dumps(dict(zip(fields, values, strict=True)))
        between = b",\n"
    yield b"\n]\n" if between == b",\n" else b"[]\n"


def _cell(value: Any) -> Any:
    """A value as one cell: labels as their selector would be written."""
    if isinstance(value, dict):
        return ",".join(f"{key}={text}" for key, text in sorted(value.items()))
    return "" if value is None else value


def _safe(value: Any) -> Any:
    """A spreadsheet must not run a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
