"""Phases of flows with their words and marks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.flows.status import FlowPhase


class FlowState(models.TextChoices):
    """Volcano's phases of a flow. `mark` is the state mark (`data-st`) that the pages draw."""

    PENDING = FlowPhase.PENDING.value, _("Pending")
    RUNNING = FlowPhase.RUNNING.value, _("Running")
    SUCCEED = FlowPhase.SUCCEED.value, _("Succeeded")
    FAILED = FlowPhase.FAILED.value, _("Failed")
    TERMINATING = FlowPhase.TERMINATING.value, _("Terminating")

    @property
    def mark(self) -> str:
        """The state mark that the pages draw."""
        return _MARKS[self]


_MARKS = {
    FlowState.PENDING: "pending",
    FlowState.RUNNING: "running",
    FlowState.SUCCEED: "completed",
    FlowState.FAILED: "failed",
    FlowState.TERMINATING: "terminating",
}
