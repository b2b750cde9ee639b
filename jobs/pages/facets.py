"""The filter column of the job list: each dimension's choices with their counts."""

from __future__ import annotations

from django.utils.translation import gettext as _

from cluster.display import short_model
from cluster.facets import Choice, Panel
from jobs.choices import GroupPhase, JobPhase
from jobs.pages.asked import STATE_ORDER, Filter
from jobs.pages.queries import Facets
from jobs.reasons import stage_label
from scheduler.framework.explain import Stage

SHOWN = 8
FOLDED = 40
"""Choices behind the fold; of more than these the rarest are left to the filter's own text."""


def state_words() -> dict[str, str]:
    """The state marks of jobs and what they are called."""
    states = {mark: str(next(p for p in JobPhase if p.mark == mark).label) for mark in STATE_ORDER if mark != "inqueue"}
    return states | {"inqueue": str(GroupPhase.INQUEUE.label), "terminating": str(JobPhase.TERMINATING.label)}


def panels(found: Facets, asked: Filter) -> list[Panel]:
    """All dimensions in the order of the page; those without any choice are left out."""
    states = state_words()
    stages = {stage.value: stage_label(stage) for stage in Stage}
    made = [
        _fixed("state", _("State"), states, STATE_ORDER, found, asked),
        _fixed("stage", _("Held at"), stages, tuple(stages), found, asked),
        _open("queue", _("Queue"), found, asked),
        _open("owner", _("Owner"), found, asked),
        _open("namespace", _("Namespace"), found, asked),
        _open("model", _("GPU model"), found, asked),
    ]
    return [panel for panel in made if panel.choices]


def _fixed(name: str, title: str, labels: dict[str, str], order: tuple[str, ...], found: Facets, asked: Filter) -> Panel:
    counts, chosen = found.counts[name], getattr(asked, name)
    choices = [
        Choice(value, labels[value], counts[value], value in chosen, value if name == "state" else "")
        for value in order
        if counts[value] or value in chosen
    ]
    return Panel(name, title, choices, [])


def _open(name: str, title: str, found: Facets, asked: Filter) -> Panel:
    counts, chosen = found.counts[name], getattr(asked, name)
    values = sorted({*counts, *chosen}, key=lambda value: (value not in chosen, -counts[value], value))
    choices = [
        Choice(value, short_model(value) if name == "model" else value, counts[value], value in chosen) for value in values
    ]
    folded = choices[SHOWN : SHOWN + FOLDED]
    return Panel(name, title, choices[:SHOWN], folded, max(0, len(choices) - SHOWN - FOLDED))
