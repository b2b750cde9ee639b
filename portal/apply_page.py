"""The page behind "Apply all": several objects at once, or things that are no Job; one line says what came of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from cluster import documents, runtime
from cluster.errors import ApiError
from cluster.port import Cluster
from cluster.rest.problems import AboutDocument, Refused, faults_of
from cluster.said import words
from jobs.submit.checks import Fault
from portal.apply import Result, apply


@require_http_methods(["GET", "POST"])
def apply_all(request: HttpRequest) -> HttpResponse:
    """Apply the posted YAML. All documents are tried first; when one is refused nothing is written and all faults are shown."""
    if request.method == "GET":  # a result page that is asked for again
        return redirect("jobs:submit")
    text = request.POST.get("yaml", "")
    results: list[Result] = []
    faults: list[dict[str, Any]] = []
    status = 200
    try:
        results = apply(runtime.current(), documents.load(text), user=request.user)
    except REFUSALS as refusal:
        faults, status = _faults(refusal)
    return render(request, "jobs/apply.html", {"text": text, "results": results, "faults": faults}, status=status)


def trial(cluster: Cluster, found: Sequence[documents.Document], user: Any) -> list[Fault]:
    """What would be refused of these documents, the user's rights included; the submit page shows it before they are applied."""
    try:
        apply(cluster, found, user=user, dry_run=True)
    except REFUSALS as refusal:
        return [Fault(fault["detail"], fault.get("pointer", ""), fault.get("line")) for fault in _faults(refusal)[0]]
    return []


REFUSALS = (Refused, AboutDocument, ApiError)


def _faults(refusal: Exception) -> tuple[list[dict[str, Any]], int]:
    """Every fault of a refused bundle, and the status that says so."""
    match refusal:
        case Refused(refusals=refusals):
            return [fault for each in refusals for fault in faults_of(each)], 422
        case AboutDocument(error=error):
            return faults_of(refusal), error.status
        case ApiError(fields=fields, message=message, status=status):
            return [{"pointer": fault.pointer, "detail": words(fault.message)} for fault in fields] or [
                {"detail": words(message)}
            ], status
    raise refusal
