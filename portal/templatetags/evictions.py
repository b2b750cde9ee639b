"""Evictions on the pages of jobs and queues, which know nothing of the portal's ledger."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from portal import evictions

register = template.Library()


@register.simple_tag(takes_context=True)
def evictions_of_job(context: Context, uid: str) -> SafeString:
    """Whom a job made give way, and to whom it gave way."""
    return SafeString(evictions.html(context["request"].user, uid))


@register.simple_tag(takes_context=True)
def evictions_of_queues(context: Context, names: Collection[str]) -> evictions.Table:
    """Who left these queues, or left for them."""
    found: Any = evictions.of_queues(context["request"].user, names)
    return found
