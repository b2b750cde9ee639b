"""Queues' shares over time, thinned by the database to the points that a chart can show. Amounts are in smallest units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

from django.db.models import BigIntegerField, Sum
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from queues.models import QueueSample, SampleTime
from queues.sampling import EVERY, GAP

WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
POINTS = 120


def window_words() -> list[tuple[str, str]]:
    """The windows and what they are called."""
    return [("1h", _("1 h")), ("6h", _("6 h")), ("24h", _("24 h")), ("7d", _("7 d"))]


@dataclass(frozen=True, slots=True)
class History:
    """Amounts over time: `times` and one list of equal length a series; None where nothing was sampled."""

    times: list[datetime]
    series: dict[str, list[int | None]]
    resource: str

    def as_json(self) -> dict[str, Any]:
        """For the chart: times in milliseconds, amounts in the unit that is drawn."""
        unit = divisor(self.resource)
        series = {
            name: [None if value is None else round(value / unit, 3) for value in values] for name, values in self.series.items()
        }
        times = [int(time.timestamp() * 1000) for time in self.times]
        return {"times": times, "series": series, "resource": self.resource, "divisor": unit}

    @property
    def rows(self) -> list[tuple[datetime, list[int | None]]]:
        """For the table: the newest 24 instants, newest first."""
        last = list(zip(self.times, zip(*self.series.values(), strict=True), strict=True))[-24:] if self.series else []
        return [(time, list(values)) for time, values in reversed(last)]


def _told(times: Sequence[datetime], series: Mapping[str, list[int | None]], resource: str) -> History:
    """With an instant of nothing known wherever nobody wrote for long, so that no line is drawn across it."""
    steps = sorted(after - before for before, after in pairwise(times))
    usual = steps[len(steps) // 2] if steps else EVERY
    broken = max(GAP, 3 * usual)
    filled: list[datetime] = []
    values: dict[str, list[int | None]] = {name: [] for name in series}
    for at, time in enumerate(times):
        if at and time - times[at - 1] > broken:
            filled.append(times[at - 1] + (time - times[at - 1]) / 2)
            for name in values:
                values[name].append(None)
        filled.append(time)
        for name, amounts in series.items():
            values[name].append(amounts[at])
    return History(filled, values, resource)


def divisor(resource: str) -> int:
    """Smallest units in the unit that charts draw: CPUs, GPUs, GiB."""
    return 2**30 if resource in ("memory", "ephemeral-storage") else 1 if resource == "pods" else 1000


def shares_over_time(named: Sequence[str], others: Sequence[str], resource: str, window: timedelta, now: datetime) -> History:
    """What queues had allocated: each of `named` that had any, and all `others` together under an empty name."""
    instants = _instants(window, now)
    found = _samples(named, resource, instants, ("allocated",))
    shown = [name for name in named if any(at["allocated"] for at in found[name].values())]
    rest = _sums(others, resource, instants) if others else {}
    times = sorted({*rest, *(time for name in named for time in found[name])})
    series: dict[str, list[int | None]] = {
        name: [found[name][time]["allocated"] if time in found[name] else None for time in times] for name in shown
    }
    if any(rest.values()):
        series[""] = [rest.get(time, 0) for time in times]
    return _told(times, series, resource)


def most_used(names: Sequence[str], resource: str, window: timedelta, now: datetime, limit: int) -> list[str]:
    """The queues that had most allocated over the window, at most `limit`; none that had nothing."""
    rows = QueueSample.objects.filter(queue__in=names, at__in=_instants(window, now)).order_by()
    used = rows.values("queue").annotate(used=Sum(_units(resource))).filter(used__gt=0).order_by("-used", "queue")
    return list(used.values_list("queue", flat=True)[:limit])


def queue_over_time(
    names: Sequence[str], resource: str, window: timedelta, now: datetime, parents: Mapping[str, str] | None = None
) -> History:
    """The figures of the first of `names` with those below it, whose `parents` are given.

    Some schedulers share out to leaves alone, others count in an inner queue what is below it: it has what the queues below it
    have together, at least.
    """
    parts = ("allocated", "inqueue", "deserved", "request")
    found = _samples(names, resource, _instants(window, now), parts)
    times = sorted({time for by_time in found.values() for time in by_time})
    series: dict[str, list[int | None]] = {part: [] for part in parts}
    for time in times:
        own = {name: found[name][time] for name in names if time in found[name]}
        for part in parts:
            series[part].append(_together(names, {name: amounts[part] for name, amounts in own.items()}, parents or {}))
    return _told(times, series, resource)


def _together(names: Sequence[str], own: Mapping[str, int], parents: Mapping[str, str]) -> int:
    """What the first of `names`, in the order of their tree, has with all below it."""
    below: defaultdict[str, int] = defaultdict(int)
    for name in reversed(names):  # children come before their parents
        amount = max(own.get(name, 0), below[name])
        if name == names[0]:
            return amount
        below[parents.get(name, names[0])] += amount
    return 0


def _samples(
    names: Sequence[str], resource: str, instants: Sequence[datetime], parts: Sequence[str]
) -> defaultdict[str, dict[datetime, dict[str, int]]]:
    """Amounts by queue, instant and part. All queues are sampled at one instant, so nothing else is read."""
    picked = QueueSample.objects.filter(queue__in=names, at__in=instants)
    shown = picked.annotate(**{f"_{part}": KeyTransform(resource, part) for part in parts}).order_by("at")
    found: defaultdict[str, dict[datetime, dict[str, int]]] = defaultdict(dict)
    for queue, at, *values in shown.values_list("queue", "at", *(f"_{part}" for part in parts)):
        found[queue][at] = {part: int(value or 0) for part, value in zip(parts, values, strict=True)}
    return found


def _sums(names: Sequence[str], resource: str, instants: Sequence[datetime]) -> dict[datetime, int]:
    """What queues had allocated together, by instant, added up by the database."""
    rows = QueueSample.objects.filter(queue__in=names, at__in=instants).order_by()
    return {at: used or 0 for at, used in rows.values_list("at").annotate(used=Sum(_units(resource)))}


def _units(resource: str) -> Cast:
    return Cast(KeyTextTransform(resource, "allocated"), BigIntegerField())


def _instants(window: timedelta, now: datetime) -> list[datetime]:
    """When the last sample of each slot was taken. Slots end at round instants, so that the points stay as time goes on."""
    times = list(SampleTime.objects.filter(at__gt=now - window, at__lte=now).order_by("at").values_list("at", flat=True))
    if not times:
        return []
    slot = _slot(window, now - times[0]).total_seconds()
    return list({ceil(at.timestamp() / slot): at for at in times}.values())


def _slot(window: timedelta, span: timedelta) -> timedelta:
    """How much time one point stands for. What was sampled for a short while only is shown as finely as a short window."""
    slot = window / POINTS
    while slot / 2 >= EVERY and slot / 2 * POINTS >= span:
        slot /= 2
    return slot
