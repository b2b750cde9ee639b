"""The pages of GPUs: the heatmap, the same as a table, and as a file."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from cluster import capacity, compact, exports, gpu_table, gpu_words, queries
from cluster.access import policy
from cluster.gpu_table import GpuFilter
from cluster.views import node_context

TABLE_PAGE = 100
UNSEEN_PAGE = 25
"""Rows of the table that browsers with script get and do not show."""
_SCRIPTS = (
    """heatmap fleetmap fleetlayout gpucell fleetlook fleetdata fleetlive fleetlegend fleetcard live news colours clock words"""
)
MODULES = tuple(f"js/{name}.js" for name in _SCRIPTS.split())
"""What the heatmap's script is made of: asked for at once, not one after the other."""


def _may_view(request: HttpRequest) -> None:
    if not policy().may(request.user, "nodes.view"):
        raise PermissionDenied


@require_safe
def gpus(request: HttpRequest) -> HttpResponse:
    """Every GPU: as a heatmap, or as a table (`?view=table`, and what browsers without script get)."""
    _may_view(request)
    asked = GpuFilter.of(request.GET)
    fleet = queries.fleet(request.user, asked.model)
    as_table = request.GET.get("view") == "table"
    narrowed = fleet.strips if asked.is_empty else list(asked.narrow(fleet.strips))
    context: dict[str, Any] = {
        "fleet": fleet,
        "capacity": capacity.summary(request.user),
        "asked": asked,
        "as_table": as_table,
        "states": _states(fleet),
        "modes": gpu_words.modes(),
        "mode": mode if (mode := request.GET.get("by", "")) in gpu_words.MODES else gpu_words.MODES[0],
        "models": [name for name, _count in queries.models(request.user) if name],
        "page": Paginator(narrowed, TABLE_PAGE if as_table else UNSEEN_PAGE).get_page(request.GET.get("page")),
        "found": sum(len(strip.cells) for strip in narrowed),
        "state_words": gpu_words.states(),
        "file_query": without_place(request.GET),
    }
    if not as_table:
        context |= _heatmap(request, fleet)
    return render(request, "cluster/gpus.html", context)


def _states(fleet: queries.Fleet) -> list[tuple[str, str, str, int]]:
    words, meanings = gpu_words.states(), gpu_words.meanings()
    return [(state, words[state], meanings[state], fleet.counts[state]) for state in queries.STATES]


def _heatmap(request: HttpRequest, fleet: queries.Fleet) -> dict[str, Any]:
    text, digest = compact.encoded(fleet)
    context = {"data": in_script(text), "digest": digest, "words": gpu_words.heatmap(), "modules": MODULES}
    name = request.GET.get("node")
    if name is None and fleet.strips:
        name = fleet.strips[0].node.name
    chosen = next((strip for strip in fleet.strips if strip.node.name == name), None)
    if chosen is not None:
        node = queries.nodes(request.user).get(pk=chosen.node.pk)
        context |= node_context(node, queries.Strip(node, chosen.cells))
    return context


def in_script(text: bytes) -> str:
    """JSON that may stand in a script element: no name in it can end the element or begin a comment."""
    return text.decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def without_place(query: QueryDict) -> str:
    """A table's address without what only says where in it one is: the same GPUs."""
    kept = query.copy()
    for name in ("page", "view", "by", "node"):
        kept.pop(name, None)
    return kept.urlencode()


@require_safe
def gpu_file(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """The GPUs of the table, all pages of them, as CSV or JSON."""
    _may_view(request)
    return exports.answer(gpu_table.file(request.user, GpuFilter.of(request.GET)), "gpus", form)
