"""What people do with a cron job, shown at once."""

from __future__ import annotations

from cluster import runtime
from cluster.port import Obj
from cluster.projection import Batch
from jobs.cron import operations
from jobs.cron.models import CronJob
from jobs.cron.projection import project_crons
from jobs.projection import project_jobs


def act(cron: CronJob, action: str, user: str) -> Obj:
    """Suspend, resume or trigger exactly this cron job. Raises what `operations.act` does."""
    at = runtime.now().timestamp()
    obj = operations.act(runtime.current(), cron.namespace, cron.name, action, uid=cron.uid, user=user, at=at)
    (project_jobs if action == "trigger" else project_crons)(Batch(upserts=[obj]))
    return obj
