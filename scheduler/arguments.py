"""Arguments of plugins and actions as the configuration gives them, read by type, and what is wrong with a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster.said import said

_LARGEST = 2**31
"""Beyond every weight; products of what is smaller can be counted."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a configuration; lines count from 1, 0 means the file as a whole."""

    line: int
    message: str

    @property
    def sentence(self) -> str:
        """What is wrong, and where."""
        return said("line %(line)s: %(message)s", line=self.line, message=self.message) if self.line else self.message

    def __str__(self) -> str:
        return str(self.sentence)


class ConfError(ValueError):
    """A configuration that cannot be used; `faults` has everything that is wrong with it."""

    def __init__(self, *faults: Fault) -> None:
        self.faults, self.sentences = faults, tuple(fault.sentence for fault in faults)
        super().__init__(said("%(faults)s", faults=self.sentences))


class Arguments:
    """Arguments of one plugin or action, read by type. A value of another type raises ConfError with its line.

    `asked` are the names that somebody has asked for: the arguments that there are.
    """

    def __init__(self, owner: str = "", values: Mapping[str, Any] | None = None, lines: Mapping[str, int] | None = None) -> None:
        self.owner = owner
        self._values = dict(values or {})
        self._lines = dict(lines or {})
        self.asked: set[str] = set()

    def afresh(self) -> Arguments:
        """The same arguments, of which nobody has asked for any."""
        return Arguments(self.owner, self._values, self._lines)

    def line(self, key: str) -> int:
        """Where an argument stands."""
        return self._lines.get(key, 0)

    def _get(self, key: str, default: Any) -> Any:
        self.asked.add(key)
        return self._values.get(key, default)

    def keys(self) -> list[str]:
        """Names of the arguments that are given, in their order."""
        return list(self._values)

    def __contains__(self, key: str) -> bool:
        self.asked.add(key)
        return key in self._values

    def error(self, key: str, message: str) -> ConfError:
        """The error that says what is wrong with an argument, and on which line it stands."""
        told = said("%(owner)s: argument %(key)s: %(message)s", owner=self.owner, key=key, message=message)
        return ConfError(Fault(self.line(key), told))

    def integer(self, key: str, default: int) -> int:
        """A whole number."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, said("%(value)r must be a whole number, without quotes", value=value))
        if abs(value) >= _LARGEST:
            raise self.error(key, said("%(value)s must be nearer to 0 than %(largest)s", value=value, largest=_LARGEST))
        return value

    def number(self, key: str, default: float) -> float:
        """A number, whole or not."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) == float("inf"):
            raise self.error(key, said("%(value)r must be a number, without quotes", value=value))
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        """true or false, also as a text."""
        value = self._get(key, default)
        if isinstance(value, str) and value in ("true", "false"):
            return value == "true"
        if not isinstance(value, bool):
            raise self.error(key, said("%(value)r must be true or false", value=value))
        return value

    def value(self, key: str, default: Any) -> Any:
        """Whatever is given, of any type."""
        return self._get(key, default)

    def text(self, key: str, default: str) -> str:
        """A text."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.error(key, said("%(value)r must be a text; put it in quotes", value=value))
        return value
