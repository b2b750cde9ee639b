"""A blueprint filled out: a form made of its schema, the job as YAML beside it, and the way into the cluster."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cluster import runtime
from cluster.errors import ApiError, FieldError, Unavailable
from cluster.said import words
from jobs import operations as job_operations
from jobs.blueprints import access, definition, operations, parameters, shown
from jobs.blueprints.models import Blueprint, BlueprintVersion
from jobs.blueprints.operations import Filled, Wish, fill_out
from jobs.pages.yamlview import lines
from jobs.submit import views as submit_views
from jobs.submit.preview import offered_queues, preview
from jobs.writes import submit as write


@require_http_methods(["GET", "HEAD", "POST"])
def blueprint(request: HttpRequest, name: str) -> HttpResponse:
    """Fill it out (GET shows defaults); a POST submits, shows the form again, or takes the job into the editor."""
    row = access.find(request.user, name)
    made = _version(request, row)
    wish = _wish(request, made)
    filled = _tried(request, made, wish)
    do = request.POST.get("do", "")
    if do == "edit" and filled.text:
        return submit_views.begin_with(request, filled.text)
    if do != "submit" or filled.faults:
        return _page(request, row, made, wish, filled, status=422 if do == "submit" else 200)
    if row.is_archived:
        filled.faults.append(
            FieldError("", _("Blueprint %(name)s is archived: nothing new is made from it.") % {"name": row.name})
        )
        return _page(request, row, made, wish, filled, status=409)
    try:
        job = write(filled.manifest, request.user.get_username())
    except ApiError as error:
        filled.faults = operations.fault_of(error)
        return _page(request, row, made, wish, filled, status=error.status)
    messages.success(request, _("Job %(name)s was submitted.") % {"name": job["metadata"]["name"]})
    return redirect("jobs:detail", job["metadata"]["uid"])


@require_POST
def blueprint_preview(request: HttpRequest, name: str) -> HttpResponse:
    """The same looked at while it is being filled out; the answer is the parts of the page that change."""
    row = access.find(request.user, name)
    made = _version(request, row)
    wish = _wish(request, made)
    context = _context(request, row, made, wish, _tried(request, made, wish))
    return render(request, "blueprints/preview.html", context)


def draft_of(request: HttpRequest) -> str:
    """The job that a posted form gives, as YAML."""
    row = access.find(request.user, request.POST.get("blueprint", ""))
    made = _version(request, row)
    return fill_out(request.user, made, _wish(request, made)).text


submit_views.drafts["blueprint"] = draft_of


def _version(request: HttpRequest, row: Blueprint) -> BlueprintVersion:
    text = request.POST.get("version") or request.GET.get("version") or ""
    try:
        made = operations.version(row, int(text) if text.isdecimal() and len(text) < 10 else None)
    except ApiError:
        made = operations.current(row)
    made.blueprint = row
    return made


def _wish(request: HttpRequest, made: BlueprintVersion) -> Wish:
    found = definition.known(made.source)
    texts = {key: str(value) for key, value in request.POST.items()}
    return Wish(
        parameters.posted(found.parameters, texts),
        *(texts.get(key, "").strip()[:253] for key in ("name", "namespace", "queue")),
    )


def _tried(request: HttpRequest, made: BlueprintVersion, wish: Wish) -> Filled:
    """Filled out and tried: the cluster's own rules over what comes out of it."""
    filled = fill_out(request.user, made, wish)
    if filled.faults or not filled.manifest:
        return filled
    try:
        job_operations.submit(runtime.current(), filled.manifest, owner=request.user.get_username(), dry_run=True)
    except Unavailable as error:
        filled.faults = [FieldError("", words(error.message))]
    except ApiError as error:
        filled.faults = operations.fault_of(error)
    return filled


def _context(request: HttpRequest, row: Blueprint, made: BlueprintVersion, wish: Wish, filled: Filled) -> dict[str, Any]:
    found = definition.known(made.source)
    form = shown.form(made, filled, offered_queues(request.user), wish.values)
    return {
        "blueprint": row,
        "version": made,
        "form": form,
        "filled": filled,
        "locked": found.locked,
        "yaml": list(lines(filled.text)),
        "preview": preview(request.user, filled.manifest) if filled.manifest and not filled.faults else None,
    }


def _page(
    request: HttpRequest, row: Blueprint, made: BlueprintVersion, wish: Wish, filled: Filled, *, status: int = 200
) -> HttpResponse:
    context = _context(request, row, made, wish, filled)
    uses = shown.versions(row).values_list("number", "jobs")
    context |= {
        "may_change": access.may_change(request.user, row),
        "untouched": request.method != "POST" and all(fault.code == "required" for fault in filled.faults),
        "versions": [number for number, _jobs in uses],
        "uses": sum(jobs for _number, jobs in uses),
        "for_whom": shown.audience(row),
    }
    return render(request, "blueprints/detail.html", context, status=status)
