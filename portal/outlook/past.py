"""What the projection knows of the past, for futures: which jobs came when, and how far past estimates were from the truth."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.choices import JobPhase
from jobs.models import Job
from portal.models import StartEstimate
from scheduler.simulation.estimate import RECENT, Factors, Miss, Misses
from scheduler.simulation.workload import GPU, Role
from scheduler.simulation.workload import Job as Simulated

WINDOW = timedelta(days=7)
ARRIVALS = 500
_COLUMNS = ("name", "namespace", "queue", "owner", "created_at", "replicas", "min_available", "cpu_milli", "memory_bytes", "gpus")


def arrivals(at: datetime) -> list[Simulated]:
    """Jobs of the last days as they came, for futures in which more of their like come."""
    rows = Job.objects.filter(created_at__gt=at - WINDOW, created_at__lte=at, replicas__gt=0).order_by("-created_at", "uid")
    return [_simulated(row) for row in reversed(rows.values(*_COLUMNS)[:ARRIVALS])]


def _simulated(row: dict[str, Any]) -> Simulated:
    count = row["replicas"]
    requests = {"cpu": f"{row['cpu_milli'] // count}m", "memory": str(row["memory_bytes"] // count)}
    if row["gpus"] >= count:
        requests[GPU] = str(row["gpus"] // count)
    least, where = min(max(row["min_available"], 1), count), {name: row[name] for name in ("queue", "namespace", "owner")}
    return Simulated(row["name"], row["created_at"].timestamp(), 0.0, (Role("w", count, requests),), least, **where)


def factors(at: datetime) -> Factors:
    """By what estimates are multiplied, from the latest starts that were foretold and those that are late."""
    known = {row.job_uid: row for row in StartEstimate.objects.filter(first_at__lt=at).order_by("-first_at")[: 4 * RECENT]}
    jobs = Job.objects.filter(uid__in=known).values_list("uid", "started_at", "phase", "deleted_at")
    found, late = Misses(), []
    for uid, start, phase, gone in sorted(jobs, key=lambda each: (each[1] or at, each[0])):
        row = known[uid]
        if row.first_at is None or row.first_raw is None or not (start or (phase == JobPhase.PENDING and gone is None)):
            continue
        raw = row.first_raw
        middle = row.first_middle if row.first_middle is not None else raw
        miss = Miss(max(0.0, ((start or at) - row.first_at).total_seconds()), middle, raw)
        if start:
            found.add(miss)
        else:
            late.append(miss)
    return found.factors(late)


def instant(seconds: float) -> datetime:
    """An epoch second as a time."""
    return datetime.fromtimestamp(seconds, UTC)
