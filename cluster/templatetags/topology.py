"""Filters of the pages about network domains: tiers, causes and links in words."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

from cluster import display

register = template.Library()


@register.filter
def tier_word(label: str) -> str:
    """A tier by what its domains call it: `node`, `rack`, `spine`, `fleet` in the reader's language, another name as it is."""
    known = {"node": _("node"), "rack": _("rack"), "spine": _("spine"), "fleet": _("whole fleet"), "": _("domain")}
    return known.get(label, label)


@register.filter
def cause_word(cause: str) -> str:
    """Why free GPUs are of no use."""
    known = {
        "cordoned": _("The node is cordoned"),
        "leftover": _("Left over: fewer than any pod asks"),
        "several": _("CPU, memory and others are short together"),
        "pods": _("The node takes no more pods"),
    }
    return known.get(cause) or _("No %(resource)s left for them") % {"resource": display.resource_name(cause)}


@register.filter
def gpu_list(gpus: tuple[int, ...]) -> str:
    """GPU indices one by one: `2, 3, 6`."""
    return ", ".join(map(str, gpus))
