"""How numbers, amounts and spans of time are written for people, in the active language. No HTML here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from cluster.quantities import BYTES, is_gpu

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_VENDOR = re.compile(r"^(?:NVIDIA[- ]|Tesla-|AMD[- ])+")
_MODEL_TAIL = re.compile(r"[- ](?:SXM|PCIE|HBM|NVL|\d+GB).*$", re.IGNORECASE)

_HAN = "\u3400-\u9fff"
_TIGHT = re.compile(rf"(?<=[{_HAN}])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[{_HAN}])")


def spaced(text: str) -> str:
    """With a space between Chinese and Latin words or figures, where a value was put into a sentence without one."""
    return _TIGHT.sub(" ", text)


def number(value: float) -> str:
    """At most one decimal below 100, none above; digit groups as the language has them."""
    rounded = round(float(value), 0 if abs(value) >= 100 else 1)
    return number_format(rounded, decimal_pos=0 if rounded.is_integer() else 1, use_l10n=True, force_grouping=True)


def amount(units: int, resource: str) -> tuple[str, str]:
    """A resource's amount from its smallest unit, as (number, unit); the unit is empty for what is counted."""
    if resource in BYTES or resource.startswith("hugepages-"):
        value, step = float(units), 0
        while abs(value) >= 1024 and step < len(_BINARY) - 1:
            value, step = value / 1024, step + 1
        return number(value), _BINARY[step]
    return number(units if resource == "pods" else units / 1000), ""


def quantity(units: int, resource: str, model: str = "") -> str:
    """An amount with what it is an amount of: `24 GPUs`, `24 H100`, `7.5 GiB of memory`, `768 CPUs`."""
    text, unit = amount(units, resource)
    if resource == "memory":
        return _("%(number)s %(unit)s of memory") % {"number": text, "unit": unit}
    if resource == "ephemeral-storage":
        return _("%(number)s %(unit)s of disk") % {"number": text, "unit": unit}
    if unit:
        return _("%(number)s %(unit)s of %(resource)s") % {"number": text, "unit": unit, "resource": resource}
    if is_gpu(resource):
        if model:
            return _("%(number)s %(model)s") % {"number": text, "model": short_model(model)}
        return ngettext("%(number)s GPU", "%(number)s GPUs", units // 1000) % {"number": text}
    if resource == "cpu":
        return ngettext("%(number)s CPU", "%(number)s CPUs", units // 1000) % {"number": text}
    if resource == "pods":
        return ngettext("%(number)s pod", "%(number)s pods", units) % {"number": text}
    return _("%(number)s of %(resource)s") % {"number": text, "resource": resource}


def resource_name(resource: str) -> str:
    """A resource in words; what Basalt does not know keeps its own name."""
    known = {"cpu": _("CPU"), "memory": _("memory"), "ephemeral-storage": _("disk"), "pods": _("pods")}
    return _("GPU") if is_gpu(resource) else known.get(resource, resource)


def short_model(model: str) -> str:
    """The name people say: an `NVIDIA-A100-SXM4-80GB` is an A100."""
    return _MODEL_TAIL.sub("", _VENDOR.sub("", model))


def duration(value: float | timedelta) -> str:
    """Two units at most. A negative span (clocks differ) counts as none."""
    seconds = max(0, int(value.total_seconds() if isinstance(value, timedelta) else value))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return pgettext("duration", "%(days)d d %(hours)02d h") % {"days": days, "hours": hours % 24}
    if hours:
        return pgettext("duration", "%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": minutes % 60}
    if minutes:
        return pgettext("duration", "%(minutes)d min") % {"minutes": minutes}
    return pgettext("duration", "%(seconds)d s") % {"seconds": seconds}


def runs(indices: Iterable[int]) -> str:
    """GPU indices as short as they can be said: `0–3,6`."""
    found: list[list[int]] = []
    for index in sorted(indices):
        if found and found[-1][-1] == index - 1:
            found[-1][1:] = [index]
        else:
            found.append([index])
    return ",".join("–".join(map(str, run)) for run in found)
