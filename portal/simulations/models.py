"""Simulations that people start, and estimates of when waiting jobs start."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from cluster import runtime
from portal.simulations.names import named


class State(models.TextChoices):
    """Where a simulation is; `mark` is how pages draw it."""

    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")

    @property
    def mark(self) -> str:
        """The state mark of pages."""
        return {"waiting": "pending", "running": "running", "done": "completed", "failed": "failed"}.get(self.value, "aborted")

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to it."""
        return self in (State.DONE, State.FAILED, State.CANCELLED)


class SimulationKind(models.TextChoices):
    """What is simulated."""

    REPLAY = "replay", _("replay")
    EFFICIENCY = "efficiency", _("efficiency experiment")


class Simulation(models.Model):
    """One simulation. `params` say what is simulated, `progress` how far it is (as the runner tells it), `share` from 0 to 1.

    When it was made, began and ended is told by the cluster's clock, as all that pages show. `seen_at` is the last sign of life
    of whoever works on it, by the wall's: one that is running and was not seen for a while is taken up again from its
    checkpoint. Its files are in the folder of its number.
    """

    kind = models.CharField(max_length=16, choices=SimulationKind.choices, default=SimulationKind.REPLAY)
    title = models.CharField(max_length=200)
    owner = models.CharField(max_length=150, db_index=True)
    params = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING, db_index=True)
    share = models.FloatField(default=0.0)
    progress = models.JSONField(default=dict)
    cancel = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=runtime.now)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True, default=timezone.now)
    result = models.JSONField(null=True)

    class Meta:
        app_label = "portal"
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return self.title

    @property
    def name(self) -> str:
        """The title as its reader has it."""
        return named(self.title)

    @property
    def standing(self) -> State:
        """The state with its meaning."""
        return State(self.state)

    @property
    def percent(self) -> int:
        """How far it is, 0 to 100."""
        return int(100 * self.share)


class StartEstimate(models.Model):
    """When a waiting job is likely to start, as of `at`: in half of the simulated futures by `p50`, in nine of ten by `p90`.

    None: not within the horizon in so many of them. `samples` are the futures, `known` of how many past jobs run times were
    taken, `by` what those had in common with the jobs here; `basis` is the cluster that they were played in, in figures by
    which it is seen to have changed (`portal.outlook.freshness`). `first_at`, `first_middle` and `first_raw` keep what P50 and
    P90 were foretold first, in seconds before past misses were heeded: what the next estimates are calibrated by.
    """

    job_uid = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField(db_index=True)
    rank = models.PositiveIntegerField(null=True)
    of = models.PositiveIntegerField(null=True)
    p50 = models.DateTimeField(null=True)
    p90 = models.DateTimeField(null=True)
    samples = models.PositiveIntegerField(default=0)
    known = models.PositiveIntegerField(default=0)
    by = models.CharField(max_length=16, blank=True)
    first_at = models.DateTimeField(null=True)
    first_raw = models.FloatField(null=True, help_text="seconds from first_at")
    first_middle = models.FloatField(null=True, help_text="seconds from first_at")
    basis = models.JSONField(default=dict)

    class Meta:
        app_label = "portal"

    def __str__(self) -> str:
        return self.job_uid
