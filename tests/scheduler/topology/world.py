"""Network domains and gangs that ask for closeness, in a few words."""

from __future__ import annotations

from typing import Any

from cluster.port import Obj
from tests.scheduler.world import gang


def domain(
    name: str,
    tier: int,
    nodes: list[str] | None = None,
    *,
    domains: list[str] | None = None,
    members: list[Obj] | None = None,
    name_of_tier: str = "",
) -> Obj:
    """A HyperNode of these nodes and smaller domains."""
    exact = [("Node", member) for member in nodes or ()] + [("HyperNode", member) for member in domains or ()]
    found = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for kind, member in exact]
    spec = {"tier": tier, "tierName": name_of_tier, "members": [*found, *(members or ())]}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def close(name: str, replicas: int, least: int | None = None, topology: Any = None, **more: Any) -> list[Obj]:
    """A gang with a network topology; `tier` or `mode` may be said instead of one."""
    mode, tier = more.pop("mode", "hard"), more.pop("tier", None)
    policies = more.pop("policies", None)
    found = gang(name, replicas, least, **more)
    said = {"mode": mode, **({"highestTierAllowed": tier} if isinstance(tier, int) else {})}
    if isinstance(tier, str):
        said["highestTierName"] = tier
    if topology is not False:
        found[0]["spec"]["networkTopology"] = topology or said
    if policies:
        found[0]["spec"]["subGroupPolicy"] = policies
    return found
