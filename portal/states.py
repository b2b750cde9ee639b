"""States in words and marks, as every page draws them."""

from __future__ import annotations

from jobs.choices import GroupPhase, JobPhase, PodPhase

MARKS = ("pending", "inqueue", "running", "completed", "failed", "aborted", "restarting", "terminating", "unknown")
_LABEL_OF = {choice.value: choice.label for choices in (GroupPhase, PodPhase, JobPhase) for choice in choices}
_MARK_OF = {choice.value: choice.mark for choices in (PodPhase, JobPhase) for choice in choices}


def mark_of(phase: str, mark: str = "") -> str:
    """The state mark of a phase; `unknown` for a phase that Basalt does not know."""
    if mark in MARKS:
        return mark
    if known := _MARK_OF.get(phase):
        return known
    return phase.lower() if phase.lower() in MARKS else "unknown"


def word_of(phase: str, mark: str = "") -> str:
    """The word beside the mark, in the reader's language."""
    if mark == "inqueue":
        return str(GroupPhase.INQUEUE.label)
    return str(_LABEL_OF.get(phase, phase))
