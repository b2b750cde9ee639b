"""One past minute: how queues stood at the cycle that was sampled last in it, and what had changed since the minute before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queues.models import QueueSample, SampleTime
from queues.queries import named
from queues.sampling import AMOUNTS, GAP, minute_of

MINUTE = timedelta(minutes=1)
Amounts = Mapping[str, Mapping[str, int]]
"""By `AMOUNTS`, then by resource."""


@dataclass(frozen=True, slots=True)
class Held:
    """One queue: its amounts then, and before (None where it was not sampled)."""

    queue: str
    parent: str
    now: Amounts
    was: Amounts | None
    gone: bool = False

    def at(self, resource: str) -> Figures:
        """The figures of one resource, in smallest units."""
        now = {part: self.now[part].get(resource, 0) for part in AMOUNTS}
        was = self.was["allocated"].get(resource, 0) if self.was else None
        return Figures(self.queue, self.parent, was, **now, gone=self.gone)


@dataclass(frozen=True, slots=True)
class Figures:
    """One resource of one queue."""

    queue: str
    parent: str
    was: int | None
    allocated: int
    deserved: int
    request: int
    inqueue: int
    gone: bool = False

    @property
    def changed(self) -> bool:
        """Whether it holds more or less than before."""
        return self.was is not None and self.was != self.allocated

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.was or self.allocated or self.deserved or self.request or self.inqueue)


@dataclass(frozen=True, slots=True)
class Moment:
    """A minute. `taken` None: nobody wrote anything down; `earlier` and `later` are then the nearest minutes of which
    something is known. What changed, changed after `since`."""

    minute: datetime
    taken: SampleTime | None
    since: datetime
    queues: list[Held]
    earlier: datetime | None = None
    later: datetime | None = None

    @property
    def until(self) -> datetime:
        """The end of what is told."""
        return self.taken.at if self.taken is not None else self.minute + MINUTE

    @property
    def before(self) -> datetime:
        """The minute before."""
        return self.minute - MINUTE

    @property
    def after(self) -> datetime:
        """The next minute."""
        return self.minute + MINUTE

    def figures(self, resource: str, names: Collection[str] | None = None) -> list[Figures]:
        """Queues (of `names`, all for None) of which there is anything to tell, those that changed first."""
        found = [each.at(resource) for each in self.queues if names is None or each.queue in names]
        return sorted((each for each in found if not each.empty), key=lambda each: (not each.changed, each.queue))


def moment(user: Any, at: datetime) -> Moment:
    """The minute in which an instant lies, for the queues that a user may see; those that hold queues are left out."""
    minute = minute_of(at)
    taken = SampleTime.objects.filter(at__gte=minute, at__lt=minute + MINUTE).order_by("-at").first()
    previous = SampleTime.objects.filter(at__lt=minute).order_by("-at").first()
    if taken is None:
        later = SampleTime.objects.filter(at__gte=minute + MINUTE).order_by("at").first()
        return Moment(minute, None, minute, [], _minute(previous), _minute(later))
    follows = previous is not None and previous.run == taken.run and taken.at - previous.at <= 2 * GAP
    before = previous.at if previous is not None and follows else None
    held = list(_held(user, taken.at, before))
    return Moment(minute, taken, before or minute, held)


def _minute(known: SampleTime | None) -> datetime | None:
    return minute_of(known.at) if known is not None else None


def _held(user: Any, at: datetime, before: datetime | None) -> Iterator[Held]:
    found: defaultdict[str, dict[datetime, Amounts]] = defaultdict(dict)
    rows = QueueSample.objects.filter(at__in=[each for each in (at, before) if each is not None])
    for queue, when, *parts in rows.values_list("queue", "at", *AMOUNTS):
        found[queue][when] = dict(zip(AMOUNTS, parts, strict=True))
    known = named(user, found)
    inner = {row.parent for row in known.values()}
    for name in sorted(found):
        if name in known and name not in inner and at in found[name]:
            was, gone = found[name].get(before) if before else None, known[name].deleted_at is not None
            yield Held(name, known[name].parent, found[name][at], was, gone)
