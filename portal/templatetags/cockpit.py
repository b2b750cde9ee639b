"""Filters of the scheduler's pages."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.formats import number_format

from cluster import display
from cluster.access import policy
from portal.cockpit import versions

register = template.Library()


@register.filter
def ms(value: float | None) -> str:
    """Milliseconds without their unit: two decimals below one, else as other numbers; a dash for what is not known."""
    if value is None:
        return "–"
    if 0 < value < 0.995:
        return number_format(round(max(value, 0.01), 2), decimal_pos=2, use_l10n=True)
    return display.number(value)


@register.filter
def note(text: str) -> str:
    """The note of a version of the configuration, in the reader's language where it is the portal's own."""
    return versions.in_words(text)


@register.filter
def whole(value: float | None) -> str:
    """A rounded number."""
    return "–" if value is None else display.number(round(value))


@register.simple_tag(takes_context=True)
def may(context: dict[str, Any], action: str) -> bool:
    """Whether who looks at the page has a right."""
    return bool(policy().may(context["request"].user, action))
