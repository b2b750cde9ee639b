"""What an API server answers, as the port's objects and errors."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unanswered,
    Unavailable,
)
from cluster.pointers import from_field_path
from cluster.port import Obj
from cluster.said import said

_REFUSALS = (BadRequest, Forbidden, NotFound, AlreadyExists, Conflict, Expired, Invalid, TooManyRequests, Unavailable)
_BY_REASON: dict[str, type[ApiError]] = {"Timeout": Unanswered, **{error.reason: error for error in _REFUSALS}}
_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest, 401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Expired, 422: Invalid,
    429: TooManyRequests, 502: Unanswered, 503: Unavailable, 504: Unanswered,
}  # fmt: skip
_STORE_TIMEOUT = "etcdserver: request timed out"
_WEBHOOK_AWAY = "failed calling webhook"
"""In the message of a 500: somebody who has to be asked did not answer, and nothing was written."""


def taken(status: int, content: bytes) -> Obj:
    """The object of an answer. Raises ApiError for a refusal, and for what is not JSON."""
    if status >= 300:
        raise refusal(status, content)
    try:
        found: Obj = orjson.loads(content)
    except ValueError:
        raise Unanswered(said("the cluster's answer is no JSON: %(content)r", content=content[:80])) from None
    return found


def refusal(code: int, content: bytes) -> ApiError:
    """What a Status says, as one of the port's errors."""
    try:
        told: Any = orjson.loads(content)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        told = {}
    error = _BY_REASON.get(str(told.get("reason"))) or _BY_STATUS.get(code) or ApiError
    if error is ApiError and _STORE_TIMEOUT in str(told.get("message")):
        error = Unanswered
    if error is ApiError and _WEBHOOK_AWAY in str(told.get("message")):
        error = Unavailable
    causes = (told.get("details") or {}).get("causes") or ()
    fields = [FieldError(from_field_path(str(c.get("field") or "")), str(c.get("message") or "")) for c in causes]
    return error(str(told.get("message") or f"the cluster answered {code}"), fields)
