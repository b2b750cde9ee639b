"""Verdicts in one short English line, for events and conditions that kubectl shows. Pages have their own, in two languages."""

from __future__ import annotations

from cluster.objects import format_units
from cluster.quantities import BYTES
from scheduler.framework.explain import Code, Spared, Stage, Verdict

_CAUSES = {
    "selector": "node(s) didn't match the node selector",
    "affinity": "node(s) didn't match the node affinity",
    "taint": "node(s) had an untolerated taint",
    "cordoned": "node(s) were cordoned",
    "not_ready": "node(s) were not ready",
    "pod_count": "node(s) had no room for another pod",
    "ports": "node(s) had the host port taken",
    "gpu_cards": "node(s) had no shared card with room",
    "numa_policy": "node(s) had another NUMA policy, or none",
    "numa_cpus": "node(s) had no CPUs free as the NUMA policy wants them",
    "extender": "node(s) were ruled out by an extender",
    "node_lock": "node(s) were giving cards to another pod",
    "gpu_slots": "node(s) had too few healthy GPUs free",
    "pod_affinity": "node(s) didn't match the pod affinity",
    "proportion": "node(s) would keep too little cpu or memory beside what is scarce there",
    "usage": "node(s) were measured to be too busy",
    "node_group": "node(s) didn't belong to a group of the queue, or the queue was at its limit there",
    "revocable_zone": "node(s) are lent at other hours, or not to pods that must run on",
    "spread": "node(s) broke a topology spread constraint",
    "volume_in_use": "node(s) would share a volume claim that one pod alone may use",
    "volume_limit": "node(s) have as many volumes attached as they take",
    "volume_zone": "node(s) are in another zone than the volume",
    "volume_node": "node(s) cannot reach the volume",
    "volume_capacity": "node(s) have too little storage left for the volume",
    "volume_bind": "node(s) have no volume for the claim, and none can be made for them",
    "devices": "node(s) have not the devices that are claimed",
}

_SPARED = {
    Spared.NOT_PREEMPTABLE: "say that they are not preemptable",
    Spared.NOT_RECLAIMABLE: "are of queues that are not reclaimed from",
    Spared.HIGHER_PRIORITY: "are of higher priority",
    Spared.ASKS_NOTHING: "ask for something, which this pod does not",
    Spared.TOO_LITTLE: "might go without making enough room",
    Spared.NO_RULE: "fall under no rule",
    "gang": "are needed by their gangs",
    "priority": "are of no lower priority",
    "conformance": "keep the cluster alive",
    "drf": "are of jobs with no larger share",
    "proportion": "are of queues that hold no more than they deserve",
    "capacity": "are of queues that hold no more than they deserve",
    "pdb": "are protected by a disruption budget",
    "cdp": "were placed a short while ago",
    "tdm": "are not lent out",
    "extender": "are kept by an extender",
}
"""Why pods stay, by the rule that spares them."""


_SAYS = {
    Code.QUEUE_MISSING: "queue {queue} does not exist",
    Code.QUEUE_CLOSED: "queue {queue} is closed to new work",
    Code.QUEUE_CYCLE: "nothing is scheduled: queue {queue} is its own ancestor",
    Code.QUEUE_NOT_LEAF: "nothing is scheduled: queue {queue} has queues below it, and jobs of its own",
    Code.QUEUE_BROKEN: "queue {queue} places nothing: its {resource} cannot be read",
    Code.QUEUE_CAPABILITY: "queue {queue} is at its limit: {asks}",
    Code.QUEUE_DESERVED: "queue {queue} is at its share: {asks}",
    Code.RESOURCE_QUOTA: "a resource quota of the namespace is used up: {asks}",
    Code.OVERCOMMIT: "the cluster has admitted as much as it may: {asks}",
    Code.POD_TOO_LARGE: "a pod asks {asked} {resource}, and the largest node has {limit}",
    Code.GANG_TOO_FEW_PODS: "{placeable} of the needed {needed} pods exist",
    Code.GATED: "a scheduling gate holds the pods",
    Code.NODES_NONE: "there are no nodes",
    Code.RELEASING: "room is kept until pods that are ending have left it",
    Code.TOPOLOGY_OUTSIDE: "its pods run in {domain}, above the allowed tier {tier}: the others may go nowhere",
    Code.VOLUME_MISSING: "persistent volume claim {resource} does not exist",
    Code.VOLUME_UNBOUND: "persistent volume claim {resource} is not bound yet, and waits for no pod",
    Code.VOLUME_LOST: "persistent volume claim {resource} has lost its volume",
    Code.VOLUME_LEAVING: "persistent volume claim {resource} is being deleted",
    Code.VOLUME_FOREIGN: "persistent volume claim {resource} was not made for this pod",
    Code.DEVICE_CLAIM_MISSING: "resource claim {resource} does not exist yet",
    Code.DEVICE_CLAIM_LEAVING: "resource claim {resource} is being deleted",
    Code.DEVICE_CLAIM_FOREIGN: "resource claim {resource} was not made for this pod",
    Code.DEVICE_CLASS_MISSING: "device class {resource} does not exist",
    Code.DEVICE_SELECTOR: "no device of class {resource} is what the claim selects",
    Code.DEVICES_INSUFFICIENT: "asks {asked} devices of class {resource}, the best node has {free} free",
    Code.DEVICE_QUOTA: "queue {queue} is at its limit of devices: {asks}",
}
"""What says itself by its numbers; `asks` is what is asked, left and allowed."""


def describe(verdict: Verdict) -> str:
    """Why a gang or a pod waits."""
    match verdict.code:
        case Code.QUEUE_PARENT_MISSING:
            return f"nothing is scheduled: {_without_parent(verdict.queue)}"
        case Code.QUEUE_OVERUSED:
            return f"queue {verdict.queue} holds all that it deserves{_of(verdict)}"
        case Code.EXTENDER:
            held = "its queue" if verdict.stage is Stage.QUEUE_LIMIT else "this job"
            return f"an extender of the scheduler holds back {held}"
        case Code.TOPOLOGY_NO_DOMAIN:
            return _domains(verdict)
        case Code.NO_VICTIMS:
            kept = ", ".join(f"{count} {_SPARED.get(rule, rule)}" for rule, count in sorted(verdict.spared.items()))
            return f"{_nodes(verdict)}; no eviction makes room: {verdict.candidates} pods were looked at, {kept}"
    said = _SAYS.get(verdict.code)
    return _nodes(verdict) if said is None else said.format_map(_facts(verdict))


def _facts(verdict: Verdict) -> dict[str, object]:
    amounts = {name: _amount(verdict, getattr(verdict, name)) for name in ("asked", "free", "limit")}
    names = ("queue", "resource", "placeable", "needed", "domain", "tier")
    return {**{name: getattr(verdict, name) for name in names}, **amounts, "asks": _asks(verdict)}


def _without_parent(queue: str) -> str:
    return "there is no queue root" if queue == "root" else f"the parent of queue {queue} does not exist"


def _nodes(verdict: Verdict) -> str:
    """As Kubernetes says it: nodes by the cause that refuses them."""
    start = f"{verdict.placeable} of the needed {verdict.needed} pods have room; " if verdict.placeable else ""
    if not verdict.rejected:
        return start + (_asks(verdict) if verdict.resource else "no node takes the next one")
    causes = [f"{count} {_cause(cause)}" for cause, count in sorted(verdict.rejected.items())]
    return f"{start}0/{verdict.nodes} nodes are available: {', '.join(causes)}"


def _domains(verdict: Verdict) -> str:
    """The network domain that has most room, and what it lacks."""
    if not verdict.domain:
        return f"no network domain of tier {verdict.tier} or below may take it"
    room = f"{verdict.placeable} of the needed {verdict.needed} pods have room"
    where = f"in {verdict.domain}, the best domain up to tier {verdict.tier}, with {verdict.nodes} nodes"
    return f"{room} {where}" + (f"; the next {_asks(verdict)}" if verdict.resource else "")


def _cause(cause: str) -> str:
    if cause.startswith("insufficient:"):
        return f"Insufficient {cause.removeprefix('insufficient:')}"
    return _CAUSES.get(cause, cause)


def _asks(verdict: Verdict) -> str:
    if not verdict.resource:
        return "nothing is left"
    left, limit = _amount(verdict, max(verdict.free, 0)), _amount(verdict, verdict.limit)
    of = f" of {limit}" if verdict.limit else ""
    return f"asks {_amount(verdict, verdict.asked)} {verdict.resource}, {left}{of} left"


def _of(verdict: Verdict) -> str:
    return f" of {verdict.resource}" if verdict.resource else ""


def _amount(verdict: Verdict, units: int) -> str:
    """Exact where that is short; else with at most three decimals: `500m`, `184.4`, `64Gi`, `1.172Ti`."""
    exact = format_units(verdict.resource, units)
    if exact.endswith("m") and units >= 1000:
        return f"{units / 1000:.3f}".rstrip("0")
    if verdict.resource in BYTES and len(exact) > 7:
        power = min((units.bit_length() - 1) // 10, 5)
        return f"{units / 1024**power:.3f}".rstrip("0").rstrip(".") + f"{'KMGTP'[power - 1]}i"
    return exact
