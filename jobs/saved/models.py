"""What the portal keeps of how people look at the job list."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """Whom a view is the first one for."""

    USER = "user", _("everybody")
    STAFF = "staff", _("administrators")


class SavedView(models.Model):
    """The query string of a job list under a name. `default_for` names the role that sees it when it asks for nothing."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=2000, help_text="as in the address: filters, order, grouping, columns")
    is_shared = models.BooleanField(default=False)
    default_for = models.CharField(max_length=8, choices=Role, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_view_name"),
            models.UniqueConstraint(fields=["default_for"], condition=~models.Q(default_for=""), name="saved_view_default"),
        ]

    def __str__(self) -> str:
        return self.name


class ListColumns(models.Model):
    """The columns that somebody chose for the job list, in their order."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", primary_key=True)
    columns = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.user}: {', '.join(self.columns)}"
