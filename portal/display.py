"""How values are written for people: numbers, amounts, durations, phases. No HTML here."""

from __future__ import annotations

from datetime import timedelta

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from jobs.choices import GroupPhase, JobPhase, PodPhase

MARKS = ("pending", "inqueue", "running", "completed", "failed", "aborted", "restarting", "terminating", "unknown")
_BINARY = ("", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_VENDORS = ("NVIDIA-", "NVIDIA ", "Tesla-", "AMD-", "AMD ")
_MODEL_TAILS = ("-SXM", "-PCIE", "-PCIe", "-HBM", "-NVL")


def mark_of(phase: str, mark: str = "") -> str:
    """The state mark of a phase; `unknown` for a phase that Basalt does not know."""
    if mark in MARKS:
        return mark
    if phase in JobPhase.values:
        return JobPhase(phase).mark
    if phase in PodPhase.values:
        return PodPhase(phase).mark
    if phase == GroupPhase.INQUEUE:
        return "inqueue"
    return phase.lower() if phase.lower() in MARKS else "unknown"


def word_of(phase: str, mark: str = "") -> str:
    """The word beside the mark, in the reader's language."""
    if mark == "inqueue":
        return str(GroupPhase.INQUEUE.label)
    for choices in (JobPhase, PodPhase, GroupPhase):
        if phase in choices.values:
            return str(choices(phase).label)
    return phase


def number(value: float) -> str:
    """At most one decimal below 100, none above; digit groups as the language has them."""
    decimals = 0 if float(value).is_integer() or abs(value) >= 100 else 1
    return number_format(value, decimal_pos=decimals, use_l10n=True, force_grouping=True)


def amount(units: int, resource: str) -> tuple[str, str]:
    """A resource's amount from its smallest unit: (number, unit)."""
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        value, step = float(units), 0
        while abs(value) >= 1024 and step < len(_BINARY) - 1:
            value, step = value / 1024, step + 1
        return number(value), _BINARY[step] or "B"
    if resource == "pods":
        return number(units), ""
    return number(units / 1000), ""


def short_model(model: str) -> str:
    """The name people say: `NVIDIA-A100-SXM4-80GB` is an A100."""
    for vendor in _VENDORS:
        model = model.removeprefix(vendor)
    for tail in _MODEL_TAILS:
        model = model.split(tail, 1)[0]
    return model


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


def resource_name(resource: str) -> str:
    """A resource in words; what Basalt does not know keeps its own name."""
    known = {
        "cpu": _("CPU"),
        "memory": _("memory"),
        "ephemeral-storage": _("disk"),
        "pods": _("pods"),
        "nvidia.com/gpu": _("GPU"),
    }
    return known.get(resource, resource)
