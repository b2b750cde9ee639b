"""Whether an estimate still says anything: how old it is by the cluster's clock, and how much the cluster has changed since."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, Sum

from cluster import runtime
from cluster.models import Node
from jobs.choices import JobPhase
from jobs.models import Job

OLD, GONE = timedelta(minutes=10), timedelta(hours=1)
"""Ages from which an estimate is marked as old, and from which none is shown."""
WALL_OLD, WALL_GONE = 60.0, 360.0
"""The same in wall seconds at least: time of a cluster may run faster than anybody can compute."""
JOBS, LEAST_JOBS = 0.2, 5
"""The share of the jobs of then, and how many at least, that came, started or ended until much has changed."""
GPUS = 0.05
"""The share of what nodes offered then that has come or gone until much has changed."""
KEPT = 10.0
"""Wall seconds for which the cluster is not counted again."""

_guard = threading.Lock()
_known: tuple[datetime, float, bool] | None = None


def basis() -> dict[str, int]:
    """The cluster in few figures: its jobs that wait or run, and what its nodes offer."""
    active = (JobPhase.PENDING, JobPhase.RUNNING)
    nodes = Node.objects.filter(deleted_at=None, ready=True, cordoned=False).aggregate(nodes=Count("uid"), gpus=Sum("gpu_count"))
    jobs = Job.objects.filter(deleted_at=None, phase__in=active).count()
    return {"jobs": jobs, "nodes": nodes["nodes"], "gpus": nodes["gpus"] or 0}


def is_old(at: datetime, then: dict[str, Any], now: datetime) -> bool:
    """Whether an estimate of `at`, made in the cluster of `then`, is to be marked as old."""
    return now - at > max(OLD, timedelta(seconds=WALL_OLD * runtime.speed())) or has_changed(at, then)


def is_gone(at: datetime, now: datetime) -> bool:
    """Whether it is too old to be shown."""
    return now - at > max(GONE, timedelta(seconds=WALL_GONE * runtime.speed()))


def has_changed(at: datetime, then: dict[str, Any]) -> bool:
    """Whether the cluster is much another than `then`. Counted for the newest estimates alone: older ones are judged by age."""
    global _known
    if not then:
        return False
    with _guard:
        known = _known
    if known is not None and (at < known[0] or (at == known[0] and time.monotonic() - known[1] < KEPT)):
        return at == known[0] and known[2]
    found = _moved(at) > max(LEAST_JOBS, JOBS * then["jobs"]) or _differs(then)
    with _guard:
        _known = at, time.monotonic(), found
    return found


def forget() -> None:
    """Count anew."""
    global _known
    with _guard:
        _known = None


def _moved(at: datetime) -> int:
    return Job.objects.filter(Q(created_at__gt=at) | Q(started_at__gt=at) | Q(finished_at__gt=at)).count()


def _differs(then: dict[str, Any]) -> bool:
    now = basis()
    return any(abs(now[name] - then[name]) > GPUS * max(now[name], then[name]) for name in ("nodes", "gpus"))
