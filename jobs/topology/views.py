"""Pages of the network: its domains, one of them, and free GPUs that are of no use."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from cluster import gpu_words, node_page, queries
from cluster.access import policy
from jobs.topology import domains
from jobs.topology.facts import facts
from jobs.topology.shown import Judged, asked_words

NODES = 64
"""A domain of no more nodes is shown GPU by GPU."""
PARTS = 100


def _may_view(request: HttpRequest) -> None:
    if not policy().may(request.user, "nodes.view"):
        raise PermissionDenied


@require_safe
def network(request: HttpRequest) -> HttpResponse:
    """All domains, as a nested picture or (`?view=table`) as a table."""
    _may_view(request)
    known = facts(request.user)
    root = domains.tree(known)
    context: dict[str, Any] = {
        "root": root,
        "network": known.network,
        "tiers": domains.tiers_by_model(known),
        "models": known.stock.models if len(known.stock.models) > 1 else [],
        "judged": Judged.of(known),
        "outside": domains.outside(root),
        "lone": [row for row in root.children if not row.children],
        "as_table": request.GET.get("view") == "table",
        "rows": [row for row in domains.walk(root) if row.name],
    }
    return render(request, "topology/network.html", context)


@require_safe
def domain(request: HttpRequest, name: str) -> HttpResponse:
    """One domain: what fits, the domains below it, its nodes down to their NVLink islands."""
    _may_view(request)
    known = facts(request.user)
    root = domains.tree(known)
    row = domains.of_name(root, name) if name else None
    if row is None:
        raise Http404
    context: dict[str, Any] = {
        "row": row,
        "above": _above(root, row),
        "network": known.network,
        "below": row.children,
        "state_words": gpu_words.states(),
        "legend": [],
        "is_large": row.nodes > NODES,
        "may_drain": policy().may(request.user, "nodes.change"),
    }
    if not context["is_large"]:
        context["nodes"] = nodes = _nodes(request, row, known.unusable_parts)
        there = {cell.state for node in nodes for cell in node["strip"].cells}
        context["legend"] = [(state, word) for state, word in gpu_words.states().items() if state in there]
    return render(request, "topology/domain.html", context)


def _above(root: domains.Row, row: domains.Row) -> list[domains.Row]:
    found: list[domains.Row] = []
    while row.parent:
        above = domains.of_name(root, row.parent)
        if above is None:
            break
        found.insert(0, above)
        row = above
    return found


def _nodes(request: HttpRequest, row: domains.Row, parts: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The domain's nodes with their GPUs by island: two queries."""
    names = [machine.name for machine in row.machines]
    found = queries.strips(request.user, list(queries.nodes(request.user).filter(name__in=names).order_by("name")))
    shown = []
    for strip in found:
        judged = node_page.judged(strip.node, strip, ()) if strip.cells else None
        islands = node_page.island_cells(judged, strip) if judged is not None else []
        best = (
            max((given for _size, given in judged.free if given), key=lambda given: len(given.gpus), default=None)
            if judged
            else None
        )
        shown.append({
            "node": strip.node, "strip": strip, "islands": islands or [list(strip.cells)], "linked": bool(islands),
            "best": best, "parts": parts.get(strip.node.name, []),
        })  # fmt: skip
    return shown


@require_safe
def fragments(request: HttpRequest) -> HttpResponse:
    """Free GPUs of no use: how many, why, where."""
    _may_view(request)
    known = facts(request.user)
    cause, model = request.GET.get("cause", ""), request.GET.get("model", "")
    parts = [part for part in known.fragments.parts if (not cause or part.cause == cause) and (not model or part.model == model)]
    context = {
        "judged": Judged.of(known),
        "waiting": asked_words(known.waiting),
        "usual": asked_words(known.usual),
        "page": Paginator(parts, PARTS).get_page(request.GET.get("page")),
        "cause": cause,
        "most": max(known.fragments.causes.values(), default=0),
        "racks": {machine.name: machine.rack for machine in known.machines},
    }
    return render(request, "topology/fragments.html", context)
