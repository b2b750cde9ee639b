"""Cron jobs as rows."""

from __future__ import annotations

from cluster import objects
from cluster.kinds import CRON_JOB
from cluster.port import Obj
from cluster.projection import Batch, Projection, apply, common, differs, instant, notify, writing
from jobs import keys
from jobs.cron.models import CronJob
from jobs.disclosure import as_read


def cron(obj: Obj, deleted: bool = False) -> CronJob:
    """A CronJob as its row."""
    spec, status = obj["spec"], obj.get("status") or {}
    return CronJob(
        **common(obj, deleted),
        namespace=objects.namespace(obj),
        owner=objects.annotations(obj).get(keys.OWNER, ""),
        schedule=str(spec.get("schedule") or "")[:200],
        time_zone=str(spec.get("timeZone") or "")[:60],
        concurrency=spec.get("concurrencyPolicy") or "Allow",
        suspended=bool(spec.get("suspend")),
        active=len(status.get("active") or ()),
        last_schedule_at=instant(status.get("lastScheduleTime")),
        last_success_at=instant(status.get("lastSuccessfulTime")),
        manifest=as_read(obj),
    )


def project_crons(batch: Batch) -> None:
    """Cron jobs, forward only."""
    with writing(CronJob):
        changes = apply(CronJob, cron, batch)
        notify("crons", (change.after.uid for change in changes if differs(change, ("manifest", "deleted_at"))))


PROJECTIONS = {CRON_JOB: Projection(CronJob, project_crons)}
