"""What the projection knows of the past: how long jobs ran, and which came when."""

from __future__ import annotations

from django.db.models import F

from jobs.models import Job
from scheduler.simulation.runtimes import Likeness, RunTimes, prefix_of

MOST = 5000
"""Ended jobs that are looked at, the newest."""


def run_times() -> RunTimes:
    """Run times of the newest jobs that ended by themselves; aborted ones say nothing of how long their like run."""
    done = Job.objects.filter(phase__in=("Completed", "Completing"), started_at__isnull=False, finished_at__gt=F("started_at"))
    found = RunTimes()
    for row in done.order_by("-finished_at").values("owner", "queue", "name", "gpus", "started_at", "finished_at")[:MOST]:
        seconds = (row["finished_at"] - row["started_at"]).total_seconds()
        found.add(like(row["owner"], row["queue"], row["name"], row["gpus"]), max(seconds, 1.0))
    return found


def like(owner: str, queue: str, name: str, gpus: float) -> Likeness:
    """What a job has in common with others."""
    return Likeness(owner, queue, prefix_of(name), float(gpus))
