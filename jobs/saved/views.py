"""Pages of saved views: their list, and keeping, changing, sharing and dropping one."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from cluster.access import policy
from jobs.pages.asked import Filter
from jobs.saved.models import Role, SavedView
from jobs.saved.shown import Tab, canonical, visible

MOST = 200
"""Views that one person may keep."""


@require_http_methods(["GET", "HEAD", "POST"])
def view_list(request: HttpRequest) -> HttpResponse:
    """All views that somebody may use; a POST keeps a new one."""
    if request.method == "POST":
        return _keep(request)
    rows = [Tab.of(view, is_on=False) for view in visible(request.user)]
    return render(request, "jobs/views.html", {"views": rows, "roles": Role.choices, "may_set": may_set_roles(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def view_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Leads to the list that the view means (that is its stable address); a POST changes or drops it."""
    view = visible(request.user).filter(pk=pk).first()
    if view is None:
        raise Http404
    if request.method != "POST":
        return redirect(Tab.of(view, is_on=True).address)
    if view.owner_id != request.user.pk and not may_set_roles(request):
        raise PermissionDenied(_("Only who keeps a view may change it."))
    return _change(request, view)


def may_set_roles(request: HttpRequest) -> bool:
    """Whether somebody may say what others see first."""
    return policy().may(request.user, "views.change")


def _keep(request: HttpRequest) -> HttpResponse:
    query = _query(request)
    if SavedView.objects.filter(owner_id=request.user.pk).count() >= MOST:
        messages.error(request, _("%(count)s views are kept at most; drop one first.") % {"count": MOST})
        return redirect("jobs:views")
    view = SavedView(owner_id=request.user.pk, query=query)
    return _write(request, view, _("View %(name)s is kept."))


def _change(request: HttpRequest, view: SavedView) -> HttpResponse:
    if request.POST.get("do") == "drop":
        view.delete()
        messages.success(request, _("View %(name)s is gone.") % {"name": view.name})
        return redirect("jobs:views")
    if "query" in request.POST:
        view.query = _query(request)
    return _write(request, view, _("View %(name)s was changed."))


def _query(request: HttpRequest) -> str:
    """The filters of the posted query that can be understood are kept as they are; the page is not."""
    return canonical(QueryDict(request.POST.get("query", "")))[:2000]


def _write(request: HttpRequest, view: SavedView, done: str) -> HttpResponse:
    posted = request.POST
    if "name" in posted:
        view.name = " ".join(posted["name"].split())[:60]
        view.is_shared = posted.get("is_shared") == "1"
    if not view.name:
        messages.error(request, _("A view needs a name."))
        return redirect(Tab("", view.query, True).address)
    role = posted.get("default_for") if "default_for" in posted and may_set_roles(request) else view.default_for
    view.default_for = role if role in Role.values else ""
    view.is_shared = view.is_shared or bool(view.default_for)  # what everybody is shown, everybody may use
    try:
        with transaction.atomic():
            if view.default_for:
                SavedView.objects.filter(default_for=view.default_for).exclude(pk=view.pk).update(default_for="")
            view.save()
    except IntegrityError:
        messages.error(request, _("You keep a view called %(name)s already.") % {"name": view.name})
        return redirect(Tab("", view.query, True).address)
    for problem in Filter.of(QueryDict(view.query)).problems:
        messages.warning(request, problem)
    messages.success(request, done % {"name": view.name})
    return redirect("jobs:views") if posted.get("from") == "views" else redirect("jobs:view", pk=view.pk)
