"""How a flow's patch changes its template's spec, field by field as Volcano's design says it.

Values are replaced, mappings merged, lists replaced, but for those whose items have a name of their own: there an item changes
the one of its name, or comes in addition. An item that leaves its name out is meant for the only one that the template has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.errors import FieldError
from cluster.pointers import pointer
from cluster.said import said

_NAMES: dict[str, tuple[str, ...]] = {
    "tasks": ("name",),
    "volumes": ("mountPath",),
    "template/volumes": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "tolerations": ("key",),
    "hostAliases": ("ip",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort",),
}
"""Lists whose items are told apart, by what; `volumes` of a job and of a pod are different things."""

_WHOLE = frozenset({"affinity", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "networkTopology"})
"""Mappings that a patch replaces."""


class PatchError(Exception):
    """A patch that does not say what it changes; `faults` point into the patch."""

    def __init__(self, faults: list[FieldError]) -> None:
        super().__init__("; ".join(f"{fault.pointer}: {fault.message}" for fault in faults))
        self.faults = faults


def patched(spec: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A job's spec as a patch changes it; neither is touched. Raises PatchError."""
    faults: list[FieldError] = []
    result = _mapping(spec, patch, (), faults)
    if faults:
        raise PatchError(faults)
    return result


def _mapping(old: dict[str, Any], new: dict[str, Any], where: tuple[str | int, ...], faults: list[FieldError]) -> dict[str, Any]:
    result = dict(old)
    for field, value in new.items():
        place, was = (*where, field), old.get(field)
        if value is None:
            result.pop(field, None)
        elif isinstance(value, dict) and isinstance(was, dict) and field not in _WHOLE:
            result[field] = _mapping(was, value, place, faults)
        elif isinstance(value, list) and (names := _names(field, where)):
            result[field] = _items(was if isinstance(was, list) else [], value, names[0], place, faults)
        else:
            result[field] = value
    return result


def _names(field: str, where: tuple[str | int, ...]) -> tuple[str, ...] | None:
    in_pod = "template" in where
    return _NAMES.get(f"template/{field}" if in_pod and field == "volumes" else field)


def _items(old: list[Any], new: list[Any], name: str, where: tuple[str | int, ...], faults: list[FieldError]) -> list[Any]:
    result = list(old)
    for index, item in enumerate(new):
        place = (*where, index)
        if not isinstance(item, dict):
            faults.append(FieldError(pointer(*place), said("must be a mapping"), "type"))
            continue
        at = _place(result, old, item, name)
        if at is None:
            told = said(
                "must say by its %(name)s which of the template's %(count)s it changes, or what the new one is called",
                name=name,
                count=len(old),
            )
            faults.append(FieldError(pointer(*place, name), told, "required"))
        elif at == len(result):
            result.append(item)
        else:
            result[at] = _mapping(result[at], item, place, faults)
    return result


def _place(result: list[Any], old: list[Any], item: dict[str, Any], name: str) -> int | None:
    """Where in the list the item belongs: its length for a new one, None when the item does not say."""
    if item.get(name) is None:
        return 0 if len(old) == 1 and isinstance(result[0], dict) else None
    same: Callable[[Any], bool] = lambda other: isinstance(other, dict) and other.get(name) == item[name]  # noqa: E731
    return next((index for index, other in enumerate(result) if same(other)), len(result))
