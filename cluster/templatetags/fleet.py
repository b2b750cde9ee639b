"""Filters of the pages about queues, nodes, GPUs and the submit form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django import template
from django.template.defaultfilters import capfirst

from cluster import display

register = template.Library()


@register.filter
def json(value: Any) -> str:
    """A value as JSON text, to be put into an attribute (where the template escapes it)."""
    return orjson.dumps(value).decode()


@register.filter
def resource_name(resource: str) -> str:
    """A resource in words."""
    return display.resource_name(resource)


@register.filter
def resource_title(resource: str) -> str:
    """The same at the beginning of a line; a name that is Kubernetes's own, such as `example.com/fpga`, stays as it is."""
    name = display.resource_name(resource)
    return name if "/" in name else capfirst(name)


@register.filter
def quantity(units: int, resource: str) -> str:
    """An amount with what it is an amount of: `12 CPUs`, `48 GiB of memory`."""
    return display.quantity(units, resource)


@register.filter
def short_model(model: str) -> str:
    """A GPU model as people say it."""
    return display.short_model(model)


@register.filter
def bare(name: str) -> str:
    """A `namespace/name` without its namespace."""
    return name.rpartition("/")[2]


@register.filter
def permille(size: int) -> str:
    """Parts of a card, of which it has a thousand, in per cent: `33.3 %`."""
    return f"{display.number(size / 10)} %"


@register.filter
def of(mapping: Mapping[str, Any], key: str) -> Any:
    """What a mapping has under a key; None when nothing."""
    return mapping.get(key)


@register.filter
def share_percent(share: float) -> str:
    """A share (1.0 is all) in whole per cent."""
    return display.number(round(100 * share))
