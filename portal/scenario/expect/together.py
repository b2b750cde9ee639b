"""Several expectations at once."""

from __future__ import annotations

from typing import Any

from portal.scenario.expect.base import check, misses
from portal.scenario.world import World


@check
def one_of(world: World, value: list[dict[str, Any]]) -> list[str]:
    """At least one holds."""
    found = [misses(world, each) for each in value]
    return [] if not all(found) else [f"none of {len(found)} holds: {' | '.join('; '.join(each) for each in found)}"]


@check
def exactly_one_of(world: World, value: list[dict[str, Any]]) -> list[str]:
    """One and only one holds."""
    found = [misses(world, each) for each in value]
    holding = sum(not each for each in found)
    return [] if holding == 1 else [f"{holding} of {len(found)} hold: {' | '.join('; '.join(each) for each in found)}"]


@check
def never(world: World, value: dict[str, Any]) -> list[str]:
    """It was watched at every moment; `World.happened` says when it held."""
    when = world.happened.get(id(value))
    return [f"never {value}: it held at {when}"] if when else []
