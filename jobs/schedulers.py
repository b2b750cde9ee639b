"""Which scheduler names are ours."""

from __future__ import annotations

from django.conf import settings


def scheduler_names() -> tuple[str, ...]:
    """The names that pods give to be scheduled by us; the first is what jobs get that name none."""
    return tuple(settings.BASALT_SCHEDULER_NAMES)
