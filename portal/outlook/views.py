"""The part of a page that says how starts move, asked for again while it is being worked out."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from cluster.access import policy
from portal.outlook import shown

WAIT = 2.0
"""Seconds that an answer may take before the page is told to ask again."""


@require_POST
def starts(request: HttpRequest) -> HttpResponse:
    """A question that a page was given, asked again; without script it is a page of its own."""
    if not policy().may(request.user, "jobs.submit"):
        raise PermissionDenied
    question = shown.of_token(request.user, request.POST.get("question", ""))
    part = request.headers.get("HX-Request") == "true"
    if question is None:
        context = {"part": part, "error": _("This question is too old to be asked again; look at the page anew.")}
        return render(request, "portal/outlook/page.html", context, status=200 if part else 400)
    context = {"part": part, **shown.part(request.user, question, WAIT)}
    return render(request, "portal/outlook/page.html", context)
