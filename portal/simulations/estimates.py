"""When waiting jobs are likely to start: asked for by whoever looks at one, worked out for all of them at once, and kept a while.

A thread of this process plays some futures of the cluster as it is; who looks meanwhile sees the last estimate and its age.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import connections

from cluster import runtime
from cluster.errors import Unavailable
from jobs import starts as foretold
from jobs.models import Job
from jobs.starts import Start, waits
from portal import parts
from portal.models import StartEstimate
from portal.outlook import freshness, ground
from portal.outlook.ground import FUTURES, HORIZON, PAUSE, Ground
from portal.outlook.past import instant
from portal.unblock import copy, line
from portal.unblock.line import Position
from scheduler.simulation.estimate import Estimate

log = structlog.get_logger(__name__)
FRESH = 60.0
"""Seconds of the cluster's time for which estimates are not worked out again."""
LISTED = 300.0
"""The same, for lists of jobs."""
LEAST_REST, RESTS = 10.0, 4.0
"""Wall seconds between two rounds at least, and how many times as long as the last round took: a fifth of the time is spent."""
_guard = threading.Lock()
_last = _rest_until = 0.0
_working: threading.Thread | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """An estimate as pages and the API show it. `state`: done, working (none yet), none (nothing to foretell)."""

    state: str
    row: StartEstimate | None = None
    start: Start | None = None


def of(job: Job) -> Shown:
    """The estimate of a job that waits, and a round of new ones when the last is old. Never waits."""
    if not waits(job):
        return Shown("none")
    row = StartEstimate.objects.filter(pk=job.uid).first()
    start = _ahead(row) if row is not None else None
    is_working = refresh_soon(0.0 if row is None or start is None or start.is_old else FRESH)
    return Shown("done", row, start) if start is not None else Shown("working" if is_working else "none")


def as_json(shown: Shown) -> dict[str, Any]:
    """An estimate for programs."""
    row, start = shown.row, shown.start
    return {
        "state": shown.state,
        **{name: getattr(row, name) if row is not None else None for name in ("at", "rank", "of")},
        "p50": start.p50 if start is not None else None,
        "p90": start.p90 if start is not None else None,
        "due": start is not None and start.is_due,
        "old": start is not None and start.is_old,
        "futures": row.samples if row is not None else 0,
        "known": row.known if row is not None else 0,
        "by": row.by if row is not None else "",
        "horizon_seconds": int(HORIZON),
    }


def starts(uids: Collection[str]) -> dict[str, Start]:
    """What is known of jobs that wait, for a list of them: older answers serve it, so that lists seldom ask for new ones."""
    rows = StartEstimate.objects.filter(pk__in=uids or [""])
    found = {row.job_uid: start for row in rows if (start := _ahead(row)) is not None}
    if uids:
        refresh_soon(FRESH if any(start.is_old for start in found.values()) else LISTED)
    return found


def _ahead(row: StartEstimate) -> Start | None:
    now = runtime.now()
    if freshness.is_gone(row.at, now) or (start := foretold.ahead(row.p50, row.p90, now)) is None:
        return None
    return Start(start.p50, start.p90, start.is_due, freshness.is_old(row.at, row.basis, now))


def refresh_soon(fresh: float = FRESH) -> bool:
    """Begin a round of estimates unless the last is young, or the time for a rest; whether one is under way."""
    global _working
    if parts.current() is None and settings.BASALT_CLUSTER != "kubernetes":
        return False  # no cluster lives in or behind this process
    with _guard:
        if _working is not None and _working.is_alive():
            return True
        now = time.monotonic()
        if now < _rest_until or (_last and (now - _last) * runtime.speed() < fresh):
            return False
        _working = threading.Thread(target=_round, name="start-estimates", daemon=True)
        _working.start()
        return True


def _round() -> None:
    begin = time.monotonic()
    try:
        refresh()
    except Unavailable as error:
        log.info("no start estimates now", why=error.message)
    except Exception:
        log.exception("start estimates failed")
    finally:
        rest_after(begin)
        connections.close_all()


def rest_after(begin: float) -> None:
    """A round that began then has ended: the next one comes after a rest."""
    global _last, _rest_until
    _last = time.monotonic()
    _rest_until = _last + max(LEAST_REST, RESTS * (_last - begin))


def refresh(*, futures: int = FUTURES, pause: float = PAUSE) -> int:
    """Work out estimates for the first jobs in line, and keep them; how many."""
    with ground.turn:
        with copy.current().pinned() as view:
            found = ground.of(view)
            places = positions(view)
        found.as_it_is(futures=futures, pause=pause)
        return keep(found, places)


def positions(view: copy.View) -> dict[str, Position]:
    """The places of the waiting jobs, by PodGroup."""
    among: dict[str, int] = {}
    ranks, waiting = [], line.waiting(view.baseline)
    for uid in waiting:
        queue = view.cache.jobs[uid].queue
        among[queue] = among.get(queue, 0) + 1
        ranks.append((uid, queue, among[queue]))
    return {uid: Position(rank, among[queue], place, len(waiting)) for place, (uid, queue, rank) in enumerate(ranks, start=1)}


def keep(found: Ground, places: Mapping[str, Position]) -> int:
    """Write the estimates to the jobs of PodGroups, which are called `<job>-<uid>`, or as the job for bare pods; how many."""
    assert found.futures is not None
    said = found.futures.said(found.factors)
    if not said:
        return 0
    waiting = Job.objects.filter(deleted_at=None, phase="Pending", started_at=None).values_list("uid", "namespace", "name")
    at, rows, basis = instant(found.at), [], freshness.basis()
    for uid, namespace, name in waiting.iterator():
        key = next((key for key in (f"{namespace}/{name}-{uid}", f"{namespace}/{name}") if key in said), None)
        if key is not None:
            row = _row(uid, at, said[key], places.get(key))
            row.samples, row.known, row.basis = found.futures.count, found.past.times.count, basis
            rows.append(row)
    fields = ["at", "rank", "of", "p50", "p90", "samples", "known", "by", "basis"]
    StartEstimate.objects.bulk_create(rows, update_conflicts=True, unique_fields=["job_uid"], update_fields=fields)
    StartEstimate.objects.filter(at__lt=at - timedelta(days=30)).delete()
    return len(rows)


def _row(uid: str, at: datetime, said: Estimate, place: Position | None) -> StartEstimate:
    row = StartEstimate(job_uid=uid, at=at, by=said.by, first_at=at)
    if place is not None:
        row.rank, row.of = place.place, place.line
    row.p50, row.p90 = (at + timedelta(seconds=each) if each < HORIZON else None for each in (said.p50, said.p90))
    row.first_raw, row.first_middle = min(said.raw, HORIZON), min(said.middle, HORIZON)
    return row
