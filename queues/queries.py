"""What the queue pages show: the tree with its shares, and shares over time. Amounts are in smallest units."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models.fields.json import KeyTransform
from django.utils.translation import gettext as _

from cluster.access import policy
from cluster.display import amount, is_gpu
from cluster.models import Event, Node
from queues.models import Queue, QueueSample
from queues.rows import queue_row

ROOT = "root"
FIRST = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory")
HIDDEN = ("pods", "ephemeral-storage")
"""Counted by the scheduler, asked for by nobody: shown on a queue's own page only."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One resource of one queue. `capability` None means no limit; `scale` is the full width that its level shares."""

    queue: str
    resource: str
    guarantee: int
    deserved: int
    allocated: int
    admitted: int
    request: int
    capability: int | None
    scale: int = 0

    @property
    def borrowed(self) -> int:
        """What is in use beyond what is deserved."""
        return max(0, self.allocated - self.deserved) if self.deserved else 0

    @property
    def empty(self) -> bool:
        return not (self.guarantee or self.deserved or self.allocated or self.admitted or self.request or self.capability)

    @property
    def style(self) -> str:
        """The share bar's widths as CSS variables."""
        full = self.scale or 1
        cap = full if self.capability is None else self.capability
        parts = {"cap": cap, "gua": self.guarantee, "des": self.deserved, "alc": self.allocated, "adm": self.admitted}
        return ";".join(f"--{name}:{min(100.0, 100 * value / full):.2f}%" for name, value in parts.items())

    @property
    def label(self) -> str:
        """The bar in words, for those who do not see it."""
        values = {
            "queue": self.queue,
            "guarantee": _text(self.guarantee, self.resource),
            "deserved": _text(self.deserved, self.resource),
            "allocated": _text(self.allocated, self.resource),
            "admitted": _text(self.admitted, self.resource),
        }
        if self.capability is None:
            return (
                _(
                    "%(queue)s: guarantee %(guarantee)s, deserved %(deserved)s, allocated %(allocated)s,"
                    " admitted %(admitted)s, no limit"
                )
                % values
            )
        values["capability"] = _text(self.capability, self.resource)
        return (
            _(
                "%(queue)s: guarantee %(guarantee)s, deserved %(deserved)s, allocated %(allocated)s,"
                " admitted %(admitted)s, capability %(capability)s"
            )
            % values
        )


def _text(units: int, resource: str) -> str:
    number, unit = amount(units, resource)
    return f"{number} {unit}".strip()


@dataclass(slots=True)
class Branch:
    """One line of the tree. `above` is the queue that it is shown below, `parent` says that others are shown below it."""

    queue: Queue
    depth: int
    above: str
    parent: bool
    bars: list[Bar] = field(default_factory=list)
    waiting: int = 0
    running: int = 0


def queues(user: Any) -> list[Queue]:
    """The queues that the user may see."""
    return list(policy().visible(user, Queue.objects.filter(deleted_at=None)).order_by("name"))


def resources(rows: Iterable[Queue]) -> list[str]:
    """The resources that any queue speaks of: GPUs first, then CPU and memory, then the rest by name."""
    names = {"cpu", "memory"}
    for row in rows:
        for amounts in (row.capability, row.deserved, row.guarantee, row.share_allocated, row.share_request):
            names.update(amounts)
    names.difference_update(HIDDEN)
    return sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else 1 if is_gpu(name) else len(FIRST), name))


def capacity() -> Counter[str]:
    """What the ready nodes have together."""
    total: Counter[str] = Counter()
    for allocatable in Node.objects.filter(deleted_at=None, ready=True).values_list("allocatable", flat=True):
        total.update(allocatable)
    return total


def tree(rows: Sequence[Queue], shown: Sequence[str], total: Mapping[str, int]) -> list[Branch]:
    """The queues in tree order with a bar a resource. A parent holds at least what its children hold together."""
    branches = list(_walk(rows))
    children: defaultdict[str, list[Branch]] = defaultdict(list)
    for branch in branches:
        if branch.above:
            children[branch.above].append(branch)
    for branch in reversed(branches):  # children come before their parents
        below = children[branch.queue.name]
        branch.waiting = branch.queue.groups_pending + branch.queue.groups_inqueue + sum(each.waiting for each in below)
        branch.running = branch.queue.groups_running + sum(each.running for each in below)
        branch.bars = [_bar(branch.queue, name, [each.bars[at] for each in below], total) for at, name in enumerate(shown)]
    _scale(branches)
    return branches


def _walk(rows: Sequence[Queue]) -> Iterator[Branch]:
    """Root, then depth first by name. A queue whose parent is missing, or above itself, hangs below root."""
    by_name = {row.name: row for row in rows}
    below: defaultdict[str, list[Queue]] = defaultdict(list)
    for row in rows:
        if row.name != ROOT:
            below[row.parent if row.parent in by_name and not _loops(row, by_name) else ROOT].append(row)
    stack = [(by_name[ROOT], 0, "")] if ROOT in by_name else [(row, 0, "") for row in reversed(below[ROOT])]
    while stack:
        row, depth, above = stack.pop()
        yield Branch(row, depth, above, bool(below[row.name]))
        stack.extend((child, depth + 1, row.name) for child in reversed(below[row.name]))


def _loops(row: Queue, by_name: Mapping[str, Queue]) -> bool:
    seen = {row.name}
    name = row.parent
    while name in by_name and name != ROOT:
        if name in seen:
            return True
        seen.add(name)
        name = by_name[name].parent
    return False


def tree_json(rows: Sequence[Queue], shown: Sequence[str], total: Mapping[str, int]) -> dict[str, Any]:
    """What the live tree computes its bars from, when a queue's figures change."""
    return {
        "resources": list(shown),
        "total": {name: total.get(name, 0) for name in shown},
        "queues": [queue_row(row) for row in rows],
    }


def _bar(queue: Queue, resource: str, below: Sequence[Bar], total: Mapping[str, int]) -> Bar:
    def at_least(own: int, part: str) -> int:
        return max(own, sum(getattr(bar, part) for bar in below))

    root = queue.name == ROOT
    deserved = queue.share_deserved.get(resource, queue.deserved.get(resource, 0))
    allocated = at_least(queue.share_allocated.get(resource, 0), "allocated")
    waiting = max(queue.share_inqueue.get(resource, 0), sum(bar.admitted - bar.allocated for bar in below))
    return Bar(
        queue=queue.name,
        resource=resource,
        guarantee=at_least(queue.guarantee.get(resource, 0), "guarantee") if root else queue.guarantee.get(resource, 0),
        deserved=total.get(resource, 0) if root else int(deserved) or sum(bar.deserved for bar in below),
        allocated=allocated,
        admitted=allocated + waiting,
        request=at_least(queue.share_request.get(resource, 0), "request"),
        capability=total.get(resource) if root else queue.capability.get(resource),
    )


def _scale(branches: list[Branch]) -> None:
    """Bars of one resource and one level share a scale, so that lengths compare."""
    widest: Counter[tuple[int, int]] = Counter()
    for branch in branches:
        for at, bar in enumerate(branch.bars):
            need = max(bar.guarantee, bar.deserved, bar.admitted, bar.capability or 0)
            widest[branch.depth, at] = max(widest[branch.depth, at], need)
    for branch in branches:
        branch.bars = [replace(bar, scale=widest[branch.depth, at]) for at, bar in enumerate(branch.bars)]


WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
POINTS = 120


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
        return {"times": [int(time.timestamp() * 1000) for time in self.times], "series": series}

    @property
    def rows(self) -> list[tuple[datetime, list[int | None]]]:
        """For the table: the newest 24 instants, newest first."""
        last = list(zip(self.times, zip(*self.series.values(), strict=True), strict=True))[-24:] if self.series else []
        return [(time, list(values)) for time, values in reversed(last)]


def divisor(resource: str) -> int:
    """Smallest units in the unit that charts draw: CPUs, GPUs, GiB."""
    return 2**30 if resource in ("memory", "ephemeral-storage") else 1 if resource == "pods" else 1000


def shares_over_time(names: Sequence[str], resource: str, window: timedelta, now: datetime, limit: int = 6) -> History:
    """What queues had allocated; the `limit` largest by name, the rest together under an empty name."""
    found = _samples(names, resource, window, now, ("allocated",))
    peaks = {name: max((at["allocated"] for at in by_time.values()), default=0) for name, by_time in found.items()}
    largest = sorted((name for name in found if peaks[name]), key=lambda name: (-peaks[name], name))
    times = sorted({time for by_time in found.values() for time in by_time})
    series: dict[str, list[int | None]] = {
        name: [found[name][time]["allocated"] if time in found[name] else None for time in times] for name in largest[:limit]
    }
    if rest := largest[limit:]:
        series[""] = [sum(found[name][time]["allocated"] for name in rest if time in found[name]) for time in times]
    return History(times, series, resource)


def queue_over_time(name: str, resource: str, window: timedelta, now: datetime) -> History:
    """One queue's own figures."""
    parts = ("allocated", "inqueue", "deserved", "request")
    found = _samples([name], resource, window, now, parts).get(name, {})
    times = sorted(found)
    return History(times, {part: [found[time][part] for time in times] for part in parts}, resource)


def _samples(
    names: Sequence[str], resource: str, window: timedelta, now: datetime, parts: Sequence[str]
) -> dict[str, dict[datetime, dict[str, int]]]:
    """The last sample of each queue in each of POINTS slots of the window, by queue and slot."""
    slot = window / POINTS
    begin = now - window
    rows = QueueSample.objects.filter(queue__in=names, at__gt=begin, at__lte=now).order_by("at")
    picked = rows.annotate(**{f"_{part}": KeyTransform(resource, part) for part in parts})
    found: defaultdict[str, dict[datetime, dict[str, int]]] = defaultdict(dict)
    for queue, at, *values in picked.values_list("queue", "at", *(f"_{part}" for part in parts)):
        time = begin + slot * (int((at - begin) / slot) + 1)
        found[queue][time] = {part: int(value or 0) for part, value in zip(parts, values, strict=True)}
    return found


def events(queue: Queue, limit: int = 30) -> list[Event]:
    """The newest events about a queue."""
    return list(Event.objects.filter(about_uid=queue.uid, deleted_at=None).order_by("-last_seen")[:limit])
