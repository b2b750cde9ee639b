"""Pages of the machines: the list of nodes, one node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from cluster import capacity, exports, gpu_words, machines, queries, rejections
from cluster import node_list as listing
from cluster import node_page as node_page_facts
from cluster.access import policy
from cluster.capacity import Summary
from cluster.errors import ApiError
from cluster.models import Node
from cluster.node_list import NodeFilter
from cluster.said import words
from cluster.workloads import Usage, current

PAGE = 50


def _may_view(request: HttpRequest) -> None:
    if not policy().may(request.user, "nodes.view"):
        raise PermissionDenied


def node_list(request: HttpRequest) -> HttpResponse:
    """Nodes, filtered, sorted and paged."""
    _may_view(request)
    room = capacity.summary(request.user)
    wanted, refusing = _wanted(request, room)
    rows, usage = _ordered(request.user, wanted, room)
    page: Any = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    shown = list(page.object_list)
    if wanted.needs_use:
        found = Node.objects.defer(*_UNSHOWN).in_bulk(shown)
        shown = [found[uid] for uid in shown if uid in found]
    if usage is None:
        usage = current().usage([node.name for node in shown])
    parts = room.by_node() if room is not None else {}
    alive = listing.by_state(request.user)
    context = {
        "rows": [(node, usage.get(node.name, Usage()), parts.get(node.name, ())) for node in shown],
        "page": page,
        "wanted": wanted,
        "panels": listing.panels(request.user, wanted),
        "counts": alive,
        "all": alive.total(),
        "alive": alive.total() - alive["lost"],
        "columns": listing.heads(wanted.sort),
        "refusing": refusing,
        "room": room,
        "file_query": _without_page(request),
        "may_change": policy().may(request.user, "nodes.change"),
    }
    return render(request, "cluster/_nodes.html" if _wants_part(request) else "cluster/nodes.html", context)


_UNSHOWN = ("gpu_links", "gpu_cards", "gpu_usage", "labels", "taints", "conditions")


def _wanted(request: HttpRequest, room: Summary | None) -> tuple[NodeFilter, rejections.Refusing | None]:
    """What the address asks, narrowed to the nodes that refuse a job, or have free GPUs of no use, where it asks for those."""
    refusing = rejections.refusing(request.user, request.GET.get("job", ""), request.GET.get("cause", ""))
    wanted = NodeFilter.of(request.GET.dict())
    names = set(refusing.nodes) if refusing is not None else None
    if wanted.of_no_use:
        useless = {part.node for part in room.parts} if room is not None else set()
        names = useless if names is None else names & useless
    return (wanted if names is None else replace(wanted, names=tuple(sorted(names)))), refusing


def _ordered(user: Any, wanted: NodeFilter, room: Summary | None) -> tuple[Any, dict[str, Usage] | None]:
    """The nodes that are asked for, as rows or (where the order is by use) as uids with what is in use."""
    rows = listing.find(user, wanted).defer(*_UNSHOWN)
    if not wanted.needs_use:
        return rows, None
    unusable: Counter[str] = Counter()
    for part in room.parts if room is not None else ():
        unusable[part.node] += part.gpus
    usage = current().usage()
    return listing.by_use(rows, wanted.sort, usage, unusable), usage


@require_safe
def node_file(request: HttpRequest, form: str) -> StreamingHttpResponse:
    """All nodes that are asked for, as CSV or JSON."""
    _may_view(request)
    room = capacity.summary(request.user)
    wanted, _refusing = _wanted(request, room)
    found, usage = _ordered(request.user, wanted, room)
    if wanted.needs_use:
        rows = Node.objects.defer(*_UNSHOWN).in_bulk(found)
        found = [rows[uid] for uid in found if uid in rows]
    parts = room.by_node() if room is not None else {}
    return exports.answer(listing.file(list(found), usage if usage is not None else current().usage(), parts), "nodes", form)


def _without_page(request: HttpRequest) -> str:
    kept = request.GET.copy()
    kept.pop("page", None)
    return kept.urlencode()


def node_page(request: HttpRequest, name: str) -> HttpResponse:
    """One node: its facts, GPUs, links, pods, events."""
    _may_view(request)
    node = get_object_or_404(queries.nodes(request.user), name=name)
    usage = current().usage([node.name]).get(node.name, Usage())
    done, events = node_page_facts.told(queries.events(node))
    context = node_context(node, queries.strips(request.user, [node])[0])
    context |= {
        "pods": current().pods(request.user, node.name),
        "events": events,
        "done": [(event, node_page_facts.deed(event)) for event in done],
        "usage": usage,
        "amounts": node_page_facts.amounts(node, usage),
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
        machines.act(name, action, request.user.get_username())
    except ApiError as error:
        messages.error(request, words(error.message))
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
    return render(request, "cluster/node_panel.html", node_context(node, queries.strips(request.user, [node])[0]))


def _wants_part(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-History-Restore-Request") != "true"


def node_context(node: Node, strip: queries.Strip) -> dict[str, Any]:
    """What the page of a node and its panel beside the heatmap share."""
    sets = node_page_facts.sets(node, strip)
    links = node_page_facts.links(node, strip, sets["best_pair"])
    kinds = {link.name: link.level for row in links for link, _marked in row["cells"] if link is not None}
    return {
        "node": node,
        "strip": strip,
        "links": links,
        "link_kinds": sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0])),
        "state_words": gpu_words.states(),
        **sets,
    }
