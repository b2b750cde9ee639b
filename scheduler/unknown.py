"""Arguments that no plugin or action asks for: Volcano takes them silently, and a mistyped one does nothing.

Which arguments there are is what plugins ask for when they are made, so that no list of names can fall behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from cluster.said import said
from scheduler.conf import Arguments, Configuration, Fault
from scheduler.framework import registry

LATER: dict[str, frozenset[str]] = {"predicates": frozenset({"volumebinding.bindTimeoutSeconds"})}
"""Arguments that others ask for on behalf of a plugin, beside what it asks for itself."""


def unknown_arguments(conf: Configuration) -> list[Fault]:
    """Each argument that does nothing, with its line and the one that was meant, if that can be told."""
    found = [fault for owner, make, arguments in _makers(conf) for fault in _of(owner, make, arguments)]
    return sorted(found, key=lambda fault: fault.line)


def _makers(conf: Configuration) -> Iterator[tuple[str, Any, Arguments]]:
    for option in conf.plugins():
        yield option.name, registry.plugins[option.name], option.arguments
    for name in conf.actions:
        yield name, registry.actions[name], conf.action_arguments(name)


def _of(owner: str, make: Any, given: Arguments) -> Iterator[Fault]:
    if not given.keys():
        return
    arguments = given.afresh()
    make(arguments)
    known = arguments.asked | LATER.get(owner, frozenset())
    for key in given.keys():  # noqa: SIM118 - not a mapping
        if key not in known:
            yield Fault(given.line(key), _does_nothing(owner, key, known))


def _does_nothing(owner: str, key: str, known: set[str]) -> str:
    if not known:
        return said("%(owner)s: argument %(key)s is unknown and does nothing; it has no arguments", owner=owner, key=key)
    if close := get_close_matches(key, sorted(known), 1, 0.6):
        asks = said("did you mean %(close)s?", close=close[0])
    else:
        asks = said("known are %(names)s", names=", ".join(sorted(known)))
    return said("%(owner)s: argument %(key)s is unknown and does nothing; %(asks)s", owner=owner, key=key, asks=asks)
