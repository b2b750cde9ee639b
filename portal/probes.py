"""Liveness and readiness, for whoever starts and watches this process. Neither says anything that needs a sign-in."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, close_old_connections, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from cluster import runtime
from cluster.away import Away
from cluster.errors import Unavailable
from portal import migrated
from portal.reach import reach


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


_away = Away("nobody should be sent here")


def looked_at() -> dict[str, str]:
    """What a web process needs, and `ok` or what is amiss."""
    checks = {"database": "ok", "cluster": "ok"}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        checks["database"] = migrated.lacks() or "ok"
    except DatabaseError:
        checks["database"] = "does not answer"
    try:
        runtime.current()
    except Unavailable:
        checks["cluster"] = "is not connected"
    return checks


def trouble() -> str:
    """Why nobody should be sent here now, asked from a thread that no request owns; empty when all is well."""
    close_old_connections()
    try:
        return "; ".join(f"{what} {how}" for what, how in looked_at().items() if how != "ok")
    finally:
        connection.close()


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """The database answers and has its tables, and a cluster is connected; else 503 with what is missing.

    A cluster that does not answer for a while is said, and no reason to send nobody here: pages are read from the database.
    """
    checks = looked_at()
    ready = set(checks.values()) == {"ok"}
    status = "ok" if ready else "not ready"
    if ready:
        _away.answered()
    else:
        _away.failed(ValueError("; ".join(f"{what} {how}" for what, how in checks.items() if how != "ok")))
    if ready and (since := reach.away_since) is not None:
        status, checks["cluster"] = "degraded", f"does not answer since {since:%Y-%m-%dT%H:%M:%SZ}"
    answer = JsonResponse({"status": status, "checks": checks}, status=200 if ready else 503)
    answer._has_been_logged = True  # type: ignore[attr-defined] # once, above: whoever probes asks every few seconds
    return answer


PROBES = {"/healthz": healthz, "/readyz": readyz}


def answer(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, the first: who probes calls the process by its address, in plain http, whatever name and scheme people use."""

    def respond(request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path)
        return get_response(request) if probe is None else probe(request)

    return respond
