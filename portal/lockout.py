"""Too many wrong passwords: programs get the API's problem, people a page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from cluster.rest.problems import CONTENT_TYPE, problem
from portal import views


def locked_out(request: HttpRequest, *_given: Any) -> HttpResponse:
    """What django-axes asks for once a name is locked (AXES_LOCKOUT_CALLABLE).

    Only the request says who asks: under ASGI axes gives the credentials where it otherwise gives the view's response.
    """
    if not request.path.startswith("/api/"):
        return views.locked_out(request)
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    detail = f"Too many wrong passwords; try again in {seconds // 60} minutes."
    answer = JsonResponse(problem(429, detail), status=429, content_type=CONTENT_TYPE)
    answer.headers["Retry-After"] = str(seconds)
    return answer
