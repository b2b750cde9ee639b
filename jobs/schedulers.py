"""Which scheduler names are ours."""

from __future__ import annotations

from django.conf import settings


def scheduler_names() -> tuple[str, ...]:
    """The names that pods give to be scheduled by us; the first is what jobs get that name none."""
    names = getattr(settings, "BASALT_SCHEDULER_NAMES", ("volcano", "basalt"))
    return tuple(names.split(",")) if isinstance(names, str) else tuple(names)
