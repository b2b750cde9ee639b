"""What changed between two JSON values, as a JSON patch (RFC 6902)."""

from __future__ import annotations

from typing import Any

from cluster.pointers import pointer

Operation = dict[str, Any]


def json_patch(old: Any, new: Any, where: str = "") -> list[Operation]:
    """Operations that make `new` of `old`, which does not change. Lists are compared by index; a shorter one is replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [{"op": "remove", "path": where + pointer(key)} for key in old if key not in new]
        return gone + [step for key in new for step in _of_key(old, new, key, where)]
    if isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        steps = [step for at, item in enumerate(old) for step in json_patch(item, new[at], where + pointer(at))]
        return steps + [{"op": "add", "path": f"{where}/-", "value": item} for item in new[len(old) :]]
    return [] if _same(old, new) else [{"op": "replace", "path": where, "value": new}]


def _of_key(old: dict[str, Any], new: dict[str, Any], key: str, where: str) -> list[Operation]:
    if key not in old:
        return [{"op": "add", "path": where + pointer(key), "value": new[key]}]
    return json_patch(old[key], new[key], where + pointer(key))


def _same(old: Any, new: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return type(old) is type(new) and bool(old == new) if isinstance(old, bool) or isinstance(new, bool) else bool(old == new)
