"""Fields of a blueprint's job that stay as the blueprint has them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

from cluster.errors import FieldError
from cluster.pointers import pointer, steps
from cluster.port import Obj
from jobs import manifest

ANY = "*"
"""A step that stands for every index of a list, or every key."""

_ABSENT = object()
_ROOTS = (("spec",), ("metadata", "labels"), ("metadata", "annotations"))


def pointer_fault(text: str) -> str:
    """What is wrong with a pointer to a locked field; empty when nothing is."""
    path = steps(text)
    if not text.startswith("/") or not any(tuple(path[: len(root)]) == root for root in _ROOTS):
        return f"{text!r} is no pointer to lock: one into /spec, /metadata/labels or /metadata/annotations, with * for every item"
    return ""


def changed(locked: Sequence[str], asked: Obj, filled: Obj) -> list[FieldError]:
    """Locked fields of the job that was asked for that are not as in the one that the blueprint gives.

    Both are compared with their defaults, so that a copy of a job that ran is as good as what was filled out.
    """
    if not locked:
        return []
    ours, theirs = _complete(filled), _complete(asked)
    said = _("is locked by the blueprint: leave it as it is there")
    paths = [steps(each) for each in locked]
    places = dict.fromkeys(place for path in paths for tree in (ours, theirs) for place in _places(tree, path))
    return [FieldError(pointer(*place), said, "locked") for place in places if _get(ours, place) != _get(theirs, place)]


def _complete(obj: Obj) -> Obj:
    """With defaults, as it would be kept."""
    result = copy.deepcopy(obj)
    manifest.default(result)
    return result


def _places(node: Any, path: Sequence[str], done: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place that a pointer with wildcards means, also one that is absent at its last steps."""
    if not path:
        yield done
        return
    step, rest = path[0], path[1:]
    if step != ANY:
        index: str | int = int(step) if isinstance(node, list) and step.isdecimal() and len(step) < 10 else step
        child = _child(node, index)
        if child is _ABSENT:
            if ANY not in rest:
                yield (*done, index, *rest)
        else:
            yield from _places(child, rest, (*done, index))
        return
    keys: Sequence[str | int] = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield from _places(node[key], rest, (*done, key))


def _child(node: Any, step: str | int) -> Any:
    if isinstance(node, dict):
        return node.get(str(step), _ABSENT)
    if isinstance(node, list) and isinstance(step, int) and 0 <= step < len(node):
        return node[step]
    return _ABSENT


def _get(node: Any, place: Sequence[str | int]) -> Any:
    for step in place:
        node = _child(node, step)
    return node
