"""Selectors of devices: CEL expressions over one device of a ResourceSlice, as DeviceClasses and ResourceClaims carry them.

A device has `driver`, `attributes[domain].name` and `capacity[domain].name`; capacities are quantities, versions are
compared by their numbers. What is not there makes an expression fail, which counts as: does not match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache, total_ordering
from typing import Any

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from cluster.quantities import parse_quantity
from cluster.said import said

_LONGEST = 10 * 1024
_MOST_ANSWERS = 100_000
_MAP = r"""device\s*\.\s*(?:attributes|capacity)\s*\[\s*(?:"[^"\\]*"|'[^'\\]*')\s*\]"""
_NAMED = re.compile(
    rf"""(?:"([^"\\]*)"|'([^'\\]*)')\s+in\s+{_MAP}(?!\s*[.\[])|{_MAP}\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()"""
)
_DRIVER = re.compile(r"device\s*\.\s*driver\b")
_SEMVER = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)

Attributes = Mapping[str, Any]


@total_ordering
class Version:
    """A semantic version; one with a pre-release comes before the same without."""

    def __init__(self, text: str) -> None:
        match = _SEMVER.fullmatch(text)
        if match is None:
            raise ValueError(said("%(text)r is no semantic version: write it as 1.2.3", text=text))
        self.text = text
        pre = match[4]
        self._key = (*map(int, match.groups()[:3]), pre is None, tuple(map(_identifier, pre.split("."))) if pre else ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _identifier(text: str) -> tuple[bool, int, str]:
    return (False, int(text), "") if text.isdecimal() else (True, 0, text)


class _Amount(Decimal):
    """A quantity within an expression."""


class _Domains(celtypes.MapType):
    """A map by domain in which an unknown domain is an empty map."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if key in self else celtypes.MapType()


def _compare(left: Any, right: Any) -> Any:
    return celtypes.IntType((left > right) - (left < right))


def _succeeds(make: Callable[[str], Any]) -> Callable[[Any], Any]:
    def ask(text: Any) -> Any:
        try:
            make(str(text))
        except ValueError:
            return celtypes.BoolType(False)
        return celtypes.BoolType(True)

    return ask


def _amount(text: Any) -> _Amount:
    return _Amount(parse_quantity(str(text)))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _amount,
    "isQuantity": _succeeds(_amount),
    "semver": lambda text: Version(str(text)),
    "isSemver": _succeeds(Version),
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: celtypes.BoolType(left > right),
    "isLessThan": lambda left, right: celtypes.BoolType(left < right),
    "asInteger": lambda amount: celtypes.IntType(int(amount)),
    "lowerAscii": lambda text: celtypes.StringType(str(text).lower()),
    "upperAscii": lambda text: celtypes.StringType(str(text).upper()),
}


class Selector:
    """One compiled expression. It is asked once about all devices that are alike in what it looks at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._names = _looks_at(text)
        self._answers: dict[Any, bool] = {}
        environment = celpy.Environment()
        try:
            self._program = environment.program(environment.compile(text), functions=_FUNCTIONS)
        except Exception as error:  # noqa: BLE001 - the library lets its parser's own errors out
            where = f"line {error.line}, column {error.column}" if isinstance(error, CELParseError) else str(error)
            raise ValueError(said("is no CEL expression (%(where)s)", where=where)) from None

    def fits(self, driver: str, attributes: Attributes, capacity: Mapping[str, Decimal]) -> bool:
        """Whether a device fits; names without a domain are the driver's own."""
        key = driver, self._seen(attributes), self._seen(capacity)
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = self.matches(device_value(driver, attributes, capacity))
        return found

    def _seen(self, named: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
        """What of a device the expression looks at."""
        names = self._names
        return tuple(
            (name, repr(value) if isinstance(value, list) else (type(value), value))
            for name, value in named.items()
            if names is None or name.rpartition("/")[2] in names
        )

    def matches(self, device: Any) -> bool:
        """Whether a device (from `device_value`) fits; one that the expression cannot be asked of does not."""
        try:
            return _is_true(self._program.evaluate({"device": device}))
        except (CELEvalError, ArithmeticError, TypeError, ValueError, KeyError, AttributeError):
            return False


def _looks_at(text: str) -> frozenset[str] | None:
    """The names of attributes and capacities that an expression can depend on; None: it may be any."""
    names = set[str]()

    def note(match: re.Match[str]) -> str:
        names.update(name for name in match.groups() if name)
        return " "

    rest = _DRIVER.sub(" ", _NAMED.sub(note, text))
    return None if "device" in rest else frozenset(names)


def _is_true(value: Any) -> bool:
    return isinstance(value, (bool, celtypes.BoolType)) and bool(value)


@lru_cache(maxsize=1024)
def compile_selector(text: str) -> Selector:
    """A selector by its text. Raises ValueError that says where it is wrong."""
    if len(text) > _LONGEST:
        raise ValueError(said("has at most %(most)s characters", most=_LONGEST))
    return Selector(text)


def device_value(driver: str, attributes: Attributes, capacity: Mapping[str, Decimal]) -> Any:
    """A device as expressions see it; names without a domain are the driver's own."""
    return celtypes.MapType({
        celtypes.StringType("driver"): celtypes.StringType(driver),
        celtypes.StringType("attributes"): _by_domain(driver, {name: _value(value) for name, value in attributes.items()}),
        celtypes.StringType("capacity"): _by_domain(driver, {name: _Amount(value) for name, value in capacity.items()}),
        celtypes.StringType("allowMultipleAllocations"): celtypes.BoolType(False),
    })  # fmt: skip


def _by_domain(driver: str, named: Mapping[str, Any]) -> Any:
    found: dict[str, dict[Any, Any]] = {}
    for name, value in named.items():
        domain, _, own = name.rpartition("/")
        found.setdefault(domain or driver, {})[celtypes.StringType(own)] = value
    return _Domains({celtypes.StringType(domain): celtypes.MapType(values) for domain, values in found.items()})


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return celtypes.BoolType(value)
    if isinstance(value, int):
        return celtypes.IntType(value)
    if isinstance(value, list):
        return celtypes.ListType([_value(each) for each in value])
    return value if isinstance(value, Version) else celtypes.StringType(value)
