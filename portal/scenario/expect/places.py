"""Where pods are."""

from __future__ import annotations

from typing import Any

from cluster import objects
from cluster.embedded.machines import GPU
from cluster.kinds import POD
from portal.scenario.expect.base import check, compare, holding, in_span, sets, spec
from portal.scenario.world import World


@check
def on_node(world: World, value: dict[str, str]) -> list[str]:
    """The node of a pod."""
    return compare("node of", value, lambda name: spec(world, POD, name).get("nodeName", ""))


@check
def nodes_used(world: World, value: dict[str, list[str]]) -> list[str]:
    """The nodes of a job's running pods."""
    return sets("nodes of", value, lambda name: [pod["spec"]["nodeName"] for pod in world.running(name)])


@check
def domains_used(world: World, value: dict[str, dict[str, int]]) -> list[str]:
    """On how many hypernodes of a tier a job's running pods sit."""
    found = []
    for job, words in value.items():
        nodes = {pod["spec"]["nodeName"] for pod in world.running(job)}
        domains = [
            name
            for name, each in world.domains.items()
            if each["tier"] == words["tier"] and nodes.intersection(world.nodes_below(name))
        ]
        found += in_span(f"domains of tier {words['tier']} that {job} uses", words, len(domains))
    return found


@check
def gpu_used_per_node(world: World, value: Any) -> list[str]:
    """GPUs that pods hold on every node."""
    used = dict.fromkeys(world.node_words, 0)
    for pod in holding(world):
        node = pod["spec"]["nodeName"]
        used[node] = used.get(node, 0) + objects.pod_requests(pod["spec"]).get(GPU, 0) // 1000
    return [miss for node, count in used.items() for miss in in_span(f"GPUs used on {node}", value, count)]
