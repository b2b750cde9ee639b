"""When a waiting job is likely to start, on its page; nothing where nothing is known yet."""

from __future__ import annotations

from typing import Any

from django import template

from jobs.models import Job
from portal.simulations import estimates

register = template.Library()


@register.inclusion_tag("portal/simulations/estimate.html")
def start_estimate(job: Job) -> dict[str, Any]:
    """The last estimate; looking at it has a new one worked out when it is old."""
    shown = estimates.of(job)
    return {"row": shown.row, "state": shown.state}
