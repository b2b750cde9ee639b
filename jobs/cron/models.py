"""The projection of cron jobs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from cluster.models import Projected


class CronJob(Projected):
    """A job by schedule. Rows stay after the object is gone."""

    namespace = models.CharField(max_length=63)
    owner = models.CharField(max_length=150, blank=True, help_text="the user who made it")
    schedule = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=60, blank=True, help_text="empty: UTC")
    concurrency = models.CharField(max_length=16, default="Allow")
    suspended = models.BooleanField(default=False)
    active = models.PositiveIntegerField(default=0, help_text="runs that have not finished")
    last_schedule_at = models.DateTimeField(null=True, help_text="the time of the latest run")
    last_success_at = models.DateTimeField(null=True)
    manifest = models.JSONField(default=dict, help_text="the whole object, without managed fields")

    class Meta:
        app_label = "jobs"
        ordering: ClassVar = ["-created_at", "uid"]
        indexes: ClassVar = [models.Index(fields=["namespace", "name"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
