"""The three ways of changing part of an object: merge patch (RFC 7396), JSON patch (RFC 6902) and apply.

None changes its target in place: the result shares with the target what stayed the same.
"""

from __future__ import annotations

from typing import Any

from cluster import pointers
from cluster.errors import BadRequest, FieldError, Invalid
from cluster.port import Obj
from cluster.said import said


def merge(target: Any, patch: Any) -> Any:
    """`patch` merged into `target`: null removes a field, a list replaces one."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value) if isinstance(value, dict) else value
    return result


def json_patch(target: Obj, operations: Any) -> Obj:
    """A list of operations done in order. Raises BadRequest for what is no operation, Invalid for one that fails."""
    if not isinstance(operations, list):
        raise BadRequest(
            said('a JSON patch is a list of operations such as {"op": "replace", "path": "/spec/weight", "value": 2}')
        )
    result: Any = target
    for position, operation in enumerate(operations):
        try:
            result = _operate(result, operation)
        except _PatchFault as fault:
            text = said("operation %(position)s: %(fault)s", position=position, fault=fault)
            raise Invalid(said("the JSON patch does not fit: %(text)s", text=text), [FieldError(fault.pointer, text)]) from None
    if not isinstance(result, dict):
        raise Invalid(said("a JSON patch must leave an object"))
    return result


class _PatchFault(Exception):
    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


def _operate(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise BadRequest(said("an operation of a JSON patch has an op and a path"))
    op, path = operation.get("op"), operation["path"]
    if op in ("add", "replace", "test") and "value" not in operation:
        raise BadRequest(said("the operation %(op)r needs a value", op=op))
    if op in ("move", "copy") and not isinstance(operation.get("from"), str):
        raise BadRequest(said("the operation %(op)r needs a from", op=op))
    match op:
        case "add":
            return _set(document, _steps(path), operation["value"], path, insert=True)
        case "replace":
            _look_up(document, path)
            return _set(document, _steps(path), operation["value"], path, insert=False)
        case "remove":
            return _remove(document, _steps(path), path)
        case "copy":
            return _set(document, _steps(path), _look_up(document, operation["from"]), path, insert=True)
        case "move":
            if path.startswith(operation["from"] + "/"):
                raise _PatchFault(path, "a value cannot be moved into itself")
            value = _look_up(document, operation["from"])
            document = _remove(document, _steps(operation["from"]), operation["from"])
            return _set(document, _steps(path), value, path, insert=True)
        case "test":
            if not _equal(_look_up(document, path), operation["value"]):
                raise _PatchFault(path, f"{path} is not what was tested for")
            return document
    raise BadRequest(said("%(op)r is no operation of a JSON patch: add, remove, replace, move, copy or test", op=op))


def _equal(left: Any, right: Any) -> bool:
    """Equality as JSON sees it: true is not 1."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _steps(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise BadRequest(said("%(path)r is no JSON pointer: it begins with /", path=path))
    return pointers.steps(path)


def _index(found: list[Any], step: str, path: str, *, end: int) -> int:
    if step == "-" and end > len(found) - 1:
        return len(found)
    if not (step.isascii() and step.isdigit()) or (len(step) > 1 and step[0] == "0") or len(step) > 9 or int(step) > end:
        raise _PatchFault(path, f"{path} points to {step!r} in a list of {len(found)}")
    return int(step)


def _look_up(document: Any, path: str) -> Any:
    for step in _steps(path):
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(document, step, path, end=len(document) - 1)]
        else:
            raise _PatchFault(path, f"there is nothing at {path}")
    return document


def _set(document: Any, steps: list[str], value: Any, path: str, *, insert: bool) -> Any:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(document, dict):
        if rest and step not in document:
            raise _PatchFault(path, f"there is nothing above {path}")
        return {**document, step: _set(document.get(step), rest, value, path, insert=insert)}
    if isinstance(document, list):
        last = not rest
        index = _index(document, step, path, end=len(document) if last and insert else len(document) - 1)
        if last and insert:
            return [*document[:index], value, *document[index:]]
        return [*document[:index], _set(document[index], rest, value, path, insert=insert), *document[index + 1 :]]
    raise _PatchFault(path, f"there is nothing above {path}")


def _remove(document: Any, steps: list[str], path: str) -> Any:
    if not steps:
        raise _PatchFault(path, "the whole object cannot be removed by a patch")
    step, rest = steps[0], steps[1:]
    if isinstance(document, dict) and step in document:
        if rest:
            return {**document, step: _remove(document[step], rest, path)}
        return {key: value for key, value in document.items() if key != step}
    if isinstance(document, list):
        index = _index(document, step, path, end=len(document) - 1)
        inner = [_remove(document[index], rest, path)] if rest else []
        return [*document[:index], *inner, *document[index + 1 :]]
    raise _PatchFault(path, f"there is nothing at {path}")


def apply(target: Obj | None, wanted: Obj, manager: str) -> Obj:
    """`wanted` applied by a manager: its fields are set, and those that it applied before and left out now are removed.

    Lists are taken whole. Which fields a manager applied is kept in `metadata.managedFields`, in the API server's form;
    a field that another manager applied too stays.
    """
    wanted = {key: value for key, value in wanted.items() if key != "status"}
    current = target or {}
    entries = list((current.get("metadata") or {}).get("managedFields") or ())
    mine = next((entry for entry in entries if entry.get("manager") == manager), None)
    others = [entry["fieldsV1"] for entry in entries if entry is not mine]
    owned = _field_set({key: value for key, value in wanted.items() if key not in ("apiVersion", "kind")})
    for system in ("f:name", "f:namespace", "f:uid", "f:resourceVersion", "f:managedFields"):
        owned.get("f:metadata", {}).pop(system, None)
    kept = _without(current, mine["fieldsV1"], owned, others) if mine else current
    result = _overlay(kept, wanted)
    entry = {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": owned}
    metadata = {**(result.get("metadata") or {}), "managedFields": [*(e for e in entries if e is not mine), entry]}
    return {**result, "metadata": metadata}


def _field_set(value: Obj) -> Obj:
    return {f"f:{key}": _field_set(inner) if isinstance(inner, dict) else {} for key, inner in value.items()}


def _overlay(target: Any, wanted: Any) -> Any:
    if not isinstance(wanted, dict) or not isinstance(target, dict):
        return wanted
    return {**target, **{key: _overlay(target.get(key), value) for key, value in wanted.items()}}


def _without(target: Any, before: Obj, now: Obj, others: list[Obj]) -> Any:
    """The target less the fields that were applied before and neither are now nor by another manager."""
    if not isinstance(target, dict):
        return target
    result = dict(target)
    for name, inner in before.items():
        key, held = name[2:], [other[name] for other in others if name in other]
        if key not in result:
            continue
        if inner:
            result[key] = _without(result[key], inner, now.get(name, {}), held)
            if result[key] == {} and name not in now and not held:
                del result[key]
        elif name not in now and not held:
            del result[key]
    return result
