"""The projection of queues, and their shares over time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy

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
    """A queue's shares at one moment, in smallest units.

    `totals` are running sums since its run began (`queues.integrals.PARTS` by resource, in smallest units × milliseconds);
    None where they were not kept.
    """

    queue = models.CharField(max_length=253)
    at = models.DateTimeField(db_index=True)
    allocated = models.JSONField(default=dict)
    deserved = models.JSONField(default=dict)
    request = models.JSONField(default=dict)
    inqueue = models.JSONField(default=dict)
    totals = models.JSONField(null=True)

    class Meta:
        ordering: ClassVar = ["at"]
        indexes: ClassVar = [models.Index(fields=["queue", "at"])]

    def __str__(self) -> str:
        return f"{self.queue} {self.at:%Y-%m-%d %H:%M:%S}"


class SampleTime(models.Model):
    """A moment at which every queue was sampled.

    Samples of one `run` (milliseconds of its first moment) follow on each other without a gap: what happened between two of
    them is known, between two runs it is not. `capacity` is what the nodes had together, `total` its running sum as in
    `QueueSample.totals`.
    """

    at = models.DateTimeField(unique=True)
    run = models.BigIntegerField()
    cycle = models.BigIntegerField(default=0, help_text="the scheduler's, 0 where another one decides")
    capacity = models.JSONField(default=dict)
    total = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["at"]
        indexes: ClassVar = [models.Index(fields=["run", "at"])]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"


class Verb(models.TextChoices):
    """What became of a queue."""

    CREATED = "created", gettext_lazy("created")
    CHANGED = "changed", gettext_lazy("changed")
    DELETED = "deleted", gettext_lazy("deleted")
    ASKED = "asked", gettext_lazy("asked")


class QueueChange(models.Model):
    """One change of a queue, whoever made it: `diff` maps a field to its old and new value, amounts in smallest units.

    `user` is empty for what did not come from a page or the API of Basalt: kubectl, a controller.
    """

    uid = models.CharField(max_length=36)
    name = models.CharField(max_length=253, db_index=True)
    at = models.DateTimeField()
    user = models.CharField(max_length=253, blank=True)
    verb = models.CharField(max_length=16, choices=Verb)
    version = models.BigIntegerField()
    diff = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at", "-version"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["uid", "version", "verb"], name="one_row_a_change_of_a_queue")]

    def __str__(self) -> str:
        return f"{self.name} {self.verb}"
