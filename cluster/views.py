"""Pages of the machines: the GPU heatmap with its table, the list of nodes, one node."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from cluster import machines, queries, rejections
from cluster.access import policy
from cluster.errors import ApiError
from cluster.models import Node
from cluster.workloads import Usage, current

PAGE = 50
TABLE_PAGE = 100
MODES = ("state", "queue", "job", "user", "model")


def _may_view(request: HttpRequest) -> None:
    if not policy().may(request.user, "nodes.view"):
        raise PermissionDenied


def gpus(request: HttpRequest) -> HttpResponse:
    """Every GPU: as a heatmap, or as a table (`?view=table`, and what browsers without script get)."""
    _may_view(request)
    model = request.GET.get("model", "")
    fleet = queries.fleet(request.user, model)
    asked = request.GET.get("node")
    chosen = next((strip for strip in fleet.strips if strip.node.name == asked), None)
    if asked is None and fleet.strips:
        chosen = fleet.strips[0]
    as_table = request.GET.get("view") == "table"
    context: dict[str, Any] = {
        "fleet": fleet,
        "states": [(state, _state_words()[state], fleet.counts[state]) for state in queries.STATES],
        "modes": _mode_words(),
        "mode": mode if (mode := request.GET.get("by", "")) in MODES else MODES[0],
        "models": [name for name, count in queries.models(request.user) if name],
        "model": model,
        "job": request.GET.get("job", ""),
        "as_table": as_table,
        "page": Paginator(fleet.strips, TABLE_PAGE).get_page(request.GET.get("page")),
        "state_words": _state_words(),
        "lost": sum(not strip.node.ready for strip in fleet.strips),
        "words": _heatmap_words(),
    }
    if not as_table:
        context["data"] = queries.fleet_json(fleet)
    if chosen is not None:
        node = queries.nodes(request.user).get(pk=chosen.node.pk)
        context |= _node_context(node, queries.Strip(node, chosen.cells))
    return render(request, "cluster/gpus.html", context)


def node_list(request: HttpRequest) -> HttpResponse:
    """Nodes, filtered, sorted and paged."""
    _may_view(request)
    refusing = rejections.refusing(request.user, request.GET.get("job", ""), request.GET.get("cause", ""))
    wanted = queries.NodeFilter(
        names=refusing.nodes if refusing is not None else None,
        text=request.GET.get("q", "").strip()[:253],
        state=request.GET.get("state", ""),
        model=request.GET.get("model", ""),
        rack=request.GET.get("rack", ""),
        sort=request.GET.get("sort", "name"),
    )
    rows = queries.find(request.user, wanted)
    usage: dict[str, Usage] | None = None
    if wanted.sort.lstrip("-") in queries.BY_USE:
        usage = current().usage()
        page: Any = Paginator(queries.by_use(rows, wanted.sort, usage), PAGE).get_page(request.GET.get("page"))
        found = Node.objects.in_bulk(page.object_list)
        shown = [found[uid] for uid in page.object_list if uid in found]
    else:
        page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
        shown = list(page.object_list)
    if usage is None:
        usage = current().usage([node.name for node in shown])
    counts = queries.node_counts(request.user)
    context = {
        "rows": [(node, usage.get(node.name, Usage())) for node in shown],
        "page": page,
        "wanted": wanted,
        "counts": counts,
        "alive": counts["ready"] + counts["cordoned"],
        "models": queries.models(request.user),
        "states": [("ready", _("Ready")), ("cordoned", _("Cordoned")), ("lost", _("Not ready"))],
        "columns": _columns(wanted.sort),
        "refusing": refusing,
    }
    return render(request, "cluster/_nodes.html" if _wants_part(request) else "cluster/nodes.html", context)


def node_page(request: HttpRequest, name: str) -> HttpResponse:
    """One node: its facts, GPUs, links, pods, events."""
    _may_view(request)
    node = get_object_or_404(queries.nodes(request.user), name=name)
    context = _node_context(node, queries.strips(request.user, [node])[0])
    context |= {
        "pods": current().pods(request.user, node.name),
        "events": queries.events(node),
        "usage": current().usage([node.name]).get(node.name, Usage()),
        "actions": _node_actions(request.user, node),
    }
    return render(request, "cluster/node.html", context)


@require_POST
def node_action(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Cordon or uncordon; take down or bring back, where the machines are simulated."""
    node = get_object_or_404(queries.nodes(request.user), name=name)
    if not policy().may(request.user, "nodes.change", node):
        raise PermissionDenied
    if action not in machines.ACTIONS:
        raise Http404(action)
    try:
        machines.act(name, action)
    except ApiError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _done(action) % {"name": name})
    return redirect("cluster:node", name)


def _done(action: str) -> str:
    words = {
        "cordon": _("%(name)s is cordoned: it takes no new pods, and those on it go on."),
        "uncordon": _("%(name)s takes pods again."),
        "lose": _("%(name)s was taken down. Its pods are given up if it stays away for five minutes."),
        "recover": _("%(name)s is back."),
    }
    return words[action]


def _node_actions(user: Any, node: Node) -> list[tuple[str, str]]:
    """What the reader may do to the node as it is: names of actions with their words."""
    if not policy().may(user, "nodes.change", node):
        return []
    offers = [("uncordon", _("Uncordon")) if node.cordoned else ("cordon", _("Cordon"))]
    if machines.simulated():
        offers.append(("lose", _("Take down (simulated)")) if node.ready else ("recover", _("Bring back")))
    return offers


def node_panel(request: HttpRequest, name: str) -> HttpResponse:
    """The part of a node that the GPU page shows at its side."""
    _may_view(request)
    node = get_object_or_404(queries.nodes(request.user), name=name)
    return render(request, "cluster/node_panel.html", _node_context(node, queries.strips(request.user, [node])[0]))


def _wants_part(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-History-Restore-Request") != "true"


def _node_context(node: Node, strip: queries.Strip) -> dict[str, Any]:
    links = queries.link_matrix(node)
    free = {cell.index for cell in strip.cells if cell.state == "free"}
    kinds = {link.name: link.level for row in links for link in row if link is not None}
    return {
        "node": node,
        "strip": strip,
        "links": [(index, index in free, row) for index, row in enumerate(links)],
        "link_kinds": sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0])),
        "state_words": _state_words(),
    }


def _columns(sort: str) -> list[dict[str, str]]:
    """Heads of the node table: what each is called, where its link leads, and how it is sorted now."""
    heads = [
        ("name", _("Node"), ""),
        ("state", _("State"), ""),
        ("model", _("GPU model"), ""),
        ("used", _("GPUs used"), "num"),
        ("cpu", _("CPU"), "num"),
        ("memory", _("Memory"), "num"),
        ("pods", _("Pods"), "num"),
        ("rack", _("Rack"), ""),
    ]
    now = {sort: "ascending"} if not sort.startswith("-") else {sort[1:]: "descending"}
    return [
        {"key": f"-{key}" if now.get(key) == "ascending" else key, "label": label, "css": css, "sorted": now.get(key, "")}
        for key, label, css in heads
    ]


def _state_words() -> dict[str, str]:
    return {
        "allocated": _("Allocated"),
        "free": _("Free"),
        "releasing": _("Releasing"),
        "unhealthy": _("Unhealthy"),
        "cordoned": _("Cordoned"),
        "unknown": _("No data"),
    }


def _mode_words() -> list[tuple[str, str]]:
    return [("state", _("State")), ("queue", _("Queue")), ("job", _("Job")), ("user", _("User")), ("model", _("Model"))]


def _heatmap_words() -> dict[str, Any]:
    """What the heatmap's script says."""
    return {
        "states": _state_words(),
        "noSpine": _("No spine"),
        "noRack": _("No rack"),
        "rack": _("rack %(name)s"),
        "spineFree": _("%(free)s of %(total)s free"),
        "whole": _("whole nodes free: %(count)s"),
        "noWhole": _("no whole node free"),
        "full": _("full"),
        "free": _("%(count)s free"),
        "others": _("others"),
        "lighter": _("pale: free"),
        "idle": _("No GPU is in use."),
        "none": _("nobody"),
        "cell": _("%(node)s, GPU %(gpu)s"),
        "state": _("State"),
        "job": _("Job"),
        "queue": _("Queue"),
        "user": _("User"),
        "model": _("Model"),
        "cordoned": _("cordoned"),
        "unknown": _("no data"),
    }
