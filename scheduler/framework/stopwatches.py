"""Where a cycle's time goes among the plugins: what they register is asked through a stop watch.

Each function's first calls are timed one by one; those of a function that is asked very often are timed one in EVERY
then, and that one counts for all, so that being watched costs next to nothing. What a function spends in functions of
other plugins counts for these alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from time import perf_counter
from typing import Any

EXACTLY = 32
"""Calls of a function in a session that are all timed."""
EVERY = 16
_ASKED = frozenset({"check", "now", "later", "explain", "score", "raw", "scale", "room", "gate", "lacking", "key"})
"""Fields of what is registered that are functions in which plugins work. (Which tasks it applies to is no work.)"""


class Stopwatches:
    """Milliseconds by plugin since they were last taken."""

    def __init__(self) -> None:
        self._spent: dict[str, list[float]] = {}
        self._inner = [0.0]

    def taken(self) -> dict[str, float]:
        """What each plugin spent since the last time, those that spent nothing apart."""
        found = {}
        for name, cell in self._spent.items():
            if cell[0] > 0:
                found[name] = cell[0] * 1000
            cell[0] = 0.0
        return found

    def watched(self, plugin: str, item: Any) -> Any:
        """The same function, or the same bundle of functions, with a watch on it."""
        if is_dataclass(item) and not isinstance(item, type):
            changes = {
                field.name: self._watch(plugin, getattr(item, field.name))
                for field in fields(item)
                if field.name in _ASKED and getattr(item, field.name) is not None
            }
            alone = getattr(item, "alone", None)
            if alone is not None:
                changes["alone"] = self._maker(plugin, alone)
            return replace(item, **changes)
        return self._watch(plugin, item) if callable(item) else item

    def _maker(self, plugin: str, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function that makes functions, each with a watch."""

        def made(cls: Any) -> Any:
            found = make(cls)
            return found and self._watch(plugin, found)

        return made

    def _watch(self, plugin: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        cell, inner, clock = self._spent.setdefault(plugin, [0.0]), self._inner, perf_counter
        exactly, skip, weight = EXACTLY, 0, 1

        def watch(*given: Any) -> Any:
            nonlocal exactly, skip, weight
            if skip:
                skip -= 1
                return ask(*given)
            if exactly:
                exactly -= 1
            else:
                skip, weight = EVERY - 1, EVERY
            outer, inner[0] = inner[0], 0.0
            begin = clock()
            answer = ask(*given)
            spent = clock() - begin
            cell[0] += (spent - inner[0]) * weight
            inner[0] = outer + spent * weight
            return answer

        return watch
