"""Arguments of job plugins: lists of `--flag=value`, read as Go's flag package reads them, which is how Volcano does.

One or two dashes; a value behind `=` or, save for switches, as the next argument; a switch alone is true; the last of
several wins; `--` and the first argument that is no flag end the flags. Go then ignores the rest, and everything behind a
faulty argument; here each is a fault, so that a manifest that would be half understood is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cluster.said import said

Value = str | int | bool

_WHOLE = re.compile(r"[+-]?(0[bB](_?[01])+|0[xX](_?[0-9a-fA-F])+|0[oO]?(_?[0-7])+|0|[1-9](_?[0-9])*)")
_OLD_OCTAL = re.compile(r"([+-]?)0([0-7]+)")
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag; the default's type is the flag's. A port must be one; what is secret is shown to nobody."""

    name: str
    default: Value
    is_port: bool = False
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the argument at an index. It never repeats a value, which may be a key."""

    index: int
    message: str
    code: str = "format"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The value of every flag, and the faults. Like Go, what stands behind the first fault leaves its flags as they were."""

    values: Mapping[str, Value]
    faults: Sequence[Fault] = ()

    def text(self, name: str) -> str:
        return str(self.values[name])

    def whole(self, name: str) -> int:
        return int(self.values[name])

    def switch(self, name: str) -> bool:
        return bool(self.values[name])


def parse(flags: Iterable[Flag], arguments: Sequence[str]) -> Arguments:
    """Read a plugin's arguments. Never raises: a controller goes on with what it understood."""
    known = {flag.name: flag for flag in flags}
    values: dict[str, Value] = {flag.name: flag.default for flag in known.values()}
    faults: list[Fault] = []
    index = 0
    while index < len(arguments):
        at, argument = index, arguments[index]
        index += 1
        name, has_value, text = _split(argument)
        flag = known.get(name)
        if flag is None:
            faults.append(_unknown(at, argument, name, known))
            continue
        if isinstance(flag.default, bool):
            text = text if has_value else "true"
        elif not has_value:
            if index == len(arguments):
                faults.append(Fault(at, said("--%(name)s needs a value: --%(name)s=…", name=name), "required"))
                continue
            text, index = arguments[index], index + 1
        value = _read(flag, text)
        if isinstance(value, Fault):
            faults.append(Fault(at, value.message, value.code))
        elif not faults:
            values[name] = value
    return Arguments(values, faults)


def hidden(flags: Iterable[Flag], arguments: Sequence[str], instead: str) -> list[str]:
    """The arguments with every secret value replaced, whatever else in them is wrong."""
    flags = list(flags)
    secret = {flag.name for flag in flags if flag.is_secret}
    take_a_value = {flag.name for flag in flags if not isinstance(flag.default, bool)}
    shown: list[str] = []
    value_of = ""
    for argument in arguments:
        name, has_value, _text = _split(argument)
        if value_of:
            shown.append(instead if value_of in secret else argument)
            value_of = ""
        elif name in secret and has_value:
            shown.append(f"{argument[: argument.index('=')]}={instead}")
        else:
            shown.append(argument)
            value_of = name if not has_value and name in take_a_value else ""
    return shown


def _split(argument: str) -> tuple[str, bool, str]:
    """Name, whether a value stands behind `=`, and that; an empty name is no flag."""
    dashes = 2 if argument.startswith("--") else 1 if argument.startswith("-") else 0
    name, equals, text = argument[dashes:].partition("=")
    if not dashes or not name or name.startswith("-"):
        return "", False, ""
    return name, bool(equals), text


def _unknown(index: int, argument: str, name: str, known: Mapping[str, Flag]) -> Fault:
    flags = ", ".join(f"--{flag}" for flag in known)
    offered = said("known are %(flags)s", flags=flags) if known else said("this plugin takes none")
    if not argument.startswith("-") or argument in ("-", "--"):
        return Fault(index, said("is no flag: write --flag=value; %(offered)s", offered=offered))
    if not name:
        return Fault(index, said("is no flag: a name stands behind one or two dashes; %(offered)s", offered=offered))
    return Fault(index, said("there is no argument --%(name)s: %(offered)s", name=name[:40], offered=offered), "unknown")


def _read(flag: Flag, text: str) -> Value | Fault:
    if isinstance(flag.default, bool):
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        return Fault(0, said("--%(name)s is true or false", name=flag.name))
    if isinstance(flag.default, str):
        return text
    if not _WHOLE.fullmatch(text):
        return Fault(0, said("--%(name)s must be a whole number", name=flag.name), "type")
    bare = text.replace("_", "")
    old = _OLD_OCTAL.fullmatch(bare)
    number = int(old[1] + old[2], 8) if old else int(bare, 0)
    if not -(2**63) <= number < 2**63:
        return Fault(0, said("--%(name)s is beyond 64 bits", name=flag.name), "range")
    if flag.is_port and not 0 < number <= HIGHEST_PORT:
        return Fault(0, said("--%(name)s must be a port, 1 to %(highest)s", name=flag.name, highest=HIGHEST_PORT), "range")
    return number
