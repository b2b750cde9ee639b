"""What can go wrong between here and a Basalt. Every error says what, and by `hint` what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in what was sent: where it is (JSON pointer or query parameter, and its line in YAML) and what is wrong."""

    pointer: str
    detail: str
    code: str = ""
    line: int | None = None
    document: int | None = None

    def __str__(self) -> str:
        place = ", ".join([*([f"line {self.line}"] if self.line else []), *([self.pointer] if self.pointer else [])])
        return f"{place}: {self.detail}" if place else self.detail


class BasaltError(Exception):
    """The root of them all."""

    def __init__(self, message: str, *, hint: str = "", faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint
        self.faults: tuple[Fault, ...] = tuple(faults)


class Unreachable(BasaltError):
    """Nobody answers at the address, or not in time."""


class Untrusted(BasaltError):
    """The server's certificate does not match."""


class SignedOut(BasaltError):
    """No token, or one that is not taken (any more)."""


class Forbidden(BasaltError):
    """Signed in, and not allowed."""


class NotFound(BasaltError):
    """There is nothing of that name."""


class Conflict(BasaltError):
    """The name is taken, the object has changed, or its state does not allow this."""


class Refused(BasaltError):
    """What was sent is not right; `faults` says where."""


class ServerFailed(BasaltError):
    """The server answered that it cannot, or something that is no answer of Basalt."""


_BY_STATUS: dict[int, type[BasaltError]] = {401: SignedOut, 403: Forbidden, 404: NotFound, 409: Conflict}


def of_problem(status: int, body: Any, server: str) -> BasaltError:
    """The error of a refusal: an `application/problem+json` body, or whatever came in its place."""
    if not isinstance(body, dict) or "detail" not in body:
        return ServerFailed(
            f"{server} answered {status} with something that is not Basalt's.", hint="Is this the address of a Basalt?"
        )
    detail = str(body["detail"])
    faults = [_fault(entry) for entry in body.get("errors") or () if isinstance(entry, dict)]
    if status == 401:
        return SignedOut(f"{server} does not take this token: {detail}", hint=f"Sign in again: basalt login {server}")
    if status >= 500 or status == 429:
        hint = "Try again in a moment." if status in (429, 503) else "The server's log says more."
        return ServerFailed(detail, hint=hint)
    return _BY_STATUS.get(status, Refused)(detail, faults=faults)


def _fault(entry: dict[str, Any]) -> Fault:
    line, document = entry.get("line"), entry.get("document")
    return Fault(
        pointer=str(entry.get("pointer") or ""),
        detail=str(entry.get("detail") or ""),
        code=str(entry.get("code") or ""),
        line=line if isinstance(line, int) else None,
        document=document if isinstance(document, int) else None,
    )
