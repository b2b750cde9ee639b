"""What the portal alone knows: where the scheduler's cycles went, and who had to give way in them."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.conf import settings
from django.db import models

from portal.maintenance.models import Drain, DrainedNode
from portal.simulations.models import Simulation, SimulationKind, StartEstimate, State

__all__ = [
    "ConfigurationVersion", "Cycle", "Drain", "DrainedNode", "Eviction", "Placement", "SchedulerConfiguration",
    "Simulation", "SimulationKind", "StartEstimate", "State", "Writing",
]  # fmt: skip


class Cycle(models.Model):
    """One scheduling cycle that decided something, or the last idle one. `actions` maps an action to its milliseconds.

    `hooks` maps an action to the milliseconds of each plugin in it (`open` and `close` are the session's own), `opening` those
    until the session stood; `waited` is for how many milliseconds the first news that it took in had waited. `decisions` has
    what became of jobs (`portal.cockpit.decided`).
    """

    number = models.BigIntegerField(db_index=True)
    at = models.DateTimeField(db_index=True)
    milliseconds = models.FloatField()
    actions = models.JSONField(default=dict)
    considered = models.PositiveIntegerField(default=0, help_text="jobs")
    bound = models.PositiveIntegerField(default=0, help_text="pods")
    evicted = models.PositiveIntegerField(default=0, help_text="pods")
    hooks = models.JSONField(default=dict)
    opening = models.FloatField(null=True)
    waited = models.FloatField(null=True)
    decisions = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at"]

    def __str__(self) -> str:
        return f"cycle {self.number}"


class Eviction(models.Model):
    """One pod that the scheduler evicted. Jobs are PodGroups as `namespace/name`; `freed` in smallest units.

    `victim_job_uid` and `preemptor_uid` are the jobs' own, empty for bare pods. `proved`: no smaller set of victims would
    have done; else none of them could be spared.
    """

    at = models.DateTimeField(db_index=True)
    cycle = models.BigIntegerField()
    action = models.CharField(max_length=32)
    rule = models.CharField(max_length=253, help_text="plugins that allowed it")
    reason = models.TextField()
    node = models.CharField(max_length=253)
    victim = models.CharField(max_length=512, help_text="pod, as namespace/name")
    victim_uid = models.CharField(max_length=64)
    victim_job = models.CharField(max_length=512)
    victim_job_uid = models.CharField(max_length=64, blank=True, db_index=True)
    victim_queue = models.CharField(max_length=253)
    preemptor = models.CharField(max_length=512, blank=True)
    preemptor_uid = models.CharField(max_length=64, blank=True, db_index=True)
    preemptor_pod = models.CharField(max_length=512, blank=True)
    preemptor_queue = models.CharField(max_length=253, blank=True)
    freed = models.JSONField(default=dict)
    proved = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.victim} evicted by {self.action}"


class Placement(models.Model):
    """Pods of one job (PodGroup, as `namespace/name`) that one cycle gave nodes, and what they took, in smallest units.

    `job_uid` is the job's own, empty for bare pods.
    """

    at = models.DateTimeField(db_index=True)
    cycle = models.BigIntegerField()
    queue = models.CharField(max_length=253)
    job = models.CharField(max_length=512)
    job_uid = models.CharField(max_length=64, blank=True)
    pods = models.PositiveIntegerField()
    taken = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.pods} pods of {self.job}"


class SchedulerConfiguration(models.Model):
    """The configuration in force, as the scheduler told it last: one row. `faults`: `{line, message}` of `broken`, not used."""

    source = models.CharField(max_length=1024, blank=True, help_text="path of the file, or ConfigMap; empty: built in")
    watched = models.CharField(max_length=1024, blank=True, help_text="ConfigMap that the scheduler looks for; empty: none")
    text = models.TextField()
    since = models.DateTimeField()
    broken = models.TextField(blank=True)
    faults = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.source or "built in"


class Writing(StrEnum):
    """How far a version came on its way to where the scheduler reads it. `lost`: who was writing it ended before that."""

    BEGUN = "begun"
    DONE = "done"
    LOST = "lost"


class ConfigurationVersion(models.Model):
    """A configuration where the scheduler reads it: its number is its place in the history.

    `who` is empty when it was changed outside the portal, `note` then the program that did if that is known. `revision` is
    what it was to take the place of, by whose number the cluster lets it or not.
    """

    at = models.DateTimeField()
    who = models.CharField(max_length=150, blank=True)
    source = models.CharField(max_length=1024, blank=True)
    text = models.TextField()
    note = models.CharField(max_length=200, blank=True)
    writing = models.CharField(max_length=8, default=Writing.DONE.value)
    revision = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"version {self.pk}"


class Notice(models.Model):
    """What one process tells the others of changed rows, where no Redis carries it; kept for a minute.

    `topics` maps a live topic to the names of rows, or to null where very much changed.
    """

    at = models.DateTimeField(db_index=True)
    publisher = models.CharField(max_length=32)
    number = models.BigIntegerField()
    topics = models.JSONField()

    def __str__(self) -> str:
        return f"{self.publisher} {self.number}"


class Preferences(models.Model):
    """What one person set for themselves. Empty: as the system, or the browser, has it."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="preferences")
    theme = models.CharField(max_length=8, blank=True)
    language = models.CharField(max_length=16, default="en")
    time_zone = models.CharField(max_length=64, blank=True)
    density = models.CharField(max_length=8, blank=True)

    def __str__(self) -> str:
        return f"preferences of {self.user}"
