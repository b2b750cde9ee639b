"""A blueprint's parameters: which JSON Schema they may have, texts of a form as values, and faults in words.

The schema is Draft 2020-12 of one flat object. It is read strictly, so that a form can be made of it: no references, no
nesting, no keyword that would be passed over in silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend

from cluster.errors import FieldError
from cluster.pointers import pointer
from cluster.said import said
from jobs.blueprints.filling import LARGEST
from jobs.blueprints.patterns import LONGEST_TEXT, matches, pattern_fault, together_fault

Schema = dict[str, Any]
NAME = re.compile(r"[a-z][a-zA-Z0-9_]{0,39}")
TYPES = ("string", "integer", "number", "boolean")
MOST = 60
"""Parameters of one blueprint."""

_COMMON = frozenset({"type", "title", "description", "default", "enum", "x-translations"})
_OF_TYPE: Mapping[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "x-multiline"}),
    "integer": frozenset({"minimum", "maximum", "multipleOf"}),
    "number": frozenset({"minimum", "maximum", "multipleOf"}),
    "boolean": frozenset(),
}
_TOP = frozenset({"type", "required", "properties", "additionalProperties"})


def schema_faults(schema: Any) -> Iterator[FieldError]:
    """Everything that is wrong with a schema, with pointers inside of it."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield FieldError("", said("is a JSON Schema with type: object and its properties"), "type")
        return
    for key in schema.keys() - _TOP:
        yield FieldError(
            pointer(key), said("is not for blueprints: there are %(known)s", known=", ".join(sorted(_TOP))), "unknown"
        )
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or len(properties) > MOST:
        yield FieldError("/properties", said("is a mapping of at most %(most)s parameters", most=MOST), "type")
        return
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) and name in properties for name in required):
        yield FieldError("/required", said("is a list of names of parameters"), "type")
    for name, each in properties.items():
        for fault in _property_faults(name, each):
            yield FieldError(pointer("properties", name) + fault.pointer, fault.message, fault.code)
    patterns = [str(each["pattern"]) for each in properties.values() if isinstance(each, dict) and "pattern" in each]
    if not any(map(pattern_fault, patterns)) and (wrong := together_fault(patterns)):
        yield FieldError("/properties", wrong, "format")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield FieldError(pointer(*error.absolute_path), error.message, "invalid")


def _property_faults(name: str, each: Any) -> Iterator[FieldError]:
    if not NAME.fullmatch(name):
        yield FieldError("", said("is no name of a parameter: letters, digits and _, a small letter first, at most 40"), "format")
    if not isinstance(each, dict) or each.get("type") not in TYPES:
        yield FieldError("/type", said("is one of %(known)s", known=", ".join(TYPES)), "choice")
        return
    known = _COMMON | _OF_TYPE[each["type"]]
    for key in each.keys() - known:
        yield FieldError(
            pointer(key),
            said("is not for a %(type)s: there are %(known)s", type=each["type"], known=", ".join(sorted(known))),
            "unknown",
        )
    if "pattern" in each and (wrong := pattern_fault(str(each["pattern"]))):
        yield FieldError("/pattern", wrong, "format")
        return
    yield from _translation_faults(each.get("x-translations"))
    if each.keys() - known or "default" not in each:
        return
    try:
        faults = list(_validator({"type": "object", "properties": {name: each}}).iter_errors({name: each["default"]}))
    except (SchemaError, TypeError, ValueError, ArithmeticError):
        return  # told with the schema
    for fault in faults:
        yield FieldError("/default", words(fault), "invalid")


def _translation_faults(given: Any) -> Iterator[FieldError]:
    if given is None:
        return
    if not isinstance(given, dict):
        yield FieldError("/x-translations", said("is a mapping of languages to titles and descriptions"), "type")
        return
    for language, texts in given.items():
        is_right = isinstance(texts, dict) and texts.keys() <= {"title", "description"}
        if not is_right or not all(isinstance(text, str) for text in texts.values()):
            yield FieldError(pointer("x-translations", language), said("has a title and a description, both texts"), "type")


@dataclass(slots=True)
class Parameter:
    """One parameter as a form shows it. `text` is what stands in its input."""

    name: str
    label: str
    help: str
    type: str
    choices: list[tuple[str, str]]
    text: str
    required: bool
    limits: str
    multiline: bool = False
    errors: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The name that it is posted under."""
        return f"p.{self.name}"

    @property
    def id(self) -> str:
        return f"p-{self.name}"

    @property
    def checked(self) -> bool:
        return self.text == "true"


def shown(schema: Schema, values: Mapping[str, Any]) -> list[Parameter]:
    """The form's inputs in the order of the schema, filled with `values`, else with defaults."""
    found = []
    required = set(schema.get("required", ()))
    for name, each in schema.get("properties", {}).items():
        value = values[name] if name in values else each.get("default")
        translated = (each.get("x-translations") or {}).get(get_language() or "") or {}
        found.append(
            Parameter(
                name,
                str(translated.get("title") or each.get("title") or name),
                str(translated.get("description") or each.get("description") or ""),
                each["type"],
                [(as_text(choice), as_text(choice)) for choice in each.get("enum", ())],
                as_text(value),
                name in required,
                _limits(each),
                bool(each.get("x-multiline")),
            )
        )
    return found


def as_text(value: Any) -> str:
    """A value as it stands in an input."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _limits(each: Schema) -> str:
    low, high = each.get("minimum"), each.get("maximum")
    if low is not None and high is not None:
        return _("%(low)s to %(high)s") % {"low": low, "high": high}
    if low is not None:
        return _("%(low)s or more") % {"low": low}
    return _("%(high)s or less") % {"high": high} if high is not None else ""


def posted(schema: Schema, texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of what a form posted under `p.<name>`; an empty text is a value that was not given, save for texts with no default.

    What is no number stays text, so that the schema says what is wrong.
    """
    found: dict[str, Any] = {}
    for name, each in schema.get("properties", {}).items():
        text = texts.get(f"p.{name}")
        if text is None:
            continue
        text = text.replace("\r\n", "\n")
        if text.strip() == "" and each["type"] != "string":
            continue
        value = from_text(each["type"], text)
        if value == "" and "default" not in each:
            continue
        found[name] = value
    return found


def from_text(kind: str, text: str) -> Any:
    """A text as a value of the type; the text itself when it is none."""
    text = text if kind == "string" else text.strip()
    if kind == "integer" and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if kind == "number" and re.fullmatch(r"[+-]?([0-9]{1,18}(\.[0-9]{1,18})?|\.[0-9]{1,18})", text):
        return float(text) if "." in text else int(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return text


def complete(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with defaults for those that are absent."""
    properties = schema.get("properties", {})
    return {name: each["default"] for name, each in properties.items() if "default" in each and name not in values} | dict(values)


def faults(schema: Schema, values: Any) -> list[FieldError]:
    """What is wrong with values, each under `/<name>`, in the active language."""
    if not isinstance(values, dict):
        return [FieldError("", _("parameters are a mapping of names to values"), "type")]
    if huge := [name for name, value in values.items() if isinstance(value, int | float) and not abs(value) <= LARGEST]:
        told = _("must be %(limit)s or less, not %(value)s")
        return [
            FieldError(pointer(name), told % {"limit": LARGEST, "value": as_text(values[name])[:20]}, "maximum") for name in huge
        ]
    found = []
    for error in _validator({**schema, "additionalProperties": False}).iter_errors(values):
        if error.validator == "required":
            missing = next(name for name in error.validator_value if name not in values and name in error.message)
            found.append(FieldError(pointer(missing), words(error), "required"))
        elif error.validator == "additionalProperties":
            unknown = sorted(values.keys() - schema.get("properties", {}).keys())
            found += [FieldError(pointer(name), _("is no parameter of this blueprint"), "unknown") for name in unknown]
        else:
            found.append(FieldError(pointer(*error.absolute_path), words(error), str(error.validator)))
    found += [
        FieldError(pointer(name), _("must have at most %(limit)s characters") % {"limit": LONGEST_TEXT}, "maxLength")
        for name, value in values.items()
        if isinstance(value, str) and len(value) > LONGEST_TEXT
    ]
    found += [
        FieldError(pointer(name), _("must be text that can be printed"), "format")
        for name, value in values.items()
        if isinstance(value, str) and not all(each.isprintable() or each in "\n\t" for each in value)
    ]
    return list(dict.fromkeys(found))


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError("pattern")


def _strict_integer(_checker: Any, instance: Any) -> bool:
    return isinstance(instance, int) and not isinstance(instance, bool)


_BASE = Draft202012Validator
_CHECKER = _BASE.TYPE_CHECKER.redefine("integer", _strict_integer)


def _validator(schema: Schema) -> Any:
    made = extend(_BASE, {"pattern": _pattern}, type_checker=_CHECKER)
    return made(schema, format_checker=FormatChecker(()))


def words(error: ValidationError) -> str:
    """What a value would have to be."""
    limit, value = error.validator_value, error.instance
    kinds = {"integer": _("a whole number"), "number": _("a number"), "boolean": _("true or false"), "string": _("text")}
    match error.validator:
        case "required":
            return _("is required")
        case "type":
            return _("must be %(kind)s") % {"kind": kinds.get(str(limit), str(limit))}
        case "enum":
            return _("must be one of %(choices)s") % {"choices": ", ".join(as_text(each) for each in limit)}
        case "minimum":
            return _("must be %(limit)s or more, not %(value)s") % {"limit": limit, "value": value}
        case "maximum":
            return _("must be %(limit)s or less, not %(value)s") % {"limit": limit, "value": value}
        case "multipleOf":
            return _("must be a multiple of %(limit)s") % {"limit": limit}
        case "minLength":
            return _("must have at least %(limit)s characters") % {"limit": limit}
        case "maxLength":
            return _("must have at most %(limit)s characters") % {"limit": limit}
        case "pattern":
            return _("must have the form %(pattern)s") % {"pattern": error.schema.get("pattern", "")}
    return str(error.message)
