"""Too many wrong passwords: programs get the API's problem, people a page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from cluster.rest.problems import CONTENT_TYPE
from portal import views


def locked_out(
    request: HttpRequest, original: HttpResponse | None = None, credentials: dict[str, Any] | None = None
) -> HttpResponse:
    """What django-axes asks for once a name is locked (AXES_LOCKOUT_CALLABLE)."""
    if original is not None and original.headers.get("Content-Type", "").startswith(CONTENT_TYPE):
        return original
    return views.locked_out(request, credentials)
