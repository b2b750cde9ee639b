"""The scheduler's page: the configuration in force, what is wrong with a newer version of it, and where its cycles go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from cluster.access import policy
from portal.models import Cycle, SchedulerConfiguration
from scheduler import conf
from scheduler.conf import Arguments, ConfError, Configuration, PluginOption

SHOWN = 40
"""Cycles in the table; the newest."""
SECRET = ("password", "passwd", "token", "secret", "credential")
AROUND = 2
"""Lines shown before and after one that is wrong."""


@dataclass(frozen=True, slots=True)
class Part:
    """A plugin or an action: its name, its switches that are not as usual, and its arguments as `(name, value)`."""

    name: str
    switches: Sequence[tuple[str, bool]] = ()
    arguments: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Wrong:
    """One fault of the version that is not used, with its line and those around it as `(number, text, is it this one)`."""

    line: int
    message: str
    lines: Sequence[tuple[int, str, bool]] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One cycle with its actions as `(name, milliseconds, percent of the longest cycle shown, number of its colour)`."""

    cycle: Cycle
    parts: Sequence[tuple[str, float, float, int]]


def scheduler(request: HttpRequest) -> HttpResponse:
    """The whole page; parts of it ask for it again by themselves."""
    if not policy().may(request.user, "scheduler.view"):
        raise PermissionDenied
    row = SchedulerConfiguration.objects.first()
    loaded, outdated = _load(row)
    cycles = list(Cycle.objects.all()[:SHOWN])
    names = _names(cycles, loaded)
    may_read = policy().may(request.user, "scheduler.source")
    context = {
        "conf": row if settings.BASALT_SCHEDULER else None,
        "is_elsewhere": not settings.BASALT_SCHEDULER,
        "outdated": outdated,
        "actions": [_action(loaded, name) for name in loaded.actions] if loaded else [],
        "tiers": [[_plugin(option) for option in tier] for tier in loaded.tiers] if loaded else [],
        "faults": [_wrong(fault, row.broken if may_read else "") for fault in row.faults] if row else [],
        "text": row.text.splitlines() if row and may_read else [],
        "names": [(name, index % 6 + 1) for index, name in enumerate(names)],
        "turns": _turns(cycles, names),
        "times": _times(cycles),
    }
    return render(request, "portal/scheduler.html", context)


def _load(row: SchedulerConfiguration | None) -> tuple[Configuration | None, str]:
    """The configuration as its parts; and why it cannot be read, when another version of Basalt wrote it."""
    if row is None:
        return None, ""
    try:
        return conf.load(row.text), ""
    except ConfError as error:
        return None, str(error)


def _action(loaded: Configuration, name: str) -> Part:
    return Part(name, (), _arguments(loaded.arguments.get(name)))


def _plugin(option: PluginOption) -> Part:
    switches = [(name, on) for name, on in option.switches.items() if on != conf.SWITCHES[name]]
    return Part(option.name, switches, _arguments(option.arguments))


def _arguments(arguments: Arguments | None) -> list[tuple[str, str]]:
    """As they are written; what looks like a secret is not shown to anybody."""
    found = [(key, arguments.value(key, "")) for key in arguments.keys()] if arguments is not None else []  # noqa: SIM118
    return [(key, "•••" if any(word in key.lower() for word in SECRET) else _written(value)) for key, value in found]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _wrong(fault: dict[str, Any], text: str) -> Wrong:
    line, lines = int(fault.get("line") or 0), text.splitlines()
    first = max(line - 1 - AROUND, 0)
    around = [(number, lines[number - 1], number == line) for number in range(first + 1, min(line + AROUND, len(lines)) + 1)]
    return Wrong(line, str(fault.get("message") or ""), around if line else ())


def _names(cycles: Sequence[Cycle], loaded: Configuration | None) -> list[str]:
    """Actions in the order of the configuration, then those that only older cycles had."""
    first = loaded.actions if loaded else ()
    return list(dict.fromkeys([*first, *(name for cycle in cycles for name in cycle.actions)]))


def _turns(cycles: Sequence[Cycle], names: Sequence[str]) -> list[Turn]:
    longest = max((cycle.milliseconds for cycle in cycles), default=0.0) or 1.0
    return [
        Turn(
            cycle,
            [
                (name, float(cycle.actions[name]), 100 * float(cycle.actions[name]) / longest, index % 6 + 1)
                for index, name in enumerate(names)
                if name in cycle.actions
            ],
        )
        for cycle in cycles
    ]


def _times(cycles: Sequence[Cycle]) -> dict[str, float]:
    """Milliseconds of the last cycle, of one in the middle, and of the longest; none without cycles."""
    spent = [cycle.milliseconds for cycle in cycles]
    return {"last": spent[0], "median": median(spent), "longest": max(spent)} if spent else {}
