"""The page behind "Apply all": several objects at once, or things that are no Job; one line says what came of each."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from cluster import documents, runtime
from cluster.errors import ApiError
from cluster.rest.problems import AboutDocument, Refused, faults_of
from portal.apply import Result, apply


@require_http_methods(["GET", "POST"])
def apply_all(request: HttpRequest) -> HttpResponse:
    """Apply the posted YAML. All documents are tried first; when one is refused nothing is written and all faults are shown."""
    if request.method == "GET":  # a result page that is asked for again
        return redirect("jobs:submit")
    text = request.POST.get("yaml", "")
    results: list[Result] = []
    faults: list[dict[str, object]] = []
    status = 200
    try:
        results = apply(runtime.current(), documents.load(text), user=request.user)
    except Refused as refused:
        faults = [fault for refusal in refused.refusals for fault in faults_of(refusal)]
        status = 422
    except AboutDocument as refusal:
        faults, status = faults_of(refusal), refusal.error.status
    except ApiError as error:
        faults = [{"pointer": fault.pointer, "detail": fault.message} for fault in error.fields] or [{"detail": error.message}]
        status = error.status
    return render(request, "jobs/apply.html", {"text": text, "results": results, "faults": faults}, status=status)
