"""When waiting jobs are likely to start: asked for by whoever looks at one, worked out for all of them at once, and kept a while.

A thread of this process plays some futures of the cluster as it is; who looks meanwhile sees the last estimate and its age.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connections
from django.db.models import F

from cluster import runtime
from cluster.errors import Unavailable
from jobs.models import Job
from jobs.starts import Start, waits
from portal import parts
from portal.models import StartEstimate
from portal.simulations import present, work
from portal.simulations.history import run_times
from portal.unblock import copy
from scheduler.simulation.engine import Simulation
from scheduler.simulation.estimate import RECENT, Estimate, Misses, Past, estimate
from scheduler.simulation.workload import GPU, Role
from scheduler.simulation.workload import Job as Simulated

log = structlog.get_logger(__name__)
FRESH = 60.0
"""Seconds of wall time for which estimates are not worked out again."""
LISTED = 300.0
"""The same, for lists of jobs."""
MOST = 200
"""Waiting jobs that are estimated, the first in line."""
FUTURES = 12
HORIZON = 7 * 86_400.0
STEPS, LEAST_STEPS = 300, 10
"""Cycles after which a future is left: what has not started by then is not in sight. Fewer where cycles take long."""
BUDGET = 30.0
"""Wall seconds that one round may take; fewer futures are played then, shorter ones if need be."""
LEAST_FUTURES = 5
WINDOW = timedelta(days=7)
ARRIVALS = 500
_guard = threading.Lock()
_last = 0.0
_working: threading.Thread | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """An estimate as pages and the API show it. `state`: done, working (none yet), none (nothing to foretell)."""

    state: str
    row: StartEstimate | None = None


def of(job: Job) -> Shown:
    """The estimate of a job that waits, and a round of new ones when the last is old. Never waits."""
    if not waits(job):
        return Shown("none")
    is_working = refresh_soon()
    row = StartEstimate.objects.filter(pk=job.uid).exclude(p90__lt=runtime.now()).first()  # past its P90 it was proved wrong
    return Shown("done", row) if row is not None else Shown("working" if is_working else "none")


def starts(uids: Collection[str]) -> dict[str, Start]:
    """What is known of jobs that wait, for a list of them: older answers serve it, so that lists seldom ask for new ones."""
    if uids:
        refresh_soon(LISTED)
    rows = StartEstimate.objects.filter(pk__in=uids or [""]).exclude(p90__lt=runtime.now())
    return {row.job_uid: Start(row.p50, row.p90) for row in rows}


def refresh_soon(fresh: float = FRESH) -> bool:
    """Begin a round of estimates unless the last is young; whether one is under way."""
    global _working
    if parts.current() is None and settings.BASALT_CLUSTER != "kubernetes":
        return False  # no cluster lives in or behind this process
    with _guard:
        if _working is not None and _working.is_alive():
            return True
        if time.monotonic() - _last < fresh and _last:
            return False
        _working = threading.Thread(target=_round, name="start-estimates", daemon=True)
        _working.start()
        return True


def _round() -> None:
    global _last
    try:
        refresh()
    except Unavailable as error:
        log.info("no start estimates now", why=error.message)
    except Exception:
        log.exception("start estimates failed")
    finally:
        _last = time.monotonic()
        connections.close_all()


def refresh(*, futures: int = FUTURES, pause: float = 0.5) -> int:
    """Work out estimates for the first jobs in line, and keep them; how many."""
    with copy.current().pinned() as view:
        objs, now, places = present.objects_now(view), view.at, dict(view.places)
        never = {uid for uid, job in view.cache.jobs.items() if job.impossible is not None}
    times = run_times()
    workload = present.workload(objs, now, times)
    simulation = Simulation(workload, work.conf_in_force())
    begin = time.thread_time()
    simulation.look()
    steps = steps_within(time.thread_time() - begin)
    waiting = [run for run in simulation.jobs.runs.values() if run.outcome.start is None and run.job.key not in never]
    waiting.sort(key=lambda run: places.get(run.job.key, len(places) + 1))
    chosen = waiting[:MOST]
    if not chosen:
        return 0
    past = Past(times, _arrivals(now))
    heed = _Pace(time.monotonic() + BUDGET, pause)
    found = estimate(
        simulation, past, [run.index for run in chosen], futures=futures, horizon=HORIZON,
        factor=_misses(now).factor(), steps=steps, stop=heed.stop,
    )  # fmt: skip
    by_group = {run.job.key: found[run.index] for run in chosen if run.index in found}
    return _keep(by_group, places, now, heed.futures, times.count)


def steps_within(cycle: float) -> int:
    """How far to look into the least number of futures, when one cycle takes so many processor seconds."""
    return max(LEAST_STEPS, min(STEPS, int(BUDGET / LEAST_FUTURES / max(cycle, 1e-6))))


class _Pace:
    """Counts futures, rests between them, and ends the round when its time is up."""

    def __init__(self, until: float, pause: float) -> None:
        self._until, self._pause = until, pause
        self._since = time.monotonic()
        self.futures = 0

    def stop(self) -> bool:
        """Asked before each future."""
        now = time.monotonic()
        if self.futures >= LEAST_FUTURES and now > self._until:
            return True
        time.sleep(min(5.0, (now - self._since) * self._pause))
        self._since = time.monotonic()
        self.futures += 1
        return False


def _keep(found: dict[str, Estimate], places: dict[str, int], now: float, samples: int, known: int) -> int:
    """Write the estimates to the jobs of PodGroups, which are called `<job>-<uid>`, or as the job for bare pods."""
    waiting = Job.objects.filter(deleted_at=None, phase="Pending", started_at=None).values_list("uid", "namespace", "name")
    at, rows = datetime.fromtimestamp(now, UTC), []
    for uid, namespace, name in waiting.iterator():
        said = found.get(f"{namespace}/{name}-{uid}") or found.get(f"{namespace}/{name}")
        if said is None:
            continue
        place = places.get(f"{namespace}/{name}-{uid}") or places.get(f"{namespace}/{name}")
        row = StartEstimate(job_uid=uid, at=at, rank=place, of=len(places) or None, samples=samples, known=known, by=said.by)
        row.p50, row.p90 = _instant(at, said.p50), _instant(at, said.p90)
        row.first_at, row.first_raw = at, min(said.raw, HORIZON)
        rows.append(row)
    fields = ["at", "rank", "of", "p50", "p90", "samples", "known", "by"]
    StartEstimate.objects.bulk_create(rows, update_conflicts=True, unique_fields=["job_uid"], update_fields=fields)
    StartEstimate.objects.filter(at__lt=at - timedelta(days=30)).delete()
    return len(rows)


def _instant(at: datetime, seconds: float) -> datetime | None:
    return at + timedelta(seconds=seconds) if seconds < HORIZON else None


def _misses(now: float) -> Misses:
    """How far the latest starts that were foretold were from it."""
    found, at = Misses(), datetime.fromtimestamp(now, UTC)
    known = {row.job_uid: row for row in StartEstimate.objects.filter(first_at__lt=at).order_by("-first_at")[: 4 * RECENT]}
    started = Job.objects.filter(uid__in=known, started_at__isnull=False).order_by("started_at").values_list("uid", "started_at")
    for uid, start in started:
        row = known[uid]
        if row.first_at is not None and row.first_raw is not None:
            found.add(max(0.0, (start - row.first_at).total_seconds()), row.first_raw)
    return found


def _arrivals(now: float) -> list[Simulated]:
    """Jobs of the last days as they came, for futures in which more of their like come."""
    at = datetime.fromtimestamp(now, UTC)
    rows = Job.objects.filter(created_at__gt=at - WINDOW, created_at__lte=at, replicas__gt=0).order_by("-created_at", "uid")
    return [_simulated(row) for row in reversed(rows.annotate(begin=F("created_at")).values(*_COLUMNS)[:ARRIVALS])]


_COLUMNS = ("name", "namespace", "queue", "owner", "created_at", "replicas", "min_available", "cpu_milli", "memory_bytes", "gpus")


def _simulated(row: dict[str, Any]) -> Simulated:
    count = row["replicas"]
    requests = {"cpu": f"{row['cpu_milli'] // count}m", "memory": str(row["memory_bytes"] // count)}
    if row["gpus"] >= count:
        requests[GPU] = str(row["gpus"] // count)
    least, where = min(max(row["min_available"], 1), count), {name: row[name] for name in ("queue", "namespace", "owner")}
    return Simulated(row["name"], row["created_at"].timestamp(), 0.0, (Role("w", count, requests),), least, **where)
