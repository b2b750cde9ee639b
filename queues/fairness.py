"""Who got what over a window: what each queue deserved, received, waited for, borrowed and lent, and how even that was.

The figures are differences of the running sums that samples carry, so they are exact between the first and the last sample of
each run; what happened between two runs (nobody was scheduling, or nobody wrote it down) is unknown, and counts for nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Max, Min

from queues.history import divisor
from queues.integrals import PARTS, Sums, jain
from queues.models import Queue, QueueSample, SampleTime
from queues.queries import named
from queues.sampling import GAP

HOUR = 3_600_000
"""Milliseconds, as sums count them."""
NONE = (0,) * len(PARTS)
OF_ASKED = ("asked", "due", "met", "waited")
"""Parts that follow from what queues ask for."""


@dataclass(frozen=True, slots=True)
class Account:
    """One queue, or all together: unit-milliseconds by part. An empty name stands for queues that the viewer may not see."""

    queue: str
    parent: str
    sums: Mapping[str, int]
    gone: bool = False

    @property
    def met(self) -> float | None:
        """The part of what was due that was received; None where nothing was."""
        return self.sums["met"] / self.sums["due"] if self.sums["due"] else None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time."""

    begin: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Report:
    """One resource over a window. `known` is what is reported on, `gaps` what is not; `capacity` in unit-milliseconds."""

    resource: str
    window: Span
    known: list[Span]
    gaps: list[Span]
    accounts: list[Account]
    total: Account
    capacity: int
    even: float | None
    """Jain's index over what queues got of their due; None where nothing was due."""
    resources: list[str] = field(default_factory=list)
    asks: bool = True
    """Whether it is known what queues ask for; else what was due, met and waited for is unknown."""

    @property
    def seconds(self) -> float:
        """How much of the window is known."""
        return sum(span.length.total_seconds() for span in self.known)


def report(user: Any, resource: str, begin: datetime, end: datetime) -> Report:
    """The report of a window; a constant number of queries a run."""
    runs = _runs(begin, end)
    found: defaultdict[str, list[int]] = defaultdict(lambda: list(NONE))
    resources: set[str] = set()
    capacity = 0
    for first, last in runs:
        for name, sums in _between(first.at, last.at).items():
            resources.update(sums)
            _add(found[name], sums.get(resource, NONE))
        capacity += last.total.get(resource, 0) - first.total.get(resource, 0)
    known = [Span(first.at, last.at) for first, last in runs]
    accounts = _accounts(user, found)
    total = [sum(parts) for parts in zip(*found.values(), strict=True)] if found else list(NONE)
    return Report(
        resource=resource,
        window=Span(begin, end),
        known=known,
        gaps=_gaps(known, begin, end),
        accounts=accounts,
        total=Account("", "", _named(total)),
        capacity=capacity,
        even=jain([sums[PARTS.index("met")] / sums[PARTS.index("due")] for sums in found.values() if sums[PARTS.index("due")]]),
        resources=sorted(resources),
        asks=settings.BASALT_SCHEDULER,
    )


def _runs(begin: datetime, end: datetime) -> list[tuple[SampleTime, SampleTime]]:
    """The first and the last sample of each run in the window, where they are two; of run 0 no sums were kept."""
    bounds = SampleTime.objects.filter(at__gte=begin, at__lte=end, run__gt=0).order_by()
    edges = list(bounds.values("run").annotate(first=Min("at"), last=Max("at")).order_by("first"))
    moments = SampleTime.objects.in_bulk({at for edge in edges for at in (edge["first"], edge["last"])}, field_name="at")
    pairs = [(moments[edge["first"]], moments[edge["last"]]) for edge in edges]
    return [(first, last) for first, last in pairs if first.at < last.at]


def _between(first: datetime, last: datetime) -> dict[str, Sums]:
    """What each queue gathered between two samples of one run. A queue's sums begin at nothing, and end when it is deleted."""
    then, now = _totals(at=first), _totals(at=last)
    ended = QueueSample.objects.filter(at__gt=first, at__lt=last, totals__isnull=False).exclude(queue__in=now)
    left = set(then) - set(now) | _deleted_since(first) - set(now)
    if left:
        ends = dict(ended.filter(queue__in=left).order_by().values("queue").annotate(end=Max("at")).values_list("queue", "end"))
        rows = QueueSample.objects.filter(queue__in=ends, at__in=set(ends.values())).values_list("queue", "at", "totals")
        now |= {name: totals for name, at, totals in rows if ends[name] == at}
    return {name: _less(sums, then.get(name, {})) for name, sums in now.items()}


def _deleted_since(first: datetime) -> set[str]:
    return set(Queue.objects.filter(deleted_at__gte=first - GAP).values_list("name", flat=True))


def _totals(at: datetime) -> dict[str, Sums]:
    return dict(QueueSample.objects.filter(at=at, totals__isnull=False).values_list("queue", "totals"))


def _less(later: Sums, earlier: Sums) -> Sums:
    return {
        resource: [now - then for now, then in zip(sums, earlier.get(resource, NONE), strict=True)]
        for resource, sums in later.items()
    }


def _add(into: list[int], more: Iterable[int]) -> None:
    for place, amount in enumerate(more):
        into[place] += amount


def _named(sums: Iterable[int]) -> dict[str, int]:
    return dict(zip(PARTS, sums, strict=True))


def _accounts(user: Any, found: Mapping[str, list[int]]) -> list[Account]:
    """The queues that a user may see, by name, and the others as one."""
    shown = named(user, found)
    inner = {row.parent for row in shown.values()}
    shares = [(name, found[name]) for name in sorted(shown) if name not in inner or any(found[name])]
    accounts = [Account(name, shown[name].parent, _named(sums), shown[name].deleted_at is not None) for name, sums in shares]
    hidden = [sums for name, sums in found.items() if name not in shown]
    if hidden:
        accounts.append(Account("", "", _named(sum(parts) for parts in zip(*hidden, strict=True))))
    return accounts


def _gaps(known: list[Span], begin: datetime, end: datetime) -> list[Span]:
    """What of the window nothing is known of; edges of less than a minute are the distance of samples."""
    edges = [begin, *(at for span in known for at in (span.begin, span.end)), end]
    gaps = [Span(edges[at], edges[at + 1]) for at in range(0, len(edges), 2)]
    return [gap for gap in gaps if gap.length > GAP + timedelta(seconds=10)]


def as_json(found: Report) -> dict[str, Any]:
    """The report as data: amounts are resource-hours in the unit that charts draw (GPUs, CPUs, GiB)."""
    return {
        "resource": found.resource,
        "from": found.window.begin.isoformat(),
        "to": found.window.end.isoformat(),
        "known_seconds": found.seconds,
        "known": [[span.begin.isoformat(), span.end.isoformat()] for span in found.known],
        "unknown": [[span.begin.isoformat(), span.end.isoformat()] for span in found.gaps],
        "capacity": hours(found.capacity, found.resource),
        "jain": found.even if found.asks else None,
        "total": hours_of(found, found.total),
        "queues": [
            {
                "queue": each.queue or None,
                "parent": each.parent,
                "met_share": each.met if found.asks else None,
                **hours_of(found, each),
            }
            for each in found.accounts
        ],
    }


def hours(sums: int, resource: str) -> float:
    """Unit-milliseconds as hours of the unit that is drawn."""
    return round(sums / divisor(resource) / HOUR, 6)


def hours_of(found: Report, account: Account) -> dict[str, float | None]:
    """Every part of an account in hours; None where nobody says it."""
    known = [part for part in PARTS if found.asks or part not in OF_ASKED]
    return dict.fromkeys(PARTS) | {part: hours(account.sums[part], found.resource) for part in known}
