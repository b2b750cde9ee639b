"""Operations as their users hold them: whose they are, and beginning and stopping one, for pages and programs alike."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from cluster.access import policy
from cluster.runtime import now
from jobs.bulk import worker
from jobs.bulk.models import BulkOperation, BulkState


def own(user: Any) -> QuerySet[BulkOperation]:
    """Somebody's own operations, the newest first."""
    return BulkOperation.objects.filter(user=user.get_username())


def found(user: Any, pk: UUID) -> BulkOperation | None:
    """An operation that somebody may see: their own, or any for those who may act on everybody's jobs."""
    operation = BulkOperation.objects.filter(pk=pk).first()
    return operation if operation is not None and policy().may(user, "jobs.act", operation) else None


def change(operation: BulkOperation, wish: str) -> bool:
    """Begin (also one that was stopped) or stop; whether it was in a state for that. Doing so twice does no harm."""
    rows = BulkOperation.objects.filter(pk=operation.pk)
    if wish == "start":
        begun = rows.filter(state__in=(BulkState.DRAFT, BulkState.STOPPED)).update(
            state=BulkState.RUNNING, started_at=operation.started_at or now(), worker="", lease_until=None
        )
        worker.bell.set()
        return bool(begun) or operation.state in (BulkState.RUNNING, BulkState.DONE)
    if wish == "stop":
        return bool(rows.filter(state=BulkState.RUNNING).update(state=BulkState.STOPPED)) or operation.state == BulkState.STOPPED
    return False
