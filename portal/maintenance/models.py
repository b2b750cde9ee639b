"""Drains of nodes, as they are kept: who wanted which nodes empty, when and why, and how far each of them is."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class Mode(models.TextChoices):
    """What becomes of the pods."""

    EVICT = "evict", _("evict them now")
    WAIT = "wait", _("wait until they have ended")
    WAIT_THEN_EVICT = "wait-then-evict", _("wait until the deadline, then evict what is left")


class DrainState(models.TextChoices):
    """Where a drain is."""

    RUNNING = "running", _("Draining")
    CANCELLING = "cancelling", _("Being cancelled")
    DONE = "done", _("Done")
    CANCELLED = "cancelled", _("Cancelled")
    OVERDUE = "overdue", _("Time was up")

    @property
    def mark(self) -> str:
        """The state mark of pages."""
        return {"running": "terminating", "cancelling": "terminating", "done": "completed", "overdue": "failed"}.get(
            self.value, "aborted"
        )


class NodeState(models.TextChoices):
    """Where one node of a drain is."""

    WAITING = "waiting", _("waits for its turn")
    DRAINING = "draining", _("Draining")
    DRAINED = "drained", _("Drained")
    GONE = "gone", _("gone from the cluster")
    REOPENED = "reopened", _("somebody let it take pods again")
    LEFT = "left", _("given up")

    @property
    def mark(self) -> str:
        """The state mark of pages."""
        found = {"waiting": "pending", "draining": "terminating", "drained": "completed", "gone": "unknown", "left": "failed"}
        return found.get(self.value, "aborted")


UNENDED = (DrainState.RUNNING, DrainState.CANCELLING)
ACTIVE = (NodeState.WAITING, NodeState.DRAINING)


class Drain(models.Model):
    """Some nodes that are to be emptied, all at once or `in_turn`. Whoever works on it renews `lease_until`.

    `bare` and `local_data` say that pods which nobody makes again, or which lose what they keep on their node, go too.
    `uncordons`: once it is cancelled, the nodes that it cordoned take pods again.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.CharField(max_length=150)
    reason = models.CharField(max_length=500)
    mode = models.CharField(max_length=16, choices=Mode, default=Mode.EVICT)
    in_turn = models.BooleanField(default=False)
    bare = models.BooleanField(default=False)
    local_data = models.BooleanField(default=False)
    deadline = models.DateTimeField(null=True)
    state = models.CharField(max_length=12, choices=DrainState, default=DrainState.RUNNING, db_index=True)
    uncordons = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True, help_text="who cancelled it")
    worker = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, help_text="wall time")

    class Meta:
        app_label = "portal"
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"drain {self.pk}"


class DrainedNode(models.Model):
    """One node of a drain. `pods` had to go at the first look, `left` are still there at the last; None: nobody looked yet.

    `held` are pods that something keeps, at most so many as are shown: namespace, name, uid, `code` and `why`; `held_count`
    is how many there are. `trouble` is what the cluster said when it did not do what it was asked.
    """

    drain = models.ForeignKey(Drain, on_delete=models.CASCADE, related_name="nodes")
    place = models.PositiveIntegerField()
    node = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    state = models.CharField(max_length=12, choices=NodeState, default=NodeState.WAITING)
    was_cordoned = models.BooleanField(default=False)
    started_at = models.DateTimeField(null=True)
    cordoned_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    pods = models.PositiveIntegerField(null=True)
    left = models.PositiveIntegerField(null=True)
    held = models.JSONField(default=list)
    held_count = models.PositiveIntegerField(default=0)
    trouble = models.TextField(blank=True)
    told = models.JSONField(default=list, help_text="uids of the jobs whose events tell of it")

    class Meta:
        app_label = "portal"
        ordering: ClassVar = ["place"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["node"], condition=models.Q(state__in=("waiting", "draining")), name="one_drain_a_node"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.state}"
