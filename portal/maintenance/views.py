"""Pages of drains: what one would do, with the form that begins it; how far it is; the list. None of them needs a script."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from cluster.access import policy
from cluster.errors import ApiError, NotFound
from cluster.said import words
from portal.maintenance import acts, asked, progress
from portal.maintenance.models import Drain, Mode
from portal.maintenance.preview import preview
from portal.outlook import shown
from portal.outlook.questions import drain as drain_question

SHOWN = 100


@require_safe
def drain_list(request: HttpRequest) -> HttpResponse:
    """The drains of late, of all nodes or of one."""
    if not policy().may(request.user, "nodes.view"):
        raise PermissionDenied
    node = request.GET.get("node", "").replace("\x00", "")
    found = acts.seen(request.user)
    found = found.filter(nodes__node=node) if node else found
    drains = [
        progress.Progress(drain, [progress.NodeLine(row, []) for row in drain.nodes.all()], False) for drain in found[:SHOWN]
    ]
    return render(request, "portal/maintenance/list.html", {"drains": drains, "node": node})


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """What a drain of the chosen nodes would do; a POST begins it."""
    if not policy().may(request.user, "nodes.change") and not request.GET and not request.POST:
        raise PermissionDenied
    names = asked.names(request.user, request.POST if request.method == "POST" else request.GET)
    context: dict[str, Any] = {"modes": Mode.choices, "given": request.POST or {"mode": Mode.EVICT.value}}
    status = 200
    if request.method == "POST":
        try:
            return redirect("drains:detail", acts.begin(request.user, names, asked.of_form(request.POST)).pk)
        except ApiError as error:
            status = error.status
            context |= {"error": words(error.message), "faults": [words(fault.message) for fault in error.fields]}
    try:
        found = context["found"] = preview(request.user, names)
        if found.unplaced:
            context |= shown.part(request.user, drain_question(names), shown.PATIENT)
    except NotFound as error:
        raise Http404(error.message) from None
    except ApiError as error:
        context.setdefault("error", words(error.message))
        status = error.status if status == 200 else status
    return render(request, "portal/maintenance/new.html", context | {"names": names}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """How far it is; a POST cancels it."""
    if not policy().may(request.user, "nodes.view"):
        raise PermissionDenied
    drain: Drain | None = acts.seen(request.user).filter(pk=pk).first()
    if drain is None:
        raise Http404
    if request.method == "POST":
        try:
            acts.cancel(request.user, drain, uncordon=request.POST.get("do") == "uncordon")
        except ApiError as error:
            messages.error(request, words(error.message))
        else:
            messages.success(request, _("The drain is cancelled. What was evicted stays evicted."))
        return redirect("drains:detail", pk)
    return render(request, "portal/maintenance/drain.html", {"found": progress.of(request.user, drain), "drain": drain})
