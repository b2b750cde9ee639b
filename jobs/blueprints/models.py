"""Blueprints as they are kept. A version is written once; what a job was made from stays what it was."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class Blueprint(models.Model):
    """A job to fill out, under its name. What it says is in its versions; `current` is the number of the newest."""

    name = models.CharField(max_length=63, unique=True)
    title = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    owner = models.CharField(max_length=150)
    current = models.PositiveIntegerField(default=0)
    is_archived = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["title", "name"]

    def __str__(self) -> str:
        return self.title or self.name


class AudienceKind(models.TextChoices):
    """By what a blueprint is narrowed."""

    GROUP = "group", _("group")
    QUEUE = "queue", _("queue")
    NAMESPACE = "namespace", _("namespace")


class Audience(models.Model):
    """One group, queue or namespace that a blueprint is for. Without any of a kind, that kind does not narrow it."""

    blueprint = models.ForeignKey(Blueprint, on_delete=models.CASCADE, related_name="audience")
    kind = models.CharField(max_length=9, choices=AudienceKind)
    value = models.CharField(max_length=253)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["blueprint", "kind", "value"], name="blueprint_audience"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class BlueprintVersion(models.Model):
    """One version: the whole definition as its author wrote it, comments and all."""

    blueprint = models.ForeignKey(Blueprint, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    source = models.TextField()
    author = models.CharField(max_length=150)
    note = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["blueprint", "number"], name="blueprint_version")]

    def __str__(self) -> str:
        return f"{self.blueprint} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write it, once."""
        if not self._state.adding:
            raise TypeError(f"{self} is written already, and versions never change: add a new one")
        super().save(*args, **kwargs)


class BlueprintUse(models.Model):
    """A job that was made from a version. The portal writes it after it has looked at the job; no annotation counts as one."""

    job_uid = models.CharField(primary_key=True, max_length=36)
    version = models.ForeignKey(BlueprintVersion, on_delete=models.PROTECT, related_name="uses")
    user = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["version", "-at"], name="blueprint_use")]

    def __str__(self) -> str:
        return f"{self.job_uid} of {self.version_id}"
