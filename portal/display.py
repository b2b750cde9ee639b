"""States in words and marks; how amounts and times are written is in `cluster.display`."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.display import amount, duration, number, quantity, resource_name, short_model
from jobs.choices import GroupPhase, JobPhase, PodPhase

__all__ = ["amount", "duration", "mark_of", "number", "quantity", "resource_name", "runs", "short_model", "word_of"]

MARKS = ("pending", "inqueue", "running", "completed", "failed", "aborted", "restarting", "terminating", "unknown")
_LABEL_OF = {choice.value: choice.label for choices in (GroupPhase, PodPhase, JobPhase) for choice in choices}
_MARK_OF = {choice.value: choice.mark for choices in (PodPhase, JobPhase) for choice in choices}


def runs(indices: Iterable[int]) -> str:
    """GPU indices as short as they can be said: `0–3,6`."""
    found: list[list[int]] = []
    for index in sorted(indices):
        if found and found[-1][-1] == index - 1:
            found[-1][1:] = [index]
        else:
            found.append([index])
    return ",".join("–".join(map(str, run)) for run in found)


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
