"""Which nodes refuse a job, as the rooms above know it. This room knows no jobs, so the answer is handed in (`use`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusing:
    """The nodes that refuse a job (`job`, `uid`) for one cause, said in words."""

    uid: str
    job: str
    cause: str
    label: str
    nodes: tuple[str, ...]


Ask = Callable[[Any, str, str], Refusing | None]
_ask: Ask | None = None


def use(ask: Ask | None) -> None:
    """Say who answers: for a user, a job's uid and a cause; None for a job that the user may not see."""
    global _ask
    _ask = ask


def refusing(user: Any, job: str, cause: str) -> Refusing | None:
    """The nodes that refuse a job; None when nobody knows."""
    return _ask(user, job, cause) if _ask is not None and job and cause else None
