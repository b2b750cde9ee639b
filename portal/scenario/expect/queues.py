"""Queues: their amounts and states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from cluster import objects
from cluster.kinds import JOB, QUEUE
from cluster.quantities import parse_quantity
from portal.scenario import objects as make
from portal.scenario.expect.base import TOLERANCE, check, compare, holding, spec
from portal.scenario.world import World
from queues.operations import state_of


@check
def deserved(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """As the scheduler computed it in the last cycle."""
    shares = world.record.queues if world.record else {}
    return _amounts("deserved", value, lambda name: dict(shares[name].deserved) if name in shares else {})


@check
def queue_allocated(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """What a queue's pods hold."""

    def held(name: str) -> dict[str, int]:
        total: Counter[str] = Counter()
        for pod in holding(world):
            if world.queue_of(pod) == name:
                total.update(objects.pod_requests(pod["spec"]))
        return dict(total)

    return _amounts("allocated", value, held)


@check
def queue_limit(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """A queue's own capability."""
    return _amounts("limit", value, lambda name: _limit(world, name))


@check
def effective_limit(world: World, value: dict[str, dict[str, str]]) -> list[str]:
    """The limit in force: of a queue and all above it the smallest."""

    def least(name: str) -> dict[str, int]:
        found: dict[str, int] = {}
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            for resource, units in _limit(world, name).items():
                found[resource] = min(units, found.get(resource, units))
            name = spec(world, QUEUE, name).get("parent", "")
        return found

    return _amounts("effective limit", value, least)


@check
def queue_state(world: World, value: dict[str, str]) -> list[str]:
    """Open, Closing or Closed."""
    return compare("state of queue", value, lambda name: str(state_of(world.find(QUEUE, name) or {})))


@check
def queue_weight(world: World, value: dict[str, int]) -> list[str]:
    """The weight of a queue."""
    return compare("weight of queue", value, lambda name: spec(world, QUEUE, name).get("weight"))


@check
def gone(world: World, value: dict[str, list[str]]) -> list[str]:
    """What existed and does not now."""
    found = []
    for word, kind in (("queues", QUEUE), ("jobs", JOB)):
        for name in value.get(word) or ():
            if world.find(kind, name) is not None:
                found.append(f"{kind.kind} {name} is there")
            elif name not in world.history.existed[kind]:
                found.append(f"{kind.kind} {name} never existed")
    return found


def _limit(world: World, name: str) -> dict[str, int]:
    return objects.resource_units(spec(world, QUEUE, name).get("capability"))


def _amounts(what: str, want: dict[str, dict[str, str]], seen: Callable[[str], dict[str, int]]) -> list[str]:
    """Amounts, compared on the resources that are named."""
    found = []
    for name, amounts in want.items():
        have = seen(name)
        for word, text in amounts.items():
            resource = make.resource_name(word)
            units, wanted = have.get(resource, 0), objects.to_units(resource, parse_quantity(text))
            if abs(units - wanted) > TOLERANCE * max(abs(units), abs(wanted)):
                said = objects.format_units(resource, units) if resource in have else "nothing"
                found.append(f"{what} {word} of queue {name}: {said}, not {text}")
    return found
