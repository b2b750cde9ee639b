"""What admission rules share: typed shapes of objects, and faults with JSON pointers.

A shape is a pydantic model that says which type each known field has; `check_shape` turns what it finds into FieldErrors
in plain words, and `prune` hands the rest on, so that rules meet only well-formed values and all faults are told at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from cluster.durations import parse_duration
from cluster.errors import FieldError
from cluster.pointers import pointer, steps
from cluster.quantities import to_units
from cluster.said import said


def _amounts(resources: Any) -> Any:
    """Resource names to amounts that can be counted; a null is an amount that was not given."""
    if not isinstance(resources, dict):
        return resources
    faults = []
    for resource, value in resources.items():
        try:
            if value is not None:
                to_units(resource, value)
        except ValueError as error:
            kind = PydanticCustomError("quantity", "{why}", {"why": error.args[0]})
            faults.append(InitErrorDetails(type=kind, loc=(resource,), input=value))
    if faults:
        raise ValidationError.from_exception_data("amounts", faults)
    return resources


def _amount(value: Any) -> Any:
    try:
        to_units("memory", value)
    except ValueError as error:
        raise PydanticCustomError("quantity", "{why}", {"why": error.args[0]}) from None
    return value


def _duration(value: Any) -> Any:
    try:
        parse_duration(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise PydanticCustomError("duration", "{why}", {"why": error.args[0]}) from None
    return value


Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
_AMOUNT = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[+]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
}  # what an API server can be told of an amount: a decimal that is not negative, with one of Kubernetes's suffixes
Duration = Annotated[Any, BeforeValidator(_duration), WithJsonSchema({"type": "string", "maxLength": 100})]
Amount = Annotated[Any, BeforeValidator(_amount), WithJsonSchema(_AMOUNT)]
Texts = dict[str, str]
Resources = Annotated[
    dict[str, Any], BeforeValidator(_amounts), WithJsonSchema({"type": "object", "additionalProperties": _AMOUNT})
]


class Shape(BaseModel):
    """Types as they stand in JSON, nothing converted; unknown fields are allowed."""

    model_config = ConfigDict(extra="allow", strict=True)


class Meta(Shape):
    """`metadata`, as far as people write it."""

    name: str = ""
    generateName: str = ""
    namespace: str = ""
    labels: Texts = {}
    annotations: Texts = {}


class Faults(list[FieldError]):
    """A list of faults that knows how to add one. It stays quick with as many faults as a large manifest can hold."""

    def __init__(self, faults: Iterable[FieldError] = ()) -> None:
        super().__init__(faults)
        self._known = set(self)

    def add(self, where: str, message: str, code: str = "invalid") -> None:
        """Add a fault; an equal one is not repeated."""
        fault = FieldError(where, message, code)
        if fault not in self._known:
            self._known.add(fault)
            self.append(fault)

    def with_apart(self, others: Iterable[FieldError]) -> list[FieldError]:
        """These, and of the others those that are told neither above nor below a place that these name already."""
        places = {fault.pointer for fault in self}
        above = {above for place in places for above in _upwards(place)}
        return [*self, *(f for f in others if f.pointer not in above and places.isdisjoint(_upwards(f.pointer)))]


def without_nulls(value: Any) -> Any:
    """A copy in which keys with null are absent, which is what a null means to Kubernetes."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def check_shape(model: type[BaseModel], obj: Any) -> list[FieldError]:
    """Every value of a wrong type or out of range, and every required one that is missing."""
    try:
        model.model_validate(without_nulls(obj))
    except ValidationError as error:
        return [_fault(detail) for detail in error.errors(include_url=False)]
    return []


def prune(obj: Any, faults: Iterable[FieldError]) -> Any:
    """A copy without the values at fault, so that the rules that follow meet only well-formed ones.

    What is at fault inside a list is emptied, not taken out: the others keep their indices.
    """
    result = without_nulls(obj)
    for fault in faults:
        is_text = fault.code in ("choice", "range") or fault.message.startswith(_NO_TEXT)  # English, as rules write it
        _remove(result, steps(fault.pointer), "" if is_text else {})
    return result


def few(names: Iterable[str], most: int = 10) -> str:
    """Names in a row, not more than can be read."""
    listed = list(islice(names, most + 1))
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def _upwards(where: str) -> Iterator[str]:
    """A pointer and all that lie above it."""
    while where:
        yield where
        where = where.rpartition("/")[0]


def _remove(value: Any, path: Sequence[str], emptied: Any) -> None:
    for part in path[:-1]:
        value = _child(value, part)
    if isinstance(value, dict):
        value.pop(path[-1], None)
    elif isinstance(value, list) and path[-1].isdecimal() and len(path[-1]) < 10 and int(path[-1]) < len(value):
        value[int(path[-1])] = emptied


def _child(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
        return value[int(part)]
    return None


_TYPES = {
    "string_type": said("text"),
    "int_type": said("a whole number"),
    "bool_type": said("true or false"),
    "list_type": said("a list"),
    "dict_type": said("a mapping"),
    "model_type": said("a mapping"),
    "float_type": said("a number"),
}
_NO_TEXT = f"must be {_TYPES['string_type']}, not "


def _fault(detail: ErrorDetails) -> FieldError:
    kind, value, context = detail["type"], detail.get("input"), detail.get("ctx") or {}
    where = pointer(*(part for part in detail["loc"] if part != "[key]"))
    if kind == "missing":
        return FieldError(where, said("is required"), "required")
    if kind in _TYPES:
        told = said("must be %(kind)s, not %(value)s", kind=_TYPES[kind], value=_said(value))
        return FieldError(where, told, "type")
    if kind == "greater_than_equal":
        return FieldError(where, said("must be %(limit)s or more, not %(value)s", limit=context["ge"], value=value), "range")
    if kind == "less_than_equal":
        return FieldError(where, said("must be %(limit)s or less, not %(value)s", limit=context["le"], value=value), "range")
    if kind == "literal_error":
        choices = context["expected"].replace(" or ", ", ")
        return FieldError(where, said("must be one of %(choices)s, not %(value)s", choices=choices, value=_said(value)), "choice")
    if kind in ("string_too_short", "too_short"):
        return FieldError(where, said("must not be empty"), "required")
    if kind == "string_too_long":
        told = said("must have at most %(limit)s characters, not %(length)s", limit=context["max_length"], length=len(str(value)))
        return FieldError(where, told, "range")
    return FieldError(where, context["why"] if kind in ("quantity", "duration") else detail["msg"])


def _said(value: Any) -> str:
    """A value as a person would name it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return said("the text %(text)r", text=value[:60])
    if isinstance(value, int | float):
        return str(value)
    return _TYPES["list_type"] if isinstance(value, list) else _TYPES["dict_type"] if isinstance(value, dict) else said("nothing")
