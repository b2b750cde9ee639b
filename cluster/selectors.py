"""Label and field selectors: Kubernetes's grammars as pure functions.

Texts (`app=web,tier in (a,b),!old`) are parsed into tuples of requirements; selector objects (`matchLabels`,
`matchExpressions`) are matched as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cluster.names import is_dns_subdomain
from cluster.said import said

Labels = Mapping[str, str]

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:([^/]*)/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_PAIR = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^=!<>\s]*)")
_EXISTS = re.compile(r"(?P<not>!?)\s*(?P<key>[^=!<>\s]+)")
_LONGEST_KEY = 253 + 1 + 63
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def is_label_key(text: str) -> bool:
    """`name` or `prefix/name`: name of at most 63 characters, prefix a DNS subdomain of at most 253."""
    return len(text) <= _LONGEST_KEY and _is_key(text)


@lru_cache(maxsize=4096)
def _is_key(text: str) -> bool:
    match = _KEY.fullmatch(text)
    return match is not None and (match[1] is None or is_dns_subdomain(match[1]))


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 characters that begin and end with a letter or digit."""
    return _VALUE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on labels; the operators are those of `matchExpressions`, plus Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether labels fulfil this; NotIn holds also where the key is missing, as in Kubernetes."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        if value is None or len(self.values) != 1 or not (INTEGER.fullmatch(value) and INTEGER.fullmatch(self.values[0])):
            return False
        return int(value) > int(self.values[0]) if self.operator == "Gt" else int(value) < int(self.values[0])


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; an empty selector takes everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """A label selector in kubectl's grammar. Raises ValueError that quotes the part at fault."""
    return Selector(tuple(_requirement(part) for part in _split(text)))


def _split(text: str) -> list[str]:
    """The parts between commas, those inside parentheses left whole."""
    if not text.strip():
        return []
    parts = re.split(r",(?![^()]*\))", text)
    if any(not part.strip() for part in parts):
        raise ValueError(said("selector %(text)r has an empty part: write conditions with one comma between them", text=text))
    return [part.strip() for part in parts]


def _requirement(part: str) -> Requirement:
    if match := _SET.fullmatch(part):
        values = tuple(value.strip() for value in match["values"].split(","))
        return _checked(Requirement(match["key"], "In" if match["operator"] == "in" else "NotIn", values), part)
    if match := _PAIR.fullmatch(part):
        operator = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}[match["operator"]]
        return _checked(Requirement(match["key"], operator, (match["value"],)), part)
    if match := _EXISTS.fullmatch(part):
        return _checked(Requirement(match["key"], "DoesNotExist" if match["not"] else "Exists"), part)
    raise ValueError(
        said("%(part)r is no selector: write key=value, key!=value, key in (a,b), key notin (a,b), key or !key", part=part)
    )


def _checked(requirement: Requirement, part: str) -> Requirement:
    if not is_label_key(requirement.key):
        raise ValueError(
            said(
                "%(key)r in selector %(part)r is no label key: at most 63 letters, digits, '-', '_', '.'",
                key=requirement.key,
                part=part,
            )
        )
    for value in requirement.values:
        if requirement.operator in ("Gt", "Lt"):
            if not INTEGER.fullmatch(value):
                raise ValueError(said("%(value)r in selector %(part)r must be a whole number", value=value, part=part))
        elif not is_label_value(value):
            raise ValueError(
                said(
                    "%(value)r in selector %(part)r is no label value: at most 63 letters, digits, '-', '_', '.'",
                    value=value,
                    part=part,
                )
            )
    return requirement


def matches_selector(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether labels fit a LabelSelector object; None selects nothing and `{}` everything, as in Kubernetes."""
    if selector is None:
        return False
    pairs = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in pairs.items()):
        return False
    return matches_expressions(selector.get("matchExpressions"), labels)


def matches_expressions(expressions: list[Mapping[str, Any]] | None, labels: Labels) -> bool:
    """Whether labels fulfil every `matchExpressions` entry; an unknown operator fits nothing."""
    return all(
        Requirement(str(e.get("key", "")), str(e.get("operator", "")), tuple(map(str, e.get("values") or ()))).matches(labels)
        for e in expressions or ()
    )


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions on dotted fields, each (path, value, whether equal)."""

    conditions: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, obj: Mapping[str, Any]) -> bool:
        return all((field_value(obj, path) == value) is equal for path, value, equal in self.conditions)


@lru_cache(maxsize=1024)
def parse_field_selector(text: str, supported: frozenset[str] | None = None) -> FieldSelector:
    """`spec.nodeName=a,status.phase!=Running`; raises ValueError for what does not parse or is not `supported`."""
    conditions = []
    for part in _split(text):
        match = re.fullmatch(r"([A-Za-z][A-Za-z0-9.]*)(==|=|!=)(.*)", part)
        if match is None:
            raise ValueError(said("%(part)r is no field selector: write field=value or field!=value", part=part))
        if supported is not None and match[1] not in supported:
            raise ValueError(
                said(
                    "field %(field)r cannot be selected by; the fields are %(supported)s",
                    field=match[1],
                    supported=", ".join(sorted(supported)),
                )
            )
        conditions.append((match[1], match[3].strip(), match[2] != "!="))
    return FieldSelector(tuple(conditions))


def field_value(obj: Mapping[str, Any], path: str) -> str:
    """The scalar at a dotted path as text; what is missing is the empty text."""
    found: Any = obj
    for step in path.split("."):
        if not isinstance(found, Mapping):
            return ""
        found = found.get(step)
    if isinstance(found, bool):
        return "true" if found else "false"
    return "" if found is None or isinstance(found, (Mapping, list)) else str(found)
