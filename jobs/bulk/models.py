"""Actions on many jobs at once, as they are kept."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class BulkState(models.TextChoices):
    """Where an operation is: looked at, at work, ended, given up before its end."""

    DRAFT = "draft", _("Preview")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    STOPPED = "stopped", _("Stopped")


class Outcome(models.TextChoices):
    """What became of one job."""

    WAITING = "", _("waiting")
    ASKED = "asked", _("being asked")
    DONE = "done", _("done")
    SAME = "same", _("was so already")
    REFUSED = "refused", _("refused")
    FAILED = "failed", _("failed")


class BulkOperation(models.Model):
    """One action for a fixed set of jobs. Whoever is at work on it renews `lease_until`; after that another may go on."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.CharField(max_length=150)
    action = models.CharField(max_length=16)
    argument = models.CharField(max_length=253, blank=True, help_text="what the action takes: the class, for a priority")
    query = models.CharField(max_length=2000, blank=True, help_text="the filter that it was made from; empty: a selection")
    state = models.CharField(max_length=8, choices=BulkState, default=BulkState.DRAFT)
    total = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    worker = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, help_text="wall time")

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [models.Index(fields=["state", "created_at"], name="bulk_by_state")]

    def __str__(self) -> str:
        return f"{self.action} {self.total} jobs"

    @property
    def owner(self) -> str:
        """Whose it is, as the policy asks."""
        return self.user


class BulkItem(models.Model):
    """One job of an operation, in the order of the list, and what became of it."""

    operation = models.ForeignKey(BulkOperation, on_delete=models.CASCADE, related_name="items")
    job = models.ForeignKey("jobs.Job", on_delete=models.DO_NOTHING, db_constraint=False, related_name="+")
    outcome = models.CharField(max_length=8, choices=Outcome, blank=True, default=Outcome.WAITING)
    reason = models.CharField(max_length=16, blank=True, help_text="why it was refused, as a code")
    message = models.TextField(blank=True, help_text="what the cluster said")

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["operation", "outcome", "id"], name="bulk_item_by_outcome")]
        constraints: ClassVar = [models.UniqueConstraint(fields=["operation", "job"], name="bulk_item_job")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.outcome or 'waiting'}"
