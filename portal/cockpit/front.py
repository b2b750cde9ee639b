"""The scheduler's first page: what it shows for one choice of range, colours and cycle, whole and in parts that are told live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy

from cluster import runtime
from jobs.pages.rendered import parts_in_all_languages
from portal import figures
from portal.cockpit import cycles, judged, ledger, versions
from portal.cockpit.health import Health, health
from portal.cockpit.time import time_of
from portal.cockpit.words import band
from portal.decisions import sink
from portal.models import Cycle, SchedulerConfiguration

RANGES = {"2m": gettext_lazy("2 min"), "1h": gettext_lazy("1 h"), "24h": gettext_lazy("24 h")}
KINDS = {
    "all": gettext_lazy("All"),
    "preempt": gettext_lazy("Preempted"),
    "reclaim": gettext_lazy("Reclaimed"),
    "flagged": gettext_lazy("Flagged"),
}
EVICTIONS = 12
"""Rows of the ledger on the first page."""
LAST = 40
BOUND = 5
"""Gangs that a cycle shows beside its time."""
COLOURS = {
    "enqueue": 5,
    "allocate": 1,
    "backfill": 3,
    "preempt": 2,
    "gangpreempt": 2,
    "reclaim": 4,
    "gangreclaim": 4,
    "shuffle": 6,
}
"""Each action keeps its colour; what is no action's is grey."""
DAY = timedelta(hours=24)
PARTS = ("state", "configuration", "figures", "shape", "bars", "last", "time", "did", "evicted", "evictions")
"""What of the page comes anew by itself; each has a template."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for; what it gets wrong is as usual. `cycle` is the key of one, 0 for the slowest."""

    window: str = "2m"
    by: str = "action"
    kind: str = "all"
    cycle: int = 0

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Asked:
        """From a page's query."""
        return cls(
            kept(given.get("window", ""), RANGES, "2m"),
            kept(given.get("by", ""), ("action", "plugin"), "action"),
            kept(given.get("evictions", ""), KINDS, "all"),
            number(given.get("cycle", "")),
        )

    @classmethod
    def named(cls, text: str) -> Asked | None:
        """From the name of a live topic, which must be as `__str__` writes it."""
        found = dict(zip(("window", "by", "evictions", "cycle"), text.split("."), strict=False))
        asked = cls.read(found)
        return asked if str(asked) == text else None

    def __str__(self) -> str:
        return f"{self.window}.{self.by}.{self.kind}.{self.cycle}"

    @property
    def prefix(self) -> str:
        """What is asked for as an address has it, but for the cycle, which may follow."""
        usual, given = Asked(), {"window": self.window, "by": self.by, "evictions": self.kind}
        unlike = {"window": usual.window, "by": usual.by, "evictions": usual.kind}
        return "".join(f"{name}={value}&" for name, value in given.items() if value != unlike[name])


def kept(given: str, among: Any, usual: str) -> str:
    """A choice, the usual one where it is none."""
    return given if given in among else usual


def number(given: str) -> int:
    """A row's key, 0 for what is none."""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What is read once, whatever language it is told in."""

    present: datetime
    stretch: cycles.Stretch
    newest: Cycle | None
    shown: Cycle | None
    health: Health
    drawn: list[Cycle]

    @classmethod
    def read(cls, asked: Asked) -> Facts:
        """As of now."""
        present = runtime.now()
        stretch, newest = cycles.read(asked.window, present), cycles.newest()
        slowest = stretch.slowest(1)
        shown = _shown(asked.cycle, slowest[0].pk if slowest else 0) or newest
        return cls(present, stretch, newest, shown, health(newest, present), cycles.bars(stretch))


def context(user: Any, asked: Asked, facts: Facts) -> dict[str, Any]:
    """What the page shows, in the language in force."""
    stretch, shown = facts.stretch, facts.shown
    return {
        "asked": asked,
        "health": facts.health,
        "newest": facts.newest,
        "figures": stretch.figures,
        "waiting": figures.waiting(user),
        "evicted": judged.counts(facts.present - DAY, facts.present),
        "slowest": stretch.slowest(),
        "last": stretch.rows[:LAST],
        "chart": chart(stretch, facts.drawn, asked.by),
        "evictions": judged.table(user, asked.kind, facts.present)[:EVICTIONS],
        "kept": {"cycles": sink.KEEP, "evictions": sink.KEEP_EVICTIONS},
        "conf": SchedulerConfiguration.objects.defer("text", "broken").first(),
        "version": versions.in_force(),
        **(time_of(shown) | {"ledger": ledger.brief(user, shown, BOUND)} if shown else {}),
    }


def parts(user: Any, asked: Asked) -> dict[str, dict[str, Any]]:
    """The parts that come anew, drawn in every language."""
    facts = Facts.read(asked)
    templates = {name: f"portal/cockpit/front/{name}.html" for name in PARTS}
    return parts_in_all_languages(templates, lambda: context(user, asked, facts))


def chart(stretch: cycles.Stretch, drawn: list[Cycle], by: str) -> dict[str, Any]:
    """What the chart draws, for the script."""
    bands = cycles.chart(drawn, by)
    return {
        "times": [each.at.timestamp() * 1000 for each in drawn],
        "numbers": [each.number for each in drawn],
        "ids": [each.pk for each in drawn],
        "bands": [
            {"name": band(name, by), "values": values, "colour": _colour(name, place, by)}
            for place, (name, values) in enumerate(bands.items())
        ],
        "p99": stretch.figures.p99,
        "binned": len(drawn) < len(stretch.rows),
    }


def _colour(name: str, place: int, by: str) -> int:
    if name in (cycles.CORE, cycles.OTHERS):
        return 0 if name == cycles.CORE else 6
    return (COLOURS.get(name, 6)) if by == "action" else place + 1


def _shown(asked: int, usual: int) -> Cycle | None:
    """The cycle that is asked for, else the usual one."""
    found = Cycle.objects.in_bulk([each for each in (asked, usual) if each])
    return found.get(asked) or found.get(usual)
