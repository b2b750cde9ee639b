"""A cluster to which only who still may writes: each write asks first, and a batch asks between its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

from cluster.port import Cluster, Outcome

SINGLE = frozenset({"create", "replace", "patch", "patch_status", "delete", "bind", "evict"})
A_PART = 50
"""Writes of a batch between two questions."""


def fenced(cluster: Cluster, check: Callable[[], None]) -> Cluster:
    """`cluster` behind a check that raises ApiError when this thread may write no more; reading is free."""
    return cast("Cluster", _Fenced(cluster, check))


class _Fenced:
    def __init__(self, inner: Cluster, check: Callable[[], None]) -> None:
        self._inner, self._check = inner, check

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if name in SINGLE:

            @wraps(verb)
            def one(*arguments: Any, **named: Any) -> Any:
                self._check()
                return verb(*arguments, **named)

            return one
        return self._batched(verb) if name.endswith("_many") else verb

    def _batched(self, verb: Callable[..., list[Outcome]]) -> Callable[..., list[Outcome]]:
        """Batches take what they work on last."""

        @wraps(verb)
        def many(*arguments: Any, **named: Any) -> list[Outcome]:
            *first, items = arguments
            parts: Sequence[Any] = [items[at : at + A_PART] for at in range(0, len(items), A_PART)]
            outcomes: list[Outcome] = []
            for part in parts:
                self._check()
                outcomes += verb(*first, part, **named)
            return outcomes

        return many
