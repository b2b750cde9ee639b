"""Clusters written in lines, and one cycle over them: what Volcano's own unit tables say, in few words.

    node n1 cpu=3 memory=3G pods=10
    queue q1 weight=2 capability=cpu:4,memory:4G
    group pg1 q1 min=1 class=low
    pod a pg1 n1 cpu=1 memory=1G preemptable=false     # runs on n1
    pod b pg1 - cpu=1                                  # waits

Groups are admitted already unless they say `phase=Pending`; things are made in the order of the lines.
"""

from __future__ import annotations

from typing import Any

import yaml

from cluster.port import Obj
from scheduler.cycle import Cycle
from scheduler.snapshot import Offline, Snapshot
from tests.scheduler import world as make

CLASSES = {"high": 100_000, "mid": 500, "low": 10}


def conf(actions: str, *tiers: str, arguments: Any = None, **switches: dict[str, bool]) -> str:
    """Plugins by tier, with switches by plugin (`network_topology_aware` stands for `network-topology-aware`)."""
    options = [[{"name": name, **switches.get(name.replace("-", "_"), {})} for name in tier.split()] for tier in tiers]
    found: dict[str, Any] = {"actions": actions, "tiers": [{"plugins": plugins} for plugins in options]}
    if arguments:
        found["configurations"] = [{"name": name, "arguments": values} for name, values in arguments.items()]
    return yaml.safe_dump(found)


def cluster(text: str) -> list[Obj]:
    """The objects of some lines, priority classes among them."""
    made: list[Obj] = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in CLASSES.items()
    ]
    for second, line in enumerate(filter(None, (line.split("#")[0].strip() for line in text.splitlines()))):
        kind, *words = line.split()
        given = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        made.append(_MAKERS[kind](names, given, second))
    return made


def _amounts(text: str) -> dict[str, str]:
    return dict(part.split(":") for part in text.split(","))


def _node(names: list[str], given: dict[str, str], second: int) -> Obj:
    found = make.node(names[0], cpu=given.pop("cpu"), memory=given.pop("memory", "64G"), pods=int(given.pop("pods", "110")))
    found["metadata"]["labels"] |= {key: value for key, value in given.items() if key != "gpu"}
    if "gpu" in given:
        found["status"]["allocatable"]["nvidia.com/gpu"] = given["gpu"]
    return found


def _queue(names: list[str], given: dict[str, str], second: int) -> Obj:
    found = make.queue(names[0], int(given.get("weight", "1")))
    spec = found["spec"]
    for key in ("capability", "deserved"):
        if key in given:
            spec[key] = _amounts(given[key])
    if "guarantee" in given:
        spec["guarantee"] = {"resource": _amounts(given["guarantee"])}
    if "priority" in given:
        spec["priority"] = int(given["priority"])
    if "reclaimable" in given:
        spec["reclaimable"] = given["reclaimable"] == "true"
    found["metadata"]["creationTimestamp"] = make.created(second)
    found["status"]["state"] = given.get("state", "Open")
    return found


def _group(names: list[str], given: dict[str, str], second: int) -> Obj:
    found = make.group(names[0], int(given.get("min", "1")), queue=names[1], at=second)
    if "class" in given:
        found["spec"]["priorityClassName"] = given["class"]
    if "roles" in given:
        found["spec"]["minTaskMember"] = {role: int(least) for role, least in _amounts(given["roles"]).items()}
    if "needs" in given:
        found["spec"]["minResources"] = _amounts(given["needs"])
    if "topology" in given:
        mode, _, tier = given["topology"].partition(":")
        limit = {"highestTierAllowed": int(tier)} if tier.isdigit() else {"highestTierName": tier} if tier else {}
        found["spec"]["networkTopology"] = {"mode": mode, **limit}
    found["status"]["phase"] = given.get("phase", "Inqueue")
    return found


def _pod(names: list[str], given: dict[str, str], second: int) -> Obj:
    name, group, node = names
    asks: dict[str, object] = {key: given[key] for key in ("cpu", "memory", "gpu") if key in given}
    found = make.pod(group, given.get("role", ""), 0, asks)
    meta = found["metadata"]
    meta |= {"name": name, "uid": f"pod-{name}", "creationTimestamp": make.created(second)}
    if "preemptable" in given:
        meta["annotations"]["volcano.sh/preemptable"] = given["preemptable"]
    if "label" in given:
        meta["labels"] = dict([given["label"].split(":")])
    if "priority" in given:
        found["spec"]["priority"] = int(given["priority"])
    if "policy" in given:
        found["spec"]["preemptionPolicy"] = given["policy"]
    if "avoids" in given:
        key, _, value = given["avoids"].partition(":")
        term = {"labelSelector": {"matchLabels": {key: value}}, "topologyKey": "kubernetes.io/hostname"}
        found["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if "on" in given:
        key, _, value = given["on"].partition(":")
        found["spec"]["nodeSelector"] = {key: value}
    if node != "-":
        found["spec"]["nodeName"] = node
        found["status"]["phase"] = "Running"
    return found


def _domain(names: list[str], given: dict[str, str], second: int) -> Obj:
    members = [("HyperNode" if part.startswith("s") else "Node", part) for part in given["of"].split(",")]
    listed = [{"type": kind, "selector": {"exactMatch": {"name": name}}} for kind, name in members]
    spec = {"tier": int(given["tier"]), "tierName": given.get("called", ""), "members": listed}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": names[0]}, "spec": spec}


_MAKERS = {"node": _node, "queue": _queue, "group": _group, "pod": _pod, "domain": _domain}


def decide(text: str, configuration: str) -> Cycle:
    """One cycle over a cluster; what it decided is not carried out."""
    return Offline(Snapshot.of(cluster(text), configuration), now=1_893_456_000.0).decide()


def evicted(done: Cycle) -> list[str]:
    """Names of the pods that have to go."""
    return sorted(eviction.name for eviction in done.evictions)


def bound(done: Cycle) -> dict[str, str]:
    """Nodes by the names of the pods that got one."""
    return {binding.name: binding.node for binding in done.binds}
