"""The cockpit's pages: how the scheduler is and where its time goes, and one cycle with all that it decided."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from cluster import exports, runtime
from cluster.access import policy
from cluster.said import said
from portal import figures
from portal.cockpit import cycles, judged, ledger, versions
from portal.cockpit.health import health
from portal.cockpit.words import band, does, phase
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
LEVELS = 6
"""Steps of the ramp that colours milliseconds."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Milliseconds and the step of the ramp; None where the plugin has nothing to say."""

    spent: float | None
    level: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A plugin's row of a cycle's time."""

    name: str
    does: str
    cells: list[Cell]
    total: float


def may(request: HttpRequest, action: str) -> None:
    """Raise PermissionDenied unless the user has a right."""
    if not policy().may(request.user, action):
        raise PermissionDenied


def chosen(request: HttpRequest, name: str, among: Any, usual: str) -> str:
    """A choice of the address, the usual one where it is none."""
    given = request.GET.get(name, "")
    return given if given in among else usual


@require_GET
def scheduler(request: HttpRequest) -> HttpResponse:
    """The first page of the scheduler; parts of it ask for it again by themselves."""
    may(request, "scheduler.view")
    present = runtime.now()
    window, by = chosen(request, "window", RANGES, "2m"), chosen(request, "by", ("action", "plugin"), "action")
    kind = chosen(request, "evictions", KINDS, "all")
    stretch, newest = cycles.read(window, present), cycles.newest()
    slowest = stretch.slowest()
    shown = _asked_for(request, slowest[0].pk if slowest else None) or newest
    context = {
        "health": health(newest, present),
        "newest": newest,
        "stretch": stretch,
        "figures": stretch.figures,
        "waiting": figures.waiting(request.user),
        "evicted": judged.counts(present - DAY, present),
        "slowest": slowest,
        "last": stretch.rows[:LAST],
        "window": window,
        "windows": list(RANGES.items()),
        "by": by,
        "chart": chart(stretch, by),
        "kind": kind,
        "kinds": list(KINDS.items()),
        "evictions": judged.table(request.user, kind, present)[:EVICTIONS],
        "kept": {"cycles": sink.KEEP, "evictions": sink.KEEP_EVICTIONS},
        **_configuration(),
        **(_time(shown) | _did(request, shown) if shown else {}),
    }
    return render(request, "portal/cockpit/scheduler.html", context)


@require_GET
def cycle(request: HttpRequest, number: int) -> HttpResponse:
    """One cycle: its time by plugin and action, and its decisions."""
    may(request, "scheduler.view")
    pk = request.GET.get("id", "")
    found = ledger.cycle_numbered(number, int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 19 else None)
    if found is None:
        raise Http404(said("cycle %(number)s is not kept", number=number))
    others = Cycle.objects.only("id", "number", "at")
    context = {
        **_time(found),
        "ledger": ledger.of(request.user, found, runtime.now()),
        "before": others.filter(pk__lt=found.pk).order_by("-pk").first(),
        "after": others.filter(pk__gt=found.pk).order_by("pk").first(),
        "kept": sink.KEEP,
    }
    return render(request, "portal/cockpit/cycle.html", context)


@require_GET
def evictions_csv(request: HttpRequest) -> StreamingHttpResponse:
    """The ledger as CSV, as much of it as the viewer may see."""
    may(request, "scheduler.view")
    rows = judged.table(request.user, chosen(request, "evictions", KINDS, "all"), runtime.now())
    return exports.answer((_LEDGER, _ledger(rows)), "evictions", "csv")


_LEDGER = ("at", "cycle", "victim", "pods", "for", "action", "rules", "freed", "judgement")


async def _ledger(rows: list[judged.Group]) -> AsyncIterator[list[Any]]:
    for row in rows:
        taker = "" if row.taker is None else "other" if row.taker.other else row.taker.job
        victim = "other" if row.victim.other else row.victim.job or row.victim.pod
        at = row.at.isoformat()
        yield [at, row.cycle, victim, row.pods, taker, row.action, row.rules, row.freed, row.judgement.code]


def _asked_for(request: HttpRequest, usual: int | None) -> Cycle | None:
    """The cycle that the address names, else the usual one."""
    pk = request.GET.get("cycle", "")
    asked = int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 19 else 0
    found = Cycle.objects.in_bulk([each for each in (asked, usual) if each])
    return found.get(asked) or found.get(usual or 0)


def _configuration() -> dict[str, Any]:
    return {
        "conf": SchedulerConfiguration.objects.defer("text", "broken").first(),
        "version": versions.in_force(),
    }


def _did(request: HttpRequest, shown: Cycle) -> dict[str, Any]:
    return {"ledger": ledger.brief(request.user, shown, BOUND)}


def chart(stretch: cycles.Stretch, by: str) -> dict[str, Any]:
    """What the chart draws, for the script and the API."""
    drawn = cycles.bars(stretch)
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


def _time(shown: Cycle) -> dict[str, Any]:
    """A cycle's milliseconds by plugin and phase, the largest row first; the framework's own last."""
    found, columns = cycles.matrix(shown), cycles.phases(shown)
    most = max((spent for row in found.values() for spent in row.values()), default=0.0) or 1.0
    totals = {name: sum(row.values()) for name, row in found.items()}
    order = sorted(found, key=lambda name: (name == cycles.CORE, -totals[name], name))
    actions = sorted(shown.actions.items(), key=lambda each: -each[1])
    return {
        "cycle": shown,
        "columns": [phase(name) for name in columns],
        "lines": [
            Line(name, does(name), [_cell(found[name].get(each), most) for each in columns], totals[name]) for name in order
        ],
        "sums": [sum(row.get(each, 0.0) for row in found.values()) for each in columns],
        "most": actions[0] if actions and shown.milliseconds and actions[0][1] > shown.milliseconds / 2 else None,
        "per_second": shown.bound / shown.milliseconds * 1000 if shown.bound and shown.milliseconds else None,
    }


def _cell(spent: float | None, most: float) -> Cell:
    if spent is None:
        return Cell(None)
    return Cell(spent, min(int((spent / most) ** 0.5 * (LEVELS + 1)), LEVELS) if spent >= most / 50 else 0)
