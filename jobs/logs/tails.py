"""The last lines of every job that ended, kept for good: logs themselves are let go after a while, or with their pods."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import Case, Exists, IntegerField, OuterRef, Value, When

from cluster import runtime
from cluster.away import Away
from cluster.errors import ApiError
from cluster.logs.records import seconds
from cluster.logs.remote import Troubles
from jobs.choices import JobPhase, PodPhase
from jobs.logs import sources
from jobs.logs.asked import Asked
from jobs.logs.reading import Reading
from jobs.models import Job, LogTail, Pod

LINES = 200
PODS = 8
LONGEST = 2_000
"""Characters of a line."""
EVERY = 3.0
BACK = timedelta(hours=1)
"""How long ago a job may have ended; what ended while nobody looked for longer has mostly no logs any more."""
AT_ONCE = 20


def keep(job: Job) -> LogTail:
    """Read and keep the last lines of a job's pods, of those that failed first. Raises what kept all of them from being read."""
    first = Case(When(phase=PodPhase.FAILED, then=Value(0)), default=Value(1), output_field=IntegerField())
    pods = list(Pod.objects.filter(job_uid=job.uid).order_by(first, "-finished_at", "task", "index")[:PODS])
    troubles = Troubles(quiet=True)
    lines = [line for pod in pods for line in _tail(pod, job, LINES // len(pods), troubles)]
    if not lines and troubles.last is not None:
        raise troubles.last
    return LogTail.objects.update_or_create(job_uid=job.uid, defaults={"lines": lines, "kept_at": runtime.now()})[0]


def _tail(pod: Pod, job: Job, most: int, troubles: Troubles) -> list[list[Any]]:
    """The last lines of one pod: each has its share, so that a talkative one does not hide the one that failed."""
    reading = Reading(Asked(tail=most), troubles=troubles)
    reading.add(sources.of_pods([pod], job, reading.asked))
    try:
        return [_line(source, record) for piece in reading.begin() for source, record in piece]
    finally:
        reading.close()


def _line(source: Any, record: Any) -> list[Any]:
    at = datetime.fromtimestamp(seconds(record.at), UTC).isoformat()
    return [at, source.pod, source.container, record.stream == "e", record.shown()[:LONGEST]]


def due() -> list[Job]:
    """Jobs that ended of late and whose last lines are not kept yet."""
    ended = Job.objects.filter(deleted_at=None, finished_at__gt=runtime.now() - BACK)
    over = ended.filter(phase__in=[phase for phase in JobPhase if phase.is_final])
    return list(over.exclude(Exists(LogTail.objects.filter(job_uid=OuterRef("uid")))).order_by("finished_at")[:AT_ONCE])


def run(stop: threading.Event) -> None:
    """A part: keep the last lines of whatever ends, until told to stop. A row made first says who does it."""
    database, logs = Away("last lines of jobs that ended wait to be kept"), Away("last lines of jobs that ended are not kept")
    while not stop.wait(EVERY):
        try:
            for job in due():
                if LogTail.objects.get_or_create(job_uid=job.uid, defaults={"kept_at": runtime.now()})[1]:
                    _keep_or_say(job, logs)
            database.answered()
        except DatabaseError as error:
            database.failed(error)


def _keep_or_say(job: Job, logs: Away) -> None:
    """A log that cannot be read now is given up: another job's must not wait for it."""
    try:
        keep(job)
        logs.answered()
    except (ApiError, OSError) as error:
        logs.failed(error)
