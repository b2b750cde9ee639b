"""The cockpit's pages: how the scheduler is and where its time goes, and one cycle with all that it decided."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from cluster import exports, runtime
from cluster.access import policy
from cluster.said import said
from portal.cockpit import front, judged, ledger
from portal.cockpit.front import KINDS, RANGES, Asked, Facts
from portal.cockpit.time import time_of
from portal.decisions import sink
from portal.models import Cycle


def may(request: HttpRequest, action: str) -> None:
    """Raise PermissionDenied unless the user has a right."""
    if not policy().may(request.user, action):
        raise PermissionDenied


@require_GET
def scheduler(request: HttpRequest) -> HttpResponse:
    """The first page of the scheduler; parts of it come anew over the live channel."""
    may(request, "scheduler.view")
    asked = Asked.read(request.GET)
    shown = front.context(request.user, asked, Facts.read(asked))
    return render(
        request,
        "portal/cockpit/scheduler.html",
        {**shown, "windows": list(RANGES.items()), "kinds": list(KINDS.items())},
    )


@require_GET
def cycle(request: HttpRequest, number: int) -> HttpResponse:
    """One cycle: its time by plugin and action, and its decisions."""
    may(request, "scheduler.view")
    found = ledger.cycle_numbered(number, front.number(request.GET.get("id", "")) or None)
    if found is None:
        raise Http404(said("cycle %(number)s is not kept", number=number))
    others = Cycle.objects.only("id", "number", "at")
    context = {
        **time_of(found),
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
    rows = judged.table(request.user, Asked.read(request.GET).kind, runtime.now())
    return exports.answer((_LEDGER, _ledger(rows)), "evictions", "csv")


_LEDGER = ("at", "cycle", "victim", "pods", "for", "action", "rules", "freed", "judgement")


async def _ledger(rows: list[judged.Group]) -> AsyncIterator[list[Any]]:
    for row in rows:
        taker = "" if row.taker is None else "other" if row.taker.other else row.taker.job
        victim = "other" if row.victim.other else row.victim.job or row.victim.pod
        at = row.at.isoformat()
        yield [at, row.cycle, victim, row.pods, taker, row.action, row.rules, row.freed, row.judgement.code]
