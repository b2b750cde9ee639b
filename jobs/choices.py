"""Phases with their meaning: value, label and state mark live together, so badges, filters, forms and the API agree."""

from __future__ import annotations

from functools import lru_cache

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.lifecycle import FINAL, Phase


class JobPhase(models.TextChoices):
    """Volcano's job phases. `mark` is the state mark (`data-st`) that the pages draw."""

    PENDING = Phase.PENDING.value, _("Pending")
    RUNNING = Phase.RUNNING.value, _("Running")
    RESTARTING = Phase.RESTARTING.value, _("Restarting")
    COMPLETING = Phase.COMPLETING.value, _("Completing")
    COMPLETED = Phase.COMPLETED.value, _("Completed")
    ABORTING = Phase.ABORTING.value, _("Aborting")
    ABORTED = Phase.ABORTED.value, _("Aborted")
    TERMINATING = Phase.TERMINATING.value, _("Terminating")
    TERMINATED = Phase.TERMINATED.value, _("Terminated")
    FAILED = Phase.FAILED.value, _("Failed")

    @property
    def mark(self) -> str:
        """The state mark; phases that end something share one."""
        return _JOB_MARKS[self]

    @property
    def is_final(self) -> bool:
        """Nothing moves a job out of a final phase; Aborted is not one, since it can be resumed."""
        return Phase(self.value) in FINAL


_JOB_MARKS = {
    JobPhase.PENDING: "pending",
    JobPhase.RUNNING: "running",
    JobPhase.RESTARTING: "restarting",
    JobPhase.COMPLETING: "terminating",
    JobPhase.COMPLETED: "completed",
    JobPhase.ABORTING: "terminating",
    JobPhase.ABORTED: "aborted",
    JobPhase.TERMINATING: "terminating",
    JobPhase.TERMINATED: "aborted",
    JobPhase.FAILED: "failed",
}


@lru_cache(maxsize=256)
def job_mark(phase: str, group_phase: str) -> str:
    """The state mark of a job; one whose gang is admitted, or placed and about to start, is `inqueue` and not `pending`."""
    if phase == JobPhase.PENDING and group_phase in ADMITTED:
        return "inqueue"
    return _JOB_MARKS[JobPhase(phase)] if phase in JobPhase.values else "unknown"


class PodPhase(models.TextChoices):
    """Kubernetes's pod phases; Terminating is Basalt's name for a pod with a deletion timestamp."""

    PENDING = "Pending", _("Pending")
    RUNNING = "Running", _("Running")
    SUCCEEDED = "Succeeded", _("Succeeded")
    FAILED = "Failed", _("Failed")
    TERMINATING = "Terminating", _("Terminating")
    UNKNOWN = "Unknown", _("Unknown")

    @property
    def mark(self) -> str:
        """The state mark that the pages draw."""
        return _POD_MARKS[self]


_POD_MARKS = {
    PodPhase.PENDING: "pending",
    PodPhase.RUNNING: "running",
    PodPhase.SUCCEEDED: "completed",
    PodPhase.FAILED: "failed",
    PodPhase.TERMINATING: "terminating",
    PodPhase.UNKNOWN: "unknown",
}


class GroupPhase(models.TextChoices):
    """PodGroup phases: Pending is not admitted, Inqueue is admitted and waiting for room."""

    PENDING = "Pending", _("Pending")
    INQUEUE = "Inqueue", _("Inqueue")
    RUNNING = "Running", _("Running")
    UNKNOWN = "Unknown", _("Unknown")
    COMPLETED = "Completed", _("Completed")


ADMITTED = (GroupPhase.INQUEUE, GroupPhase.RUNNING)
"""Group phases of a gang that was let in; its job is Pending until enough pods run."""
