"""Where a waiting job would go, as the rooms above try it out: this room runs no scheduler (`use`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobs.models import Job

Place = tuple[str, str, tuple[int, ...]]
"""A pod, its node, and the indices of its GPUs."""
Ask = Callable[[Any, Job], Sequence[Place] | None]
_ask: Ask | None = None


def use(ask: Ask | None) -> None:
    """Say who answers."""
    global _ask
    _ask = ask


def places(user: Any, job: Job) -> Sequence[Place] | None:
    """Where its pods would be put by the next cycles; empty: it would wait. None where nobody can tell."""
    return _ask(user, job) if _ask is not None else None
