"""YAML read by shapes: every word is known, and whatever is not is told with its line, all faults of a file at once.

A shape turns a YAML node into a value or adds a fault. Names are taken as they are written, so that a job may be called
`on` or `1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from cluster.quantities import parse_quantity

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NODES = 1_000_000
_STR = "tag:yaml.org,2002:str"
_INT = "tag:yaml.org,2002:int"
_BOOL = "tag:yaml.org,2002:bool"

Shape = Callable[["Reader", yaml.Node, str], Any]
"""(reader, node, where) → value; `where` is the path for people, such as `case x, steps[2].submit`."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a file; lines count from 1."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class FileError(ValueError):
    """A file that cannot be played; `faults` has everything that is wrong with it."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class Reader:
    """One reading of one text."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._nodes = 0

    def root(self, text: str) -> yaml.Node:
        """The document. Raises FileError when it is no YAML or empty."""
        try:
            node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        except (yaml.YAMLError, UnicodeError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or type(error).__name__
            raise FileError(Fault(mark.line + 1 if mark else 1, f"not YAML: {problem}")) from None
        if node is None:
            raise FileError(Fault(1, "there is no case in the file"))
        return node

    def fault(self, node: yaml.Node, where: str, message: str) -> None:
        """Note a fault at a node."""
        self.faults.append(Fault(node.start_mark.line + 1, f"{where}: {message}"))

    def scalar(self, node: yaml.Node, where: str, what: str) -> str | None:
        """The text of a single value, as written."""
        self.count(node)
        if isinstance(node, yaml.ScalarNode) and node.value != "":
            return str(node.value)
        self.fault(node, where, f"must be {what}")
        return None

    def entries(self, node: yaml.Node, where: str) -> list[tuple[str, yaml.Node, yaml.Node]]:
        """(key, its node, value) of a mapping; keys are texts, each given once."""
        self.count(node)
        if not isinstance(node, yaml.MappingNode):
            self.fault(node, where, "must be a mapping")
            return []
        found: dict[str, tuple[str, yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.fault(key, where, "a name must be a single word")
            elif key.value in found:
                self.fault(key, where, f"{key.value!r} is given twice")
            else:
                found[key.value] = (key.value, key, value)
        return list(found.values())

    def items(self, node: yaml.Node, where: str) -> list[yaml.Node]:
        """The items of a list."""
        self.count(node)
        if not isinstance(node, yaml.SequenceNode):
            self.fault(node, where, "must be a list")
            return []
        return list(node.value)

    def count(self, node: yaml.Node) -> None:
        """Aliases make a small text large: there is an end to it."""
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise FileError(Fault(node.start_mark.line + 1, f"the file unfolds to more than {_MAX_NODES} values"))


# --- shapes -------------------------------------------------------------------------------------------------------


def text(reader: Reader, node: yaml.Node, where: str) -> str:
    """A name or a text, as written."""
    return reader.scalar(node, where, "a name or a text") or ""


def sentence(reader: Reader, node: yaml.Node, where: str) -> str:
    """A text that may be empty."""
    return "" if isinstance(node, yaml.ScalarNode) and node.value == "" else text(reader, node, where)


def flag(reader: Reader, node: yaml.Node, where: str) -> bool:
    """true or false."""
    if isinstance(node, yaml.ScalarNode) and node.tag == _BOOL:
        return str(node.value).lower() in ("true", "yes", "on")
    reader.fault(node, where, "must be true or false")
    return False


def just_true(reader: Reader, node: yaml.Node, where: str) -> bool:
    """true, since there is nothing else to say."""
    if not flag(reader, node, where):
        reader.fault(node, where, "must be true")
    return True


def number(reader: Reader, node: yaml.Node, where: str) -> int:
    """A whole number of 0 or more."""
    return _whole(reader, node, where, 0)


def anything(reader: Reader, node: yaml.Node, where: str) -> Any:
    """Any value, as YAML means it."""
    reader.count(node)
    if isinstance(node, yaml.SequenceNode):
        return [anything(reader, item, where) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {key: anything(reader, value, f"{where}.{key}") for key, _, value in reader.entries(node, where)}
    return yaml.SafeLoader("").construct_document(node)


def amount(reader: Reader, node: yaml.Node, where: str) -> str:
    """A quantity in Kubernetes's grammar, as text."""
    found = reader.scalar(node, where, "an amount such as 2, 500m or 4Gi")
    if found is None:
        return "0"
    try:
        if parse_quantity(found) < 0:
            raise ValueError(f"{found} is negative")
    except ValueError as error:
        reader.fault(node, where, str(error))
        return "0"
    return found


def at_least(least: int) -> Shape:
    """A whole number, `least` or more."""
    return lambda reader, node, where: _whole(reader, node, where, least)


def choice(*words: str) -> Shape:
    """One of some words."""

    def read(reader: Reader, node: yaml.Node, where: str) -> str:
        found = reader.scalar(node, where, f"one of {', '.join(words)}")
        if found is not None and found not in words:
            reader.fault(node, where, f"{found!r} is not one of {', '.join(words)}")
        return found or words[0]

    return read


def pattern(expression: str, what: str) -> Shape:
    """A text of a given form."""

    def read(reader: Reader, node: yaml.Node, where: str) -> str:
        found = reader.scalar(node, where, what)
        if found is not None and not re.fullmatch(expression, found):
            reader.fault(node, where, f"{found!r} must be {what}")
            return ""
        return found or ""

    return read


def listed(item: Shape) -> Shape:
    """A list."""
    return lambda reader, node, where: [
        item(reader, each, f"{where}[{i}]") for i, each in enumerate(reader.items(node, where), 1)
    ]


def mapped(value: Shape) -> Shape:
    """A mapping of free names."""
    return lambda reader, node, where: {
        key: value(reader, each, f"{where}.{key}") for key, _, each in reader.entries(node, where)
    }


def fields(shapes: Mapping[str, Shape], *required: str) -> Shape:
    """A mapping of known words only."""

    def read(reader: Reader, node: yaml.Node, where: str) -> dict[str, Any]:
        found = {}
        entries = reader.entries(node, where)
        for key, at, value in entries:
            shape = shapes.get(key)
            if shape is None:
                reader.fault(at, where, f"{key!r} is no word that is known here; known are {', '.join(sorted(shapes))}")
            else:
                found[key] = shape(reader, value, f"{where}.{key}")
        given = {key for key, _, _ in entries}
        if isinstance(node, yaml.MappingNode) and (missing := [word for word in required if word not in given]):
            reader.fault(node, where, f"{', '.join(missing)} must be given")
        return found

    return read


def either(*, scalar: Shape | None = None, sequence: Shape | None = None, mapping: Shape | None = None) -> Shape:
    """One of several shapes, by the kind of node."""

    def read(reader: Reader, node: yaml.Node, where: str) -> Any:
        kind = scalar if isinstance(node, yaml.ScalarNode) else sequence if isinstance(node, yaml.SequenceNode) else mapping
        if kind is None:
            kinds = (("a single value", scalar), ("a list", sequence), ("a mapping", mapping))
            reader.fault(node, where, f"must be {' or '.join(name for name, shape in kinds if shape)}")
            return None
        return kind(reader, node, where)

    return read


def _whole(reader: Reader, node: yaml.Node, where: str, least: int) -> int:
    reader.count(node)
    if isinstance(node, yaml.ScalarNode) and node.tag == _INT and re.fullmatch(r"[-+]?[0-9]{1,18}", node.value):
        if int(node.value) >= least:
            return int(node.value)
        reader.fault(node, where, f"must be {least} or more, not {node.value}")
    else:
        reader.fault(node, where, "must be a whole number")
    return least
