"""A pydantic shape as a structural OpenAPI schema, which is what a CustomResourceDefinition wants.

Structural means: no references, a type at every level, `nullable` in place of a union with null. Fields that a shape does
not name are kept, as admission keeps them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_KEPT = ("type", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "format", "required")
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def structural(shape: type[BaseModel]) -> Schema:
    """The schema of one shape. Defaults are left out: admission fills them in, and a server that did would hide what was said."""
    whole = shape.model_json_schema()
    return _convert(whole, whole.get("$defs", {}))


def _convert(part: Schema, shapes: dict[str, Schema]) -> Schema:
    if "$ref" in part:
        return _convert(shapes[part["$ref"].rpartition("/")[2]], shapes)
    if "anyOf" in part and not part.get("x-kubernetes-int-or-string"):
        return _nullable(part["anyOf"], shapes)
    if part.get("x-kubernetes-int-or-string"):
        return {key: part[key] for key in ("anyOf", "pattern", "x-kubernetes-int-or-string") if key in part}
    if "const" in part:
        return {"type": "string", "enum": [part["const"]]}
    found = {key: part[key] for key in _KEPT if key in part}
    match part.get("type"):
        case "object":
            return _mapping(part, found, shapes)
        case "array":
            return {**found, "items": _convert(part["items"], shapes)}
        case "integer":
            return {**found, "format": "int64"}
        case None:
            return {"x-kubernetes-preserve-unknown-fields": True}
    return found


def _mapping(part: Schema, found: Schema, shapes: dict[str, Schema]) -> Schema:
    values = part.get("additionalProperties")
    if "properties" in part:
        fields = {name: _convert(field, shapes) for name, field in part["properties"].items()}
        return {**found, "properties": fields, "x-kubernetes-preserve-unknown-fields": True}
    if isinstance(values, dict):
        return {**found, "additionalProperties": _convert(values, shapes)}
    return dict(_OPEN)


def _nullable(choices: list[Schema], shapes: dict[str, Schema]) -> Schema:
    """`X | None`, or a number that may be written as text; of other unions a schema says nothing."""
    meant = [choice for choice in choices if choice.get("type") != "null"]
    nullable = {"nullable": True} if len(meant) < len(choices) else {}
    if len(meant) == 1:
        return {**_convert(meant[0], shapes), "nullable": True}
    if {choice.get("type") for choice in meant} == {"integer", "string"}:
        return {"x-kubernetes-int-or-string": True, **nullable}
    return {"x-kubernetes-preserve-unknown-fields": True, **nullable}
