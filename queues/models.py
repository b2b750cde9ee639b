"""The projection of queues, and their shares over time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from cluster.models import Projected
from queues.choices import QueueState


class Queue(Projected):
    """A queue. Amounts map a resource to its smallest unit (milli-CPU, bytes, milli-units of other resources).

    `capability`, `deserved` and `guarantee` are what the queue says; `share_*` are what the scheduler computed last.
    """

    parent = models.CharField(max_length=253, blank=True, help_text="empty only for root")
    weight = models.PositiveIntegerField(default=1)
    priority = models.PositiveIntegerField(default=0)
    reclaimable = models.BooleanField(default=True)
    state = models.CharField(max_length=16, choices=QueueState, default=QueueState.OPEN)
    capability = models.JSONField(default=dict)
    deserved = models.JSONField(default=dict)
    guarantee = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)
    share = models.FloatField(default=0.0, help_text="dominant share of what it deserves, 1.0 = all of it")
    share_allocated = models.JSONField(default=dict)
    share_deserved = models.JSONField(default=dict)
    share_request = models.JSONField(default=dict, help_text="allocated plus what pending pods ask")
    share_inqueue = models.JSONField(default=dict, help_text="admitted and not yet placed")
    groups_pending = models.PositiveIntegerField(default=0)
    groups_inqueue = models.PositiveIntegerField(default=0)
    groups_running = models.PositiveIntegerField(default=0)
    groups_unknown = models.PositiveIntegerField(default=0)
    groups_completed = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class QueueSample(models.Model):
    """A queue's shares at one moment, in smallest units."""

    queue = models.CharField(max_length=253)
    at = models.DateTimeField(db_index=True)
    allocated = models.JSONField(default=dict)
    deserved = models.JSONField(default=dict)
    request = models.JSONField(default=dict)
    inqueue = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["at"]
        indexes: ClassVar = [models.Index(fields=["queue", "at"])]

    def __str__(self) -> str:
        return f"{self.queue} {self.at:%Y-%m-%d %H:%M:%S}"
