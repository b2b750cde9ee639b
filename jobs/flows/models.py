"""The projection of flows and templates."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from cluster.models import Projected
from jobs.flows.choices import FlowState


class JobFlow(Projected):
    """A flow of jobs. Rows stay after the object is gone. Counts are of its parts, by what became of their jobs."""

    namespace = models.CharField(max_length=63)
    owner = models.CharField(max_length=150, blank=True, help_text="the user who made it")
    phase = models.CharField(max_length=16, choices=FlowState, default=FlowState.PENDING)
    retain = models.CharField(max_length=16, default="retain", help_text="what becomes of the jobs after success")
    parts = models.PositiveIntegerField(default=0)
    completed = models.PositiveIntegerField(default=0)
    running = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0, help_text="failed, terminated or aborted")
    manifest = models.JSONField(default=dict, help_text="the whole object, without managed fields")

    class Meta:
        app_label = "jobs"
        ordering: ClassVar = ["-created_at", "uid"]
        indexes: ClassVar = [models.Index(fields=["namespace", "name"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class JobTemplate(Projected):
    """What flows make jobs from."""

    namespace = models.CharField(max_length=63)
    owner = models.CharField(max_length=150, blank=True, help_text="the user who made it")
    queue = models.CharField(max_length=253, blank=True)
    tasks = models.PositiveIntegerField(default=0)
    replicas = models.PositiveIntegerField(default=0, help_text="of all tasks together")
    jobs = models.JSONField(default=list, help_text="names of the jobs that were made from it and are there")
    manifest = models.JSONField(default=dict, help_text="the whole object, without managed fields")

    class Meta:
        app_label = "jobs"
        ordering: ClassVar = ["-created_at", "uid"]
        indexes: ClassVar = [models.Index(fields=["namespace", "name"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
