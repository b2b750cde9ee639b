"""Pages of actions on many jobs: asked from the list, looked at, begun, followed, stopped; none of them needs a script."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from cluster.errors import ApiError
from cluster.said import words
from jobs.bulk import pages
from jobs.bulk.asking import make
from jobs.bulk.control import change, found, own
from jobs.bulk.models import BulkOperation, BulkState

SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
def bulk(request: HttpRequest) -> HttpResponse:
    """The operations of late; a POST from the list makes a new one and leads to its preview."""
    if request.method != "POST":
        return render(request, "jobs/bulk_list.html", {"operations": [_told(each) for each in own(request.user)[:SHOWN]]})
    posted = request.POST
    query = posted.get("query", "")
    uids = posted.getlist("uid") if posted.get("scope", "selection") == "selection" else None
    try:
        action, _colon, argument = posted.get("action", "").partition(":")
        made = make(request.user, action, argument=argument, query=query, uids=uids)
    except ApiError as error:
        messages.error(request, words(error.message))
        return redirect(f"{reverse('jobs:list')}?{query or 'view=all'}")
    return redirect("jobs:bulk_detail", pk=made.pk)


def _told(operation: BulkOperation) -> BulkOperation:
    operation.label = pages.label_of(operation)  # type: ignore[attr-defined]
    operation.word = BulkState(operation.state).label  # type: ignore[attr-defined]
    return operation


@require_http_methods(["GET", "HEAD", "POST"])
def bulk_detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What it would do, does or did; a POST begins it, stops it, or goes on."""
    operation = found(request.user, pk)
    if operation is None:
        raise Http404
    if request.method == "POST":
        _change(request, operation, request.POST.get("do", ""))
        return redirect("jobs:bulk_detail", pk=pk)
    asked = request.GET
    rows = pages.rows(request.user, operation, asked.get("outcome", ""), asked.get("page"))
    context = pages.progress(operation) | {"rows": rows}
    if operation.state == BulkState.DRAFT:
        context |= pages.previewed(request.user, operation)
    return render(request, "jobs/bulk.html", context)


def _change(request: HttpRequest, operation: BulkOperation, wish: str) -> None:
    if wish == "drop" and operation.state == BulkState.DRAFT:
        operation.delete()
        messages.success(request, _("Nothing was done."))
    elif not change(operation, wish):
        messages.error(request, _("That is not possible any more."))
