"""Pages of blueprints: the list, one to fill out, its versions side by side, and the editor of its definition."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from cluster.access import policy, seen
from cluster.errors import ApiError, BadRequest, Conflict, NotFound
from cluster.said import words
from jobs.blueprints import access, definition, operations, shown
from jobs.blueprints.models import Blueprint, BlueprintVersion
from jobs.models import Job
from jobs.pages.comparing import compare
from jobs.pages.yamlview import lines
from jobs.submit.uploads import text_of

PAGE = 50
JOBS_SHOWN = 20


@require_safe
def blueprint_list(request: HttpRequest) -> HttpResponse:
    """Which jobs can be filled out?"""
    _may_submit(request)
    rows = access.visible(request.user)
    archived = request.GET.get("archived") == "1"
    total = rows.filter(is_archived=False).count()
    put_away = rows.filter(is_archived=True).count()
    rows, text = rows.filter(is_archived=archived), request.GET.get("q", "")[:200]
    for word in text.split():
        rows = rows.filter(Q(name__icontains=word) | Q(title__icontains=word) | Q(description__icontains=word) | Q(owner=word))
    page = Paginator(shown.with_use(rows), PAGE).get_page(request.GET.get("page"))
    for row in page.object_list:
        row.for_whom = shown.audience(row)
    context = {"page": page, "total": total, "q": text, "archived": archived, "put_away": put_away}
    return render(request, "blueprints/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def blueprint_new(request: HttpRequest) -> HttpResponse:
    """The editor of a new one: from an example, a file, or a job that ran (`?from=`)."""
    _may_submit(request)
    if request.method == "POST":
        return _written(request, None)
    source = definition.example()
    if uid := request.GET.get("from"):
        job = seen(request.user, Job.objects.filter(uid=uid), "jobs.view")
        try:
            source = operations.from_job(job) if job else source
        except BadRequest as error:
            messages.error(request, words(error.message))
    return _editor(request, None, source)


@require_http_methods(["GET", "HEAD", "POST"])
def blueprint_edit(request: HttpRequest, name: str) -> HttpResponse:
    """The editor of the next version."""
    row = access.find(request.user, name)
    if not access.may_change(request.user, row):
        raise PermissionDenied(_("Only its owner and administrators may change this blueprint."))
    if request.method == "POST":
        return _written(request, row)
    return _editor(request, row, _version(row, _number(request)).source)


def _written(request: HttpRequest, row: Blueprint | None) -> HttpResponse:
    """Keep what was posted; else the editor again, with what is wrong."""
    posted = request.POST
    source = posted.get("source", "").replace("\r\n", "\n")
    base = _as_number(posted.get("base", "")) or 0
    try:
        if posted.get("do") == "load":
            return _editor(request, row, text_of(request.FILES.get("file")), base=base)
        if posted.get("do") == "check":
            operations.checked(source, request.user)
            return _editor(request, row, source, base=base, is_sound=True)
        if row is None:
            row = operations.create(request.user, source, posted.get("note", ""))
        else:
            row = operations.change(request.user, row, source, base=base, note=posted.get("note", ""))
    except ApiError as error:
        return _editor(request, row, source, base=base, error=error)
    said = _("%(name)s is kept as version %(number)s.") % {"name": row.title, "number": row.current}
    messages.success(request, said)
    return redirect("jobs:blueprint", row.name)


def _editor(
    request: HttpRequest,
    row: Blueprint | None,
    source: str,
    *,
    base: int | None = None,
    error: ApiError | None = None,
    is_sound: bool = False,
) -> HttpResponse:
    context: dict[str, Any] = {
        "blueprint": row,
        "source": source,
        "base": base if base is not None else row.current if row else 0,
        "note": request.POST.get("note", ""),
        "faults": operations.fault_of(error) if error else [],
        "is_sound": is_sound,
    }
    if row is not None and isinstance(error, Conflict):
        newest = operations.current(row)
        context |= {"newest": newest, "conflict": words(error.message), "faults": [], "pairs": compare(newest.source, source)}
    return render(request, "blueprints/edit.html", context, status=error.status if error else 200)


@require_safe
def blueprint_versions(request: HttpRequest, name: str) -> HttpResponse:
    """Its versions, and two of them side by side."""
    row = access.find(request.user, name)
    asked = request.GET
    right = _version(row, _number(request, "right"))
    left = row.versions.filter(number=_number(request, "left") or max(1, right.number - 1)).first() or right
    context = {
        "blueprint": row,
        "versions": Paginator(shown.versions(row).defer("source"), PAGE).get_page(asked.get("page")),
        "left": left,
        "right": right,
        "pairs": compare(left.source, right.source),
        "may_change": access.may_change(request.user, row),
        "jobs": shown.used_by(request.user, row, JOBS_SHOWN),
        "yaml": list(lines(right.source)),
    }
    return render(request, "blueprints/versions.html", context)


@require_safe
def blueprint_export(request: HttpRequest, name: str) -> HttpResponse:
    """The definition of a version as a file, which can be imported elsewhere."""
    made = _version(access.find(request.user, name), _number(request))
    answer = HttpResponse(made.source, content_type="application/yaml; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}-v{made.number}.yaml"'
    return answer


@require_POST
def blueprint_action(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Put one away, or bring it back."""
    row = access.find(request.user, name)
    if not access.may_change(request.user, row):
        raise PermissionDenied(_("Only its owner and administrators may change this blueprint."))
    if action in ("archive", "restore"):
        operations.archive(request.user, row, is_archived=action == "archive")
        said = _("%(name)s is archived.") if action == "archive" else _("%(name)s is offered again.")
        messages.success(request, said % {"name": row.title})
    return redirect("jobs:blueprint", name)


def _version(row: Blueprint, number: int | None) -> BlueprintVersion:
    """One of its versions. Raises Http404."""
    try:
        return operations.version(row, number)
    except NotFound as error:
        raise Http404(words(error.message)) from error


def _number(request: HttpRequest, key: str = "version") -> int | None:
    return _as_number(request.GET.get(key, ""))


def _as_number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _may_submit(request: HttpRequest) -> None:
    if not policy().may(request.user, "jobs.submit"):
        raise PermissionDenied
