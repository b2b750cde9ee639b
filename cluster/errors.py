"""What a cluster refuses, and why. The same exceptions come from every implementation of the port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster.said import said


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in an object: where it is (JSON pointer, RFC 6901), what is wrong and what would be right."""

    pointer: str
    message: str
    code: str = "invalid"


def sentences(faults: Iterable[FieldError]) -> tuple[str, ...]:
    """Each fault as a sentence, with its place."""
    return tuple(said("%(pointer)s: %(message)s", pointer=each.pointer, message=each.message) for each in faults)


class ApiError(Exception):
    """A request that the cluster refused. `status` is the HTTP status that says so."""

    status = 500
    reason = "InternalError"

    def __init__(self, message: str, fields: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.fields = tuple(fields)


class BadRequest(ApiError):
    """The request itself cannot be understood."""

    status, reason = 400, "BadRequest"


class Forbidden(ApiError):
    """Understood and well-formed, and not allowed."""

    status, reason = 403, "Forbidden"


class NotFound(ApiError):
    """No object of that name."""

    status, reason = 404, "NotFound"


class AlreadyExists(ApiError):
    """A create of a name that is taken."""

    status, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """The resourceVersion or uid given is not the object's own any more: read again and retry."""

    status, reason = 409, "Conflict"


class Expired(ApiError):
    """A watch or a continue token asks for a version that is no longer kept: list again."""

    status, reason = 410, "Expired"


class Invalid(ApiError):
    """The object breaks rules; `fields` holds every broken one, not only the first."""

    status, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: str, name: str, faults: Sequence[FieldError]) -> Invalid:
        """The refusal of one object, with all its faults in the message too."""
        return cls(said("%(kind)s %(name)r is invalid: %(faults)s", kind=kind, name=name, faults=sentences(faults)), faults)


class TooManyRequests(ApiError):
    """Asked too fast, or an eviction that a disruption budget does not allow now."""

    status, reason = 429, "TooManyRequests"


class Unavailable(ApiError):
    """The cluster did not answer."""

    status, reason = 503, "ServiceUnavailable"


class Unanswered(Unavailable):
    """The request went out and no answer came back: what it asks may have been done, or not."""
