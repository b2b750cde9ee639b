"""The expectations by their words, and how what was seen is compared and said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cluster.kinds import Kind
from cluster.port import Obj
from portal.scenario.errors import NotSupported
from portal.scenario.world import World, phase_of

Check = Callable[[World, Any], list[str]]

CHECKS: dict[str, Check] = {}
"""By their words; those about pages are added by `pages`."""
TOLERANCE = 0.001


def check(function: Check) -> Check:
    """Decorator: the function's name is the expectation's word."""
    CHECKS[function.__name__] = function
    return function


def misses(world: World, expectations: Mapping[str, Any]) -> list[str]:
    """What of a mapping does not hold. Raises NotSupported for a word that is not built."""
    found: list[str] = []
    for word, value in expectations.items():
        if word not in CHECKS:
            raise NotSupported(word)
        found += CHECKS[word](world, value)
    return found


def differ(what: str, want: Any, seen: Any) -> list[str]:
    """One thing that must equal another."""
    return [] if want == seen else [f"{what}: {_said(seen)}, not {_said(want)}"]


def _said(value: Any) -> str:
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "nothing"


def compare(what: str, want: Mapping[str, Any], seen: Callable[[str], Any]) -> list[str]:
    """Things by name, each with what it must be."""
    return [miss for name, value in want.items() for miss in differ(f"{what} {name}", value, seen(name))]


def sets(what: str, want: Mapping[str, Iterable[str]], seen: Callable[[str], Iterable[str]]) -> list[str]:
    """The same for names in no order."""
    return compare(what, {name: set(value) for name, value in want.items()}, lambda name: set(seen(name)))


def in_span(what: str, span: Any, seen: float) -> list[str]:
    """A number that must lie in a range, or be exactly one."""
    low, high = (span.get("min"), span.get("max")) if isinstance(span, dict) else (span, span)
    if (low is None or seen >= low) and (high is None or seen <= high):
        return []
    return [f"{what}: {seen:g}, not {_range(low, high)}"]


def _range(low: Any, high: Any) -> str:
    if low == high:
        return str(low)
    return " and ".join(f"{word} {value}" for word, value in (("at least", low), ("at most", high)) if value is not None)


def status(world: World, kind: Kind, name: str) -> Obj:
    """An object's status; empty when there is none."""
    return dict((world.find(kind, name) or {}).get("status") or {})


def spec(world: World, kind: Kind, name: str) -> Obj:
    """An object's spec; empty when there is none."""
    return dict((world.find(kind, name) or {}).get("spec") or {})


def holding(world: World) -> list[Obj]:
    """Pods that hold room on a node."""
    return [pod for pod in world.pods() if pod["spec"].get("nodeName") and phase_of(pod) not in ("Succeeded", "Failed")]
