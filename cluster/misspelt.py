"""Fields that nobody knows and that look like one that is known: they are kept, and do nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel

ALIKE, SWAPPED = 0.85, 0.75
"""How much of two names must agree (`difflib.SequenceMatcher.ratio`); and of two that have the same letters, in another order."""
MOST = 10


def misspelt(shape: type[BaseModel], obj: Any) -> list[tuple[str, str]]:
    """Paths of fields of an object that its shape does not have, each with the name that was likely meant; so many at most."""
    found = []
    for path, meant in _look(shape, obj, ""):
        found.append((path, meant))
        if len(found) == MOST:
            break
    return found


def _nearest(name: str, known: Iterable[str]) -> str:
    """The known name that this one is nearly; empty where there is none."""
    for near in get_close_matches(name, known, 1, SWAPPED):
        if sorted(near) == sorted(name) or SequenceMatcher(None, near, name).ratio() >= ALIKE:
            return near
    return ""


def _look(kind: Any, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not isinstance(value, dict):
            return
        known = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        lower = {name.lower(): name for name in known}
        for name, inner in value.items():
            where = f"{path}.{name}" if path else str(name)
            if name in known:
                yield from _look(known[name], inner, where)
            elif (meant := lower.get(_nearest(str(name).lower(), lower), "")) and meant not in value:
                yield where, meant  # were what is meant there too, this would be a field of its own
    elif get_origin(kind) is list and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _look(get_args(kind)[0], inner, f"{path}[{index}]")
    elif get_origin(kind) is dict and isinstance(value, dict):
        for name, inner in value.items():
            yield from _look(get_args(kind)[1], inner, f"{path}.{name}")
    else:
        for choice in get_args(kind):
            yield from _look(choice, value, path)
