"""States in words and marks; how amounts and times are written is in `cluster.display`."""

from __future__ import annotations

from cluster.display import amount, duration, number, quantity, resource_name, short_model
from jobs.choices import GroupPhase, JobPhase, PodPhase

__all__ = ["amount", "duration", "mark_of", "number", "quantity", "resource_name", "short_model", "word_of"]

MARKS = ("pending", "inqueue", "running", "completed", "failed", "aborted", "restarting", "terminating", "unknown")


def mark_of(phase: str, mark: str = "") -> str:
    """The state mark of a phase; `unknown` for a phase that Basalt does not know."""
    if mark in MARKS:
        return mark
    if phase in JobPhase.values:
        return JobPhase(phase).mark
    if phase in PodPhase.values:
        return PodPhase(phase).mark
    return phase.lower() if phase.lower() in MARKS else "unknown"


def word_of(phase: str, mark: str = "") -> str:
    """The word beside the mark, in the reader's language."""
    if mark == "inqueue":
        return str(GroupPhase.INQUEUE.label)
    for choices in (JobPhase, PodPhase, GroupPhase):
        if phase in choices.values:
            return str(choices(phase).label)
    return phase
