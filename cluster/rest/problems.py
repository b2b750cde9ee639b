"""Refusals as `application/problem+json` (RFC 9457): one shape for every error that the REST API gives.

`errors` lists each fault with its JSON pointer (or query parameter), and, where the body was YAML, its line and document.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from cluster.errors import ApiError, FieldError
from cluster.said import said, told, words

log = structlog.get_logger(__name__)
CONTENT_TYPE = "application/problem+json"


class TooLarge(ApiError):
    """The body is longer than what is read."""

    status, reason = 413, "RequestEntityTooLarge"


class AboutDocument(Exception):
    """A refusal of one document of the body: where its faults are can be said in lines."""

    def __init__(self, error: ApiError, document: Any) -> None:
        super().__init__(error.message)
        self.error = error
        self.document = document


class Refused(Exception):
    """Several documents were looked at and at least one was refused; nothing was written."""

    def __init__(self, detail: str, refusals: list[AboutDocument]) -> None:
        super().__init__(detail)
        self.detail = detail
        self.refusals = refusals


@contextmanager
def about(document: Any) -> Iterator[None]:
    """What the cluster refuses inside is about this document."""
    try:
        yield
    except ApiError as error:
        raise AboutDocument(error, document) from error


def fault(field: FieldError, document: Any = None) -> dict[str, Any]:
    """One entry of `errors`."""
    entry: dict[str, Any] = {"pointer": field.pointer, "detail": words(field.message), "code": field.code}
    if document is not None:
        entry["document"] = document.index
        line = document.line_of(field.pointer)
        if line is not None:
            entry["line"] = line
    return entry


def faults_of(refusal: AboutDocument) -> list[dict[str, Any]]:
    """Every fault of one refused document; a refusal without fields is about the whole document."""
    fields = refusal.error.fields or (FieldError("", refusal.error.message, refusal.error.reason),)
    return [fault(field, refusal.document) for field in fields]


def problem(status: int, detail: str, errors: list[dict[str, Any]] | None = None, reason: str = "") -> dict[str, Any]:
    """The body. `type` is about:blank, since the status says all that a type of our own would."""
    body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": words(detail)}
    if reason:
        body["reason"] = reason
    if errors:
        body["errors"] = errors
    return body


def handler(exc: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: whatever was raised becomes a problem, and nothing shows a traceback."""
    headers: dict[str, str] = {}
    match exc:
        case AboutDocument(error=error):
            body = problem(error.status, error.message, faults_of(exc), error.reason)
        case Refused(refusals=refusals):
            status = max(refusal.error.status for refusal in refusals)
            errors = [entry for refusal in refusals for entry in faults_of(refusal)]
            body = problem(status, exc.detail, errors, refusals[0].error.reason)
        case ApiError():
            body = problem(exc.status, exc.message, [fault(field) for field in exc.fields], exc.reason)
        case RequestDataTooBig():
            body = problem(413, said("The body is longer than 1 MiB."))
        case Http404() | exceptions.NotFound():
            body = problem(404, told(exc) or said("There is nothing here."))
        case PermissionDenied():
            body = problem(403, told(exc) or said("You may not do this."))
        case exceptions.ValidationError():
            body = problem(exc.status_code, said("The request is not valid."), list(_validation(exc.detail)))
        case exceptions.UnsupportedMediaType():
            known = ", ".join(dict.fromkeys(parser.media_type for parser in context["view"].parser_classes))
            body = problem(
                415, said("%(why)s Say by a Content-Type what the body is: %(known)s.", why=str(exc.detail), known=known)
            )
        case exceptions.APIException():
            body = problem(exc.status_code, str(exc.detail))
            headers = _headers(exc)
        case OperationalError() | InterfaceError():
            log.error("the database does not do what was asked", path=context["request"].path, error=str(exc))
            body = problem(
                503,
                said("The portal's database cannot be read or written now; nothing was changed."),
                reason="ServiceUnavailable",
            )
            headers = {"Retry-After": "5"}
        case _:
            log.exception("request failed", path=context["request"].path)
            got_request_exception.send(sender=None, request=context["request"]._request)
            body = problem(500, said("The portal failed on this request; the cause is in its log."))
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _headers(exc: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(wait) + 1)
    return headers


def _validation(detail: Any, pointer: str = "") -> Iterator[dict[str, Any]]:
    """DRF's nested details as a flat list."""
    if isinstance(detail, dict):
        for key, inner in detail.items():
            yield from _validation(inner, f"{pointer}/{key}")
    elif isinstance(detail, list):
        for inner in detail:
            yield from _validation(inner, pointer)
    else:
        yield {"pointer": pointer, "detail": str(detail), "code": getattr(detail, "code", "invalid")}
