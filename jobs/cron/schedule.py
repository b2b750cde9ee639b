"""Schedules of cron jobs: five fields, names such as `@hourly`, or `@every <duration>`, in a time zone.

The times come from cronsim. Around a change of the clocks it does as Debian's cron: what stands at a fixed time of day happens
once, right after the gap when its time is left out, and the first time when it comes twice; what repeats by minute or hour goes
by elapsed time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from cluster.durations import parse_duration
from cluster.said import said

MANY = 100
"""More missed times than this are not counted."""

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = (
    (said("minute"), 0, 59, ()),
    (said("hour"), 0, 23, ()),
    (said("day of month"), 1, 31, ()),
    (said("month"), 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")),
    (said("day of week"), 0, 6, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
)
_TERM = re.compile(r"(\*|\?|[0-9]{1,2}|[A-Z]{3})(?:-([0-9]{1,2}|[A-Z]{3}))?(?:/([0-9]{1,4}))?")
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_WINDOWS = (3600.0, 86_400.0, 32 * 86_400.0, 366 * 86_400.0, 8 * 366 * 86_400.0, 100 * 366 * 86_400.0)
_LAST = datetime(9000, 1, 1, tzinfo=UTC).timestamp()


class ScheduleError(ValueError):
    """A schedule or a time zone that is none; the message says what would be right."""


def zone(name: str | None) -> tzinfo:
    """The time zone of this name, UTC for None. Raises ScheduleError."""
    if name is None:
        return UTC
    parts = name.split("/")
    if name.lower() == "local" or not all(_ZONE_PART.fullmatch(p) and p not in (".", "..") and p[0] != "-" for p in parts):
        raise ScheduleError(said("%(name)r is no time zone: write one such as 'Europe/Berlin' or 'Etc/UTC'", name=name))
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ScheduleError(
            said("there is no time zone %(name)r: write one such as 'Europe/Berlin' or 'Etc/UTC'", name=name)
        ) from None


@dataclass(frozen=True, slots=True)
class Missed:
    """What of a schedule has passed: the latest time that has, None when none did, and whether very many did."""

    latest: float | None
    many: bool = False


class Schedule:
    """When something happens. Instants are seconds since the epoch."""

    def __init__(self, text: str, time_zone: str | None = None) -> None:
        """Raises ScheduleError."""
        self._zone = zone(time_zone)
        self.period: float | None = None
        self._fields = ""
        if text.startswith("@every"):
            self.period = _period(text)
        else:
            self._fields = _fields(text)
            self._check_ever()

    def times(self, after: float) -> Iterator[float]:
        """All times after an instant, in order. A period is counted from that instant."""
        if self.period is not None:
            start = math.floor(after)
            yield from (start + self.period * number for number in range(1, 1_000_000_000))
            return
        if after >= _LAST:
            return
        found = after
        for moment in CronSim(self._fields, datetime.fromtimestamp(after, self._zone)):
            instant = moment.timestamp()
            if instant > found:  # around a change of the clocks a time may come out twice
                found = instant
                yield instant

    def next(self, after: float) -> float | None:
        """The first time after an instant, None when there is none any more."""
        return next(self.times(after), None)

    def upcoming(self, after: float, count: int) -> list[float]:
        """The next so many."""
        return list(islice(self.times(after), count))

    def missed(self, after: float, now: float) -> Missed:
        """What lies after `after` and not after `now`."""
        if self.period is not None:
            number = math.floor((now - math.floor(after)) / self.period)
            return Missed(math.floor(after) + number * self.period if number > 0 else None, number > MANY)
        latest, number = None, 0
        for moment in islice(self.times(after), MANY + 1):
            if moment > now:
                return Missed(latest)
            latest, number = moment, number + 1
        if number <= MANY:
            return Missed(latest)
        return Missed(self._latest(now), many=True)

    def _latest(self, now: float) -> float | None:
        """The latest time that has passed, looked for in ever wider windows."""
        for window in _WINDOWS:
            latest = None
            for moment in self.times(now - window):
                if moment > now:
                    break
                latest = moment
            if latest is not None:
                return latest
        return None

    def _check_ever(self) -> None:
        """A day that no month has would be looked for in vain."""
        try:
            first = next(iter(CronSim(self._fields, datetime(2000, 1, 1, tzinfo=UTC))), None)
        except (CronSimError, OverflowError):
            first = None
        if first is None:
            raise ScheduleError(said("names a day that never comes, such as 30 February"))


def _period(text: str) -> float:
    try:
        seconds = parse_duration(text.removeprefix("@every").strip())
    except ValueError as error:
        raise ScheduleError(said("after @every stands a duration, such as '@every 1h30m': %(error)s", error=error)) from None
    if seconds < 0 or seconds > 3650 * 86_400:
        raise ScheduleError(said("after @every stands a duration above 0 and of ten years at most"))
    return float(max(1, math.floor(seconds)))


def _fields(text: str) -> str:
    """Five fields in the form that cronsim takes. Raises ScheduleError."""
    if text.startswith("@"):
        if text.strip() not in _NAMED:
            raise ScheduleError(
                said(
                    "%(text)r is no schedule: known names are %(known)s and @every",
                    text=text[:60],
                    known=", ".join(sorted(_NAMED)),
                )
            )
        return _NAMED[text.strip()]
    if "TZ" in text:
        raise ScheduleError(said("a time zone does not belong into the schedule: name it in timeZone"))
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ScheduleError(
            said(
                "%(text)r has %(count)s fields and must have 5: minute, hour, day of month, month, day of week",
                text=text[:60],
                count=len(parts),
            )
        )
    return " ".join(_field(part.upper(), *field) for part, field in zip(parts, _FIELDS, strict=True))


def _field(text: str, title: str, low: int, high: int, names: tuple[str, ...]) -> str:
    return ",".join(_term(term, title, low, high, names) for term in text.split(","))


def _term(text: str, title: str, low: int, high: int, names: tuple[str, ...]) -> str:
    match = _TERM.fullmatch(text)
    if match is None:
        right = (
            said("a number from %(low)s to %(high)s or a name such as %(name)s", low=low, high=high, name=names[1])
            if names
            else said("a number from %(low)s to %(high)s", low=low, high=high)
        )
        raise ScheduleError(
            said(
                "%(text)r is no %(title)s: write *, %(right)s, a range such as %(low)s-%(high)s, a step such as */2",
                text=text[:40],
                title=title,
                right=right,
                low=low,
                high=high,
            )
        )
    first, last, step = match.groups()
    if step is not None and int(step) == 0:
        raise ScheduleError(said("the step of the %(title)s %(text)r must be 1 or more", title=title, text=text))
    if first in "*?":
        if last is not None:
            raise ScheduleError(said("%(text)r is no %(title)s: a range begins with a number", text=text, title=title))
        if step in (None, "1"):
            return "*"
        # A step that leaves days out narrows the days as a list of them would; one of hours goes by elapsed time.
        return f"{low}-{high}/{step}" if title.startswith("day") else f"*/{step}"
    start = _number(first, title, low, high, names)
    end = _number(last, title, low, high, names) if last is not None else (high if step is not None else start)
    if end < start:
        raise ScheduleError(said("the %(title)s %(text)r begins after its end", title=title, text=text))
    return f"{start}-{end}" + (f"/{step}" if step is not None else "") if end > start else str(start)


def _number(text: str, title: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + low
    if not (text.isdecimal() and len(text) < 5 and low <= int(text) <= high):
        right = (
            said("from %(low)s to %(high)s, or %(first)s to %(last)s", low=low, high=high, first=names[0], last=names[-1])
            if names
            else said("from %(low)s to %(high)s", low=low, high=high)
        )
        raise ScheduleError(said("%(text)r is no %(title)s: they go %(right)s", text=text, title=title, right=right))
    return int(text)
