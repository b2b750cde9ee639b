"""The fairness report as a page and as files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from cluster import exports, runtime
from cluster.access import policy
from cluster.display import amount, resource_name
from cluster.errors import BadRequest
from cluster.quantities import BYTES
from cluster.said import words
from queues import asked, history, queries
from queues.fairness import HOUR, Account, Report, as_json, hours_of, report
from queues.integrals import PARTS

COLUMNS = ("deserved", "asked", "received", "waited", "borrowed", "lent")
"""Parts that the page shows, in this order."""


@dataclass(frozen=True, slots=True)
class Line:
    """One queue as the page shows it: (number, unit) by column, and the widths of its bar in per cent of the widest."""

    account: Account
    cells: list[tuple[str, str]]
    style: str


def fairness(request: HttpRequest) -> HttpResponseBase:
    """Who got what over a window, per resource; `?format=csv` and `?format=json` are the same as files."""
    if not policy().may(request.user, "queues.view"):
        raise PermissionDenied
    rows = queries.queues(request.user)
    names = queries.resources(rows)
    problem = ""
    try:
        window, resource = asked.window(request.GET, runtime.now()), asked.resource(request.GET, names)
    except BadRequest as error:
        if request.GET.get("format"):
            return HttpResponse(words(error.message), status=400, content_type="text/plain; charset=utf-8")
        problem = asked.window_problem(error)
        window, resource = asked.window({}, runtime.now()), names[0]
    found = report(request.user, resource, window.begin, window.end)
    form = request.GET.get("format", "")
    if form == "json":
        return JsonResponse(as_json(found))
    if form == "csv":
        return exports.answer(_as_rows(found), "fairness", "csv")
    told = [each.met for each in found.accounts if each.met is not None]
    context = {
        "report": found,
        "problem": problem,
        "lines": _lines(found),
        "unit": "" if resource in BYTES else f"{resource_name(resource)}·h",
        "total": _cells(found.total.sums, resource),
        "worst": min((each for each in found.accounts if each.met is not None), key=lambda each: each.met or 0, default=None),
        "due": len(told),
        "least": told.count(min(told, default=None)),
        "used": found.total.sums["received"] / found.capacity if found.capacity else None,
        "resources": names,
        "window": window.name,
        "windows": history.window_words(),
        "columns": [(part, label) for part, label in _labels().items()],
        "asks": found.asks,
    }
    return render(request, "queues/fairness.html", context)


def _as_rows(found: Report) -> exports.Rows:
    async def rows() -> AsyncIterator[list[Any]]:
        for each in found.accounts:
            met = round(each.met, 6) if found.asks and each.met is not None else None
            parts = hours_of(found, each).values()
            yield [each.queue or "other", each.parent, found.resource, *parts, met, found.seconds]

    return ["queue", "parent", "resource", *PARTS, "met_share", "known_seconds"], rows()


def _labels() -> dict[str, str]:
    return {
        "deserved": _("Deserved"),
        "asked": _("Asked"),
        "received": _("Received"),
        "waited": _("Waited"),
        "borrowed": _("Borrowed"),
        "lent": _("Lent"),
    }


def _lines(found: Report) -> list[Line]:
    widest = max((max(each.sums["received"], each.sums["deserved"]) for each in found.accounts), default=0) or 1
    lines = []
    for each in found.accounts:
        parts = {"cap": each.sums["deserved"], "alc": each.sums["received"], "des": each.sums["deserved"]}
        style = ";".join(f"--{name}:{100 * value / widest:.2f}%" for name, value in parts.items())
        lines.append(Line(each, _cells(each.sums, found.resource), style))
    return lines


def _cells(sums: Any, resource: str) -> list[tuple[str, str]]:
    return [_hours(sums[part], resource) for part in COLUMNS]


def _hours(sums: int, resource: str) -> tuple[str, str]:
    """Two decimals below ten, so that little is not called nothing."""
    text, unit = amount(round(sums / HOUR), resource)
    value = sums / HOUR / history.divisor(resource)
    if not unit and 0 < value < 10:
        text = number_format(max(0.01, round(value, 2)), decimal_pos=2, use_l10n=True)
        text = f"< {text}" if value < 0.005 else text
    return text, f"{unit}·h" if unit else ""
