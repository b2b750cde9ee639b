"""What the database keeps without need: sessions and tokens that ran out, old sign-ins, old events, answers to old requests.

Everything else keeps itself within bounds when it writes (samples of queues, cycles, evictions), or is history that stays (jobs).
A beat asks for this once a day in production; `manage.py tidy` does it at any time, and `manage.py run` by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone
from knox.models import AuthToken

from cluster.models import Event, IdempotentRequest
from cluster.rest.idempotency import KEEP as KEEP_ANSWERS

log = structlog.get_logger(__name__)

EVERY = timedelta(days=1)
KEEP_SIGN_INS = timedelta(days=90)
A_PART = 1000
"""Rows that go in one transaction: a page's write need never wait long for this."""


def tidy(now: datetime | None = None, heard: Callable[[], bool] = lambda: False) -> dict[str, int]:
    """Delete what is out of date; rows a table. Ends early, with what it did, once `heard()` says to."""
    at = now or timezone.now()
    old = timedelta(days=settings.BASALT_EVENTS_KEEP_DAYS)
    found: dict[str, QuerySet] = {
        "sessions": Session.objects.filter(expire_date__lt=at),
        "tokens": AuthToken.objects.filter(expiry__lt=at),
        "sign-ins": AccessLog.objects.filter(attempt_time__lt=at - KEEP_SIGN_INS),
        "refused sign-ins": AccessFailureLog.objects.filter(attempt_time__lt=at - KEEP_SIGN_INS),
        "attempts": AccessAttempt.objects.filter(attempt_time__lt=at - KEEP_SIGN_INS),
        "events": Event.objects.filter(last_seen__lt=at - old),
        "answers": IdempotentRequest.objects.filter(at__lt=at - KEEP_ANSWERS),
    }
    done = {name: _delete(rows, heard) for name, rows in found.items()}
    log.info("tidied", **{name.replace(" ", "_"): count for name, count in done.items() if count})
    return done


def run(stop: threading.Event) -> None:
    """Tidy at once, then every day, until `stop`."""
    while not stop.is_set():
        tidy(heard=stop.is_set)
        stop.wait(EVERY.total_seconds())


def _delete(rows: QuerySet, heard: Callable[[], bool]) -> int:
    count = 0
    while not heard() and (keys := list(rows.order_by("pk").values_list("pk", flat=True)[:A_PART])):
        rows.model._default_manager.filter(pk__in=keys).delete()
        count += len(keys)
    return count
