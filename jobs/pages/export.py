"""The job list as CSV, streamed: one row at a time is held, however many match."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from typing import Any

from django.db.models import QuerySet
from django.utils import translation

from jobs.choices import job_mark
from jobs.models import Job
from jobs.rows import JOB_FIELDS, iso
from jobs.summary import line

COLUMNS = (
    "uid", "namespace", "name", "queue", "owner", "phase", "state", "replicas", "min_available", "running", "succeeded", "failed",
    "gpus", "gpu_model", "cpu_milli", "memory_bytes", "priority_class", "retry_count", "created_at", "started_at", "finished_at",
    "phase_since", "why",
)  # fmt: skip
_TIMES = frozenset({"created_at", "started_at", "finished_at", "phase_since"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


async def rows(jobs: QuerySet[Job], language: str) -> AsyncIterator[str]:
    """Lines of CSV, the header first, with a mark that tells spreadsheets that it is UTF-8."""
    writer = csv.writer(_Echo())
    yield "\ufeff" + str(writer.writerow(COLUMNS))
    async for job in jobs.only(*JOB_FIELDS).aiterator(chunk_size=500):
        with translation.override(language):
            text = writer.writerow([_safe(_cell(job, column)) for column in COLUMNS])
        yield str(text)


def _cell(job: Job, column: str) -> Any:
    if column == "state":
        return job_mark(job.phase, job.group_phase)
    if column == "why":
        return line(job)
    value = getattr(job, column)
    return iso(value) or "" if column in _TIMES else value


def _safe(value: Any) -> Any:
    """A spreadsheet must not run a name as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
