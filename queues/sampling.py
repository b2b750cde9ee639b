"""Queues' shares over time: one sample of every queue each few seconds, kept for some days."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from queues.models import QueueSample

EVERY = timedelta(seconds=10)
KEEP = timedelta(days=7)
AMOUNTS = ("allocated", "deserved", "request", "inqueue")


class Sampler:
    """Writes at most one sample of each queue every `EVERY`, by the time of the cluster, and forgets those older than `KEEP`."""

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._pruned: datetime | None = None

    def offer(self, shares: Mapping[str, Mapping[str, Any]], at: datetime) -> bool:
        """Keep these shares (columns of `queues.projection.SHARES`) if a sample is due; whether it was."""
        if not shares or (self._last is not None and at - self._last < EVERY):
            return False
        samples = [
            QueueSample(queue=name, at=at, **{key: share[f"share_{key}"] for key in AMOUNTS}) for name, share in shares.items()
        ]
        QueueSample.objects.bulk_create(samples, batch_size=500)
        self._last = at
        if self._pruned is None or at - self._pruned > timedelta(hours=1):
            QueueSample.objects.filter(at__lt=at - KEEP).delete()
            self._pruned = at
        return True
