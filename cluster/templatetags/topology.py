"""Filters of the pages about network domains: tiers, causes and links in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import template
from django.template import Context
from django.utils.translation import gettext as _

from cluster import display
from cluster.cards import Cell

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
def gpu_list(gpus: Sequence[int]) -> str:
    """GPU indices, three and more in a row as one run: `2, 3, 6`, `0–7`."""
    found: list[list[int]] = []
    for gpu in gpus:
        if found and found[-1][-1] == gpu - 1:
            found[-1].append(gpu)
        else:
            found.append([gpu])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in found)


@register.filter
def indices(cells: Sequence[Cell]) -> list[int]:
    """The GPUs of some cells."""
    return [cell.index for cell in cells]


@register.filter
def mebibytes(amount: int) -> str:
    """MiB as `80 GiB` or `512 MiB`."""
    number, unit = display.amount(amount * 2**20, "memory")
    return f"{number} {unit}"


@register.simple_tag
def condition_mark(condition: Mapping[str, str]) -> str:
    """The mark of a node's condition: Ready is well when True, the others (pressure, network trouble) when False."""
    status = condition.get("status")
    if status not in ("True", "False"):
        return "unknown"
    return "completed" if (status == "True") == (condition.get("type") == "Ready") else "failed"


@register.simple_tag(takes_context=True)
def query_with(context: Context, name: str, value: str | None) -> str:
    """The page's query string with one key set (None removes it), and without a page number."""
    data = context["request"].GET.copy()
    data.pop("page", None)
    data.pop(name, None)
    if value:
        data[name] = value
    return f"?{data.urlencode()}"
