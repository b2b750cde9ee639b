"""Cron jobs as REST lists and pages carry them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobs.cron.models import CronJob
from jobs.cron.runs import begins, schedule_of, stamp_in_zone
from jobs.cron.schedule import ScheduleError

Row = dict[str, Any]
NEXT = 5


def upcoming(cron: CronJob, now: datetime, count: int = NEXT) -> list[float]:
    """When it runs next, in seconds since the epoch; none while it is suspended or gone."""
    if cron.suspended or cron.deleted_at is not None:
        return []
    try:
        schedule = schedule_of(cron.manifest)
    except ScheduleError:
        return []
    if schedule.period is None:
        return schedule.upcoming(now.timestamp(), count)
    begin = begins(cron.manifest, ())
    latest = schedule.missed(begin, now.timestamp()).latest
    return schedule.upcoming(begin if latest is None else latest, count)


def cron_row(cron: CronJob, now: datetime) -> Row:
    """One cron job; `next_at` is in its own time zone."""
    following = upcoming(cron, now, 1)
    return {
        "uid": cron.uid,
        "namespace": cron.namespace,
        "name": cron.name,
        "owner": cron.owner,
        "schedule": cron.schedule,
        "time_zone": cron.time_zone or "UTC",
        "concurrency": cron.concurrency,
        "suspended": cron.suspended,
        "active": cron.active,
        "last_schedule_at": cron.last_schedule_at.isoformat() if cron.last_schedule_at else None,
        "last_success_at": cron.last_success_at.isoformat() if cron.last_success_at else None,
        "next_at": stamp_in_zone(following[0], cron.time_zone or None) if following else None,
        "created_at": cron.created_at.isoformat(),
        "resource_version": str(cron.resource_version),
    }
