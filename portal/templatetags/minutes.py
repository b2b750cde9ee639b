"""The decisions of a minute on the pages of queues, which know nothing of the portal's ledger."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django import template
from django.template import Context

from portal.minutes import Decisions, decisions

register = template.Library()


@register.simple_tag(takes_context=True)
def decisions_of(context: Context, since: datetime, until: datetime, queues: Collection[str] | None = None) -> Decisions:
    """What was decided in a stretch of time, as the viewer may know it."""
    return decisions(context["request"].user, since, until, queues)
