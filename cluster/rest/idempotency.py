"""`Idempotency-Key`: a create that is sent again gets the answer of the first time, and nothing is created twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.errors import BadRequest, Conflict, FieldError, Invalid
from cluster.models import IdempotentRequest
from cluster.said import said

HEADER = "Idempotency-Key"
KEEP = timedelta(hours=24)
ABANDONED = timedelta(seconds=60)
"""After this long without an answer, the process that began is taken for dead."""


def once(request: Request, work: Callable[[], Response]) -> Response:
    """Do the work, or give the answer of the first request of this user with this key.

    Raises BadRequest (a key that is none), Conflict (the first is not answered yet), Invalid (another request had the key).
    A refusal is not kept: what was refused may be mended and sent again.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return work()
    if not (1 <= len(key) <= 200 and key.isascii() and key.isprintable()):
        raise BadRequest(
            said("%(header)s is 1 to 200 printable ASCII characters", header=HEADER),
            [FieldError(HEADER, said("is not a key"), "invalid")],
        )
    held, is_new = _begin(str(request.user.get_username()), key, _fingerprint(request))
    if not is_new:
        return Response(held.body, status=held.status, headers=_headers(held) | {"Idempotency-Replayed": "true"})
    try:
        response = work()
    except BaseException:
        held.delete()
        raise
    held.status, held.body, held.location = response.status_code, response.data, response.headers.get("Location", "")
    held.save(update_fields=["status", "body", "location"])
    return response


def _begin(user: str, key: str, fingerprint: str) -> tuple[IdempotentRequest, bool]:
    now = timezone.now()
    IdempotentRequest.objects.filter(at__lt=now - KEEP).delete()
    IdempotentRequest.objects.filter(user=user, key=key, status=0, at__lt=now - ABANDONED).delete()
    try:
        with transaction.atomic():
            return IdempotentRequest.objects.create(user=user, key=key, fingerprint=fingerprint, at=now), True
    except IntegrityError:
        held = IdempotentRequest.objects.get(user=user, key=key)
    if held.fingerprint != fingerprint:
        raise Invalid(
            said("this %(header)s was used for another request", header=HEADER),
            [FieldError(HEADER, said("use a new key"), "reused")],
        )
    if held.status == 0:
        raise Conflict(said("the first request with this %(header)s is not answered yet; try again in a moment", header=HEADER))
    return held, False


def _fingerprint(request: Request) -> str:
    data: Any = request.data
    body = data if isinstance(data, dict) else [document.obj for document in data]
    asked = [request.method, request.get_full_path(), body]
    return hashlib.sha256(orjson.dumps(asked)).hexdigest()


def _headers(held: IdempotentRequest) -> dict[str, str]:
    return {"Location": held.location} if held.location else {}
