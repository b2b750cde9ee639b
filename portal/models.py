"""What the portal alone knows: where the scheduler's cycles went."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Cycle(models.Model):
    """One scheduling cycle that decided something, or the last idle one. `actions` maps an action to its milliseconds."""

    number = models.BigIntegerField()
    at = models.DateTimeField(db_index=True)
    milliseconds = models.FloatField()
    actions = models.JSONField(default=dict)
    considered = models.PositiveIntegerField(default=0, help_text="jobs")
    bound = models.PositiveIntegerField(default=0, help_text="pods")
    evicted = models.PositiveIntegerField(default=0, help_text="pods")

    class Meta:
        ordering: ClassVar = ["-at"]

    def __str__(self) -> str:
        return f"cycle {self.number}"
