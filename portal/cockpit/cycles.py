"""Cycles over time: read once for a window, counted, drawn as bars. Pages and the API take their figures from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from portal.models import Cycle

WINDOWS = {"2m": timedelta(minutes=2), "1h": timedelta(hours=1), "24h": timedelta(hours=24)}
BARS = 120
"""Bars of a chart. Of more cycles than that each bar is the slowest of its stretch of time."""
BANDS = 5
"""Plugins of a chart that have a band of their own; the others share one."""
CORE, OPEN, CLOSE, OTHERS = "core", "open", "close", "others"
LIGHT = ("id", "number", "at", "milliseconds", "waited", "considered", "bound", "evicted")
FIELDS = (*LIGHT, "actions", "hooks", "opening")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a window’s cycles come to; milliseconds are None without cycles. `per_second`: pods placed in a second of cycles."""

    cycles: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    longest: float | None = None
    considered: int = 0
    bound: int = 0
    evicted: int = 0
    per_second: float | None = None
    waited: float | None = None


@dataclass(slots=True)
class Stretch:
    """The cycles of a window, the newest first, and what they come to."""

    window: str
    rows: list[Cycle] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)

    def slowest(self, most: int = 8) -> list[Cycle]:
        """The cycles that took longest."""
        return sorted(self.rows, key=lambda each: (-each.milliseconds, -each.number))[:most]


def read(window: str, present: datetime, fields: Sequence[str] = LIGHT) -> Stretch:
    """The kept cycles of a window (a key of WINDOWS) that ends now; where their time went only if it is in `fields`."""
    rows = list(Cycle.objects.filter(at__gt=present - WINDOWS[window]).only(*fields))
    return Stretch(window, rows, figures(rows))


def newest() -> Cycle | None:
    """The last cycle that is kept."""
    return Cycle.objects.only(*FIELDS).first()


def figures(rows: Sequence[Cycle]) -> Figures:
    """What some cycles come to."""
    if not rows:
        return Figures()
    spent = sorted(each.milliseconds for each in rows)
    bound = sum(each.bound for each in rows)
    at_work = sum(each.milliseconds for each in rows if each.bound) / 1000
    waited = sorted(each.waited for each in rows if each.waited is not None)
    return Figures(
        len(rows), percentile(spent, 50), percentile(spent, 95), percentile(spent, 99), spent[-1],
        sum(each.considered for each in rows), bound, sum(each.evicted for each in rows),
        bound / at_work if at_work else None,
        percentile(waited, 50) if waited else None,
    )  # fmt: skip


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The least value that so many percent of some ordered ones do not exceed."""
    return ordered[max(-(-len(ordered) * percent // 100) - 1, 0)]


# -- one cycle, by plugin and action -----------------------------------------------------------------------------------


def matrix(cycle: Cycle) -> dict[str, dict[str, float]]:
    """Milliseconds by plugin and phase (`open`, the actions, `close`); the sums of all are the cycle's own time.

    `core` is what the framework spends between the plugins: orders, the journal, binds and statuses. Empty for a cycle that was
    kept before plugins were timed.
    """
    if not cycle.hooks:
        return {}
    total = {OPEN: cycle.opening or 0.0, **cycle.actions}
    total[CLOSE] = max(cycle.milliseconds - sum(total.values()), 0.0)
    found: dict[str, dict[str, float]] = {}
    for phase, spent in total.items():
        plugins = cycle.hooks.get(phase) or {}
        theirs = sum(plugins.values())
        shrunk = min(1.0, spent / theirs) if theirs else 1.0  # what is timed now and then may say more than there was
        for plugin, each in plugins.items():
            found.setdefault(plugin, {})[phase] = each * shrunk
        found.setdefault(CORE, {})[phase] = max(spent - theirs, 0.0)
    return found


def phases(cycle: Cycle) -> list[str]:
    """The columns of the matrix."""
    return [OPEN, *cycle.actions, CLOSE]


def by_plugin(cycle: Cycle) -> dict[str, float]:
    """Milliseconds by plugin, the framework's among them."""
    return {plugin: sum(spent.values()) for plugin, spent in matrix(cycle).items()}


def by_action(cycle: Cycle) -> dict[str, float]:
    """Milliseconds by action; what is around them is `core`."""
    rest = cycle.milliseconds - sum(cycle.actions.values())
    return {**cycle.actions, CORE: max(rest, 0.0)}


# -- bars --------------------------------------------------------------------------------------------------------------


def bars(stretch: Stretch) -> list[Cycle]:
    """The cycles that a chart draws, oldest first: all, or the slowest of each stretch of time."""
    rows = list(reversed(stretch.rows))
    if len(rows) <= BARS:
        return _whole(rows)
    first, step = rows[0].at, WINDOWS[stretch.window] / BARS
    slowest: dict[int, Cycle] = {}
    for each in rows:
        place = int((each.at - first) / step)
        if place not in slowest or each.milliseconds > slowest[place].milliseconds:
            slowest[place] = each
    return _whole([slowest[place] for place in sorted(slowest)])


def _whole(rows: Sequence[Cycle]) -> list[Cycle]:
    """The same rows with where their time went, in one query."""
    found = Cycle.objects.only(*FIELDS).in_bulk([each.pk for each in rows])
    return [found[each.pk] for each in rows if each.pk in found]


def chart(drawn: Sequence[Cycle], by: str) -> dict[str, Any]:
    """Bands of milliseconds a bar, the same order in all: by `action` as they run, by `plugin` the largest first."""
    parts = [by_plugin(each) if by == "plugin" else by_action(each) for each in drawn]
    names = _bands(parts) if by == "plugin" else list(dict.fromkeys(name for each in parts for name in each if name != CORE))
    named = {name: [round(each.get(name, 0.0), 3) for each in parts] for name in names}
    if by == "plugin":
        named[OTHERS] = [round(_rest(each, names), 3) for each in parts]
    named[CORE] = [round(each.get(CORE, 0.0), 3) for each in parts]
    return {name: values for name, values in named.items() if any(values)}


def _bands(parts: Iterable[Mapping[str, float]]) -> list[str]:
    total: Counter[str] = Counter()
    for each in parts:
        total.update(each)
    del total[CORE]
    return [name for name, _ in total.most_common(BANDS)]


def _rest(part: Mapping[str, float], names: Sequence[str]) -> float:
    return sum(spent for name, spent in part.items() if name not in names and name != CORE)
