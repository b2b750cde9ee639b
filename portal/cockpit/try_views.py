"""Pages to try things on: the sandbox for queues and nodes, snapshots and their replay. Nothing is written by either."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from cluster import runtime
from cluster.access import policy
from cluster.display import resource_name
from cluster.errors import ApiError
from cluster.models import Node
from cluster.said import words
from portal.cockpit import snapshots, what_if
from portal.cockpit.draft import NONE, QUOTAS, Draft, fields_of, resource_of
from portal.cockpit.views import may
from portal.unblock.copy import View, current
from portal.unblock.shown import Names
from queues.models import Queue
from scheduler.conf import ConfError

SHOWN = 200
"""Rows of a replay's tables."""


@require_http_methods(["GET", "POST"])
def what_if_page(request: HttpRequest) -> HttpResponse:
    """The sandbox: a draft of changes and what it would do. The draft is in the address; a form that is sent becomes one."""
    may(request, "scheduler.try")
    context: dict[str, Any] = {"draft": Draft.read(_sent(request.POST) if request.method == "POST" else request.GET)}
    try:
        with current().pinned() as view:
            context |= _sandbox(request, view, context["draft"])
    except ApiError as error:
        return render(request, "portal/cockpit/what_if.html", context | {"error": words(error.message)}, status=error.status)
    draft: Draft = context["draft"]
    if request.method == "POST" and not draft.faults:
        return HttpResponseRedirect(f"{reverse('cockpit:what_if')}?{draft.query()}#result")
    return render(request, "portal/cockpit/what_if.html", context, status=422 if draft.faults else 200)


def _sent(form: QueryDict) -> dict[str, Any]:
    """A form as a draft says it: a quota that was emptied is no limit."""
    return {key: str(form[key]).strip() or (NONE if key.partition(".")[0] in QUOTAS else "") for key in form}


def _sandbox(request: HttpRequest, view: View, draft: Draft) -> dict[str, Any]:
    resource = resource_of(view)
    seen = _queues(request).values_list("name", flat=True)
    now = {name: fields_of(dict(view.cache.queues[name].obj), resource) for name in seen if name in view.cache.queues}
    for name in draft.queues.keys() - now.keys():
        draft.faults[f"weight.{name}"] = _("There is no queue %(queue)s") % {"queue": name}
    draft.without_unchanged(now)
    rows = [
        {"name": name, "now": fields, "fields": [(key, draft.queues.get(name, {}).get(key, fields[key])) for key in fields]}
        for name, fields in sorted(now.items())
        if name != "root"
    ]
    context = {
        "rows": rows,
        "resource": resource_name(resource),
        "nodes": _nodes(request),
        "texts": _texts(request, draft),
        "changed": sorted(draft.queues),
        "may_change": policy().may(request.user, "queues.change"),
    }
    if draft.is_empty or draft.faults or request.method == "POST":
        return context
    found = what_if.ask(view, draft)
    return context | (what_if.told(request.user, found) if found is not None else {})


def _texts(request: HttpRequest, draft: Draft) -> dict[str, str]:
    """The fields about nodes, as they were given where they have faults."""
    found = {name: " ".join(getattr(draft, name)) for name in ("cordon", "drain", "remove")}
    add = ", ".join(f"{count}*{like}" for count, like in draft.add)
    return found | {"add": (request.POST or request.GET).get("add", "") if "add" in draft.faults else add}


def _nodes(request: HttpRequest) -> list[str]:
    found = policy().visible(request.user, Node.objects.filter(deleted_at=None))
    return list(found.order_by("name").values_list("name", flat=True)[:2000])


def _queues(request: HttpRequest) -> QuerySet[Queue]:
    return policy().visible(request.user, Queue.objects.filter(deleted_at=None))


@require_http_methods(["GET", "POST"])
def snapshot(request: HttpRequest) -> HttpResponse:
    """Download a snapshot, and replay one."""
    may(request, "scheduler.snapshot")
    context: dict[str, Any] = {"megabytes": snapshots.UPLOAD >> 20}
    if request.method == "GET":
        return render(request, "portal/cockpit/snapshot.html", context)
    upload, conf = request.FILES.get("snapshot"), request.POST.get("conf", "").replace("\r\n", "\n").strip()
    context["conf"] = conf
    status = 200
    if upload is None:
        context["error"], status = _("Choose the file of a snapshot."), 422
    elif (upload.size or 0) > snapshots.UPLOAD:
        size = {"size": snapshots.UPLOAD >> 20}
        context["error"], status = _("A snapshot of at most %(size)s MiB can be replayed here.") % size, 413
    else:
        try:
            found = snapshots.replayed(upload.read(), conf)
            context |= _replayed(request, found)
        except ConfError as error:
            context["faults"], status = [{"line": each.line, "message": words(each.message)} for each in error.faults], 422
        except ApiError as error:
            context["error"], status = words(error.message), 422
    return render(request, "portal/cockpit/snapshot.html", context, status=status)


def _replayed(request: HttpRequest, found: Any) -> dict[str, Any]:
    names = Names(request.user, found.verdicts)
    return {
        "found": found,
        "binds": found.binds[:SHOWN],
        "evictions": found.evictions[:SHOWN],
        "verdicts": [(uid, names.job(uid), verdict) for uid, verdict in list(found.verdicts.items())[:SHOWN]],
    }


@require_GET
def snapshot_file(request: HttpRequest) -> HttpResponse:
    """What the scheduler schedules by at this moment, as one JSON List, packed."""
    may(request, "scheduler.snapshot")
    try:
        taken = snapshots.take()
    except ApiError as error:
        return render(request, "portal/cockpit/snapshot.html", {"error": words(error.message)}, status=error.status)
    answer = HttpResponse(snapshots.packed(taken), content_type="application/gzip")
    answer["Content-Disposition"] = f'attachment; filename="snapshot-{runtime.now():%Y%m%d-%H%M%S}.json.gz"'
    return answer
