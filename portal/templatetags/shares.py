"""Share bars of the tree of queues."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from queues import drawn
from queues.models import Queue
from queues.queries import Bar

register = template.Library()


@register.filter
def share_bar(bar: Bar) -> SafeString:
    """A bar."""
    return drawn.bar(bar)


@register.filter
def share_pair(bar: Bar, asks: bool) -> SafeString:
    """The figures beside it."""
    return drawn.figures(bar, asks=asks)


@register.filter
def queue_state(queue: Queue) -> SafeString:
    """A queue's state, as `queues/state.html` has it; there are few, and hundreds of lines."""
    return _state(queue.state, get_language())


@lru_cache(maxsize=32)
def _state(state: str, _language: str | None) -> SafeString:
    return SafeString(render_to_string("queues/state.html", {"queue": Queue(state=state)}).strip())
