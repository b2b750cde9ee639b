"""Shared cards of nodes, in the words of Volcano's device plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from portal.metrics.base import MOST_OBJECTS, gauges
from scheduler.model.devices import REGISTER, registered
from scheduler.model.nodes import NodeTable

CARD, HELD = ("devID", "NodeName"), ("devID", "NodeName", "podName")


def families(nodes: NodeTable) -> Iterator[Metric]:
    """What of each card is there and given away, and to whom. Instances of a MIG card count for the card."""
    limit: dict[tuple[str, ...], float] = {}
    tallies: tuple[Counter[tuple[str, ...]], ...] = tuple(Counter() for _ in range(5))
    shared, memory, cores, pod_memory, pod_cores = tallies
    for name, row in list(nodes.index.items()):
        node = nodes.objects[row]
        if not node or REGISTER not in ((node.get("metadata") or {}).get("annotations") or {}):
            continue
        try:
            _, found = registered(node)
        except ValueError:
            continue  # told as an object that was set aside
        for card in found[: MOST_OBJECTS - len(limit)]:
            limit[card.uuid, name] = card.memory
        for task in list(nodes.tasks[row].values()):
            for use in task.cards:
                key = (use.card.partition("[")[0], name)
                if key not in limit:
                    continue
                shared[key] += 1
                memory[key] += use.memory
                cores[key] += use.cores
                pod_memory[*key, task.name] += use.memory
                pod_cores[*key, task.name] += use.cores
    of = "volcano_vgpu_device"

    def of_cards(tally: Counter[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
        return {key: tally[key] for key in limit}

    yield gauges(f"{of}_memory_limit", "MiB of a card", CARD, limit)
    yield gauges(f"{of}_shared_number", "Parts of a card that are given away", CARD, of_cards(shared))
    yield gauges(f"{of}_allocated_memory", "MiB of a card that are given away", CARD, of_cards(memory))
    yield gauges(f"{of}_allocated_cores", "Percent of a card's cores that are given away", CARD, of_cards(cores))
    yield gauges(f"{of}_memory_allocation_for_a_certain_pod", "MiB of a card that a pod has", HELD, pod_memory)
    yield gauges(f"{of}_core_allocation_for_a_certain_pod", "Percent of a card's cores that a pod has", HELD, pod_cores)
