"""Cards that pods share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from cluster import objects
from cluster.port import Obj
from portal.scenario.expect.base import check, compare, differ, holding, in_span
from portal.scenario.world import World

_VGPU_IDS = "volcano.sh/vgpu-ids-new"


def _devices(pod: Obj) -> list[tuple[str, int, int]]:
    """(card, MiB, percent of its cores) of every device that a pod holds."""
    text = objects.annotations(pod).get(_VGPU_IDS, "")
    found = []
    for entry in re.split(r"[:;]", text):
        if entry:
            card, _kind, memory, cores = entry.split(",")
            found.append((card, int(memory), int(cores)))
    return found


def _per_card(world: World, amount: Callable[[int, int], int]) -> dict[str, int]:
    total = {
        f"{node}-card-{index}": 0
        for node, words in world.node_words.items()
        for index in range(sum(group["count"] for group in words.get("gpus") or ()))
    }
    for pod in holding(world):
        for card, memory, cores in _devices(pod):
            total[card] = total.get(card, 0) + amount(memory, cores)
    return total


def _every_card(what: str, world: World, span: Any, amount: Callable[[int, int], int]) -> list[str]:
    return [m for card, seen in _per_card(world, amount).items() for m in in_span(f"{what} of {card}", span, seen)]


@check
def memory_used_per_card(world: World, value: Any) -> list[str]:
    """MiB booked on every card."""
    return _every_card("MiB used", world, value, lambda memory, cores: memory)


@check
def cores_per_card(world: World, value: Any) -> list[str]:
    """Percent of cores booked on every card."""
    return _every_card("cores used", world, value, lambda memory, cores: cores)


@check
def pods_per_card(world: World, value: Any) -> list[str]:
    """Pods on every card."""
    cards: Counter[str] = Counter(card for pod in holding(world) for card in {card for card, _, _ in _devices(pod)})
    return [m for card in _per_card(world, lambda m, c: 0) for m in in_span(f"pods on {card}", value, cards[card])]


@check
def memory_booked_per_pod_mib(world: World, value: dict[str, int]) -> list[str]:
    """MiB on each card of each running pod of a job."""
    return [
        miss
        for job, wanted in value.items()
        for pod in world.running(job)
        for _, memory, _ in _devices(pod) or [("", 0, 0)]
        for miss in differ(f"MiB booked by {objects.name(pod)}", wanted, memory)
    ]


@check
def cards_used(world: World, value: dict[str, int]) -> list[str]:
    """Different cards that a job's pods hold."""
    return compare("cards of", value, lambda name: len({card for pod in world.running(name) for card, _, _ in _devices(pod)}))
