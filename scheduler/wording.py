"""Verdicts in one short English line, for events and conditions that kubectl shows. Pages have their own, in two languages."""

from __future__ import annotations

import re

from cluster.objects import format_units
from cluster.quantities import BYTES
from cluster.said import said, sayable
from scheduler.framework.explain import Code, Spared, Stage, Verdict

_CAUSES = {
    "selector": sayable("node(s) didn't match the node selector"),
    "affinity": sayable("node(s) didn't match the node affinity"),
    "taint": sayable("node(s) had an untolerated taint"),
    "cordoned": sayable("node(s) were cordoned"),
    "not_ready": sayable("node(s) were not ready"),
    "pod_count": sayable("node(s) had no room for another pod"),
    "ports": sayable("node(s) had the host port taken"),
    "gpu_cards": sayable("node(s) had no shared card with room"),
    "numa_policy": sayable("node(s) had another NUMA policy, or none"),
    "numa_cpus": sayable("node(s) had no CPUs free as the NUMA policy wants them"),
    "extender": sayable("node(s) were ruled out by an extender"),
    "node_lock": sayable("node(s) were giving cards to another pod"),
    "gpu_slots": sayable("node(s) had too few healthy GPUs free"),
    "pod_affinity": sayable("node(s) didn't match the pod affinity"),
    "proportion": sayable("node(s) would keep too little cpu or memory beside what is scarce there"),
    "usage": sayable("node(s) were measured to be too busy"),
    "node_group": sayable("node(s) didn't belong to a group of the queue, or the queue was at its limit there"),
    "revocable_zone": sayable("node(s) are lent at other hours, or not to pods that must run on"),
    "spread": sayable("node(s) broke a topology spread constraint"),
    "volume_in_use": sayable("node(s) would share a volume claim that one pod alone may use"),
    "volume_limit": sayable("node(s) have as many volumes attached as they take"),
    "volume_zone": sayable("node(s) are in another zone than the volume"),
    "volume_node": sayable("node(s) cannot reach the volume"),
    "volume_capacity": sayable("node(s) have too little storage left for the volume"),
    "volume_bind": sayable("node(s) have no volume for the claim, and none can be made for them"),
    "devices": sayable("node(s) have not the devices that are claimed"),
}

_SPARED = {
    Spared.NOT_PREEMPTABLE: sayable("say that they are not preemptable"),
    Spared.NOT_RECLAIMABLE: sayable("are of queues that are not reclaimed from"),
    Spared.HIGHER_PRIORITY: sayable("are of higher priority"),
    Spared.ASKS_NOTHING: sayable("ask for something, which this pod does not"),
    Spared.TOO_LITTLE: sayable("might go without making enough room"),
    Spared.NO_RULE: sayable("fall under no rule"),
    "gang": sayable("are needed by their gangs"),
    "priority": sayable("are of no lower priority"),
    "conformance": sayable("keep the cluster alive"),
    "drf": sayable("are of jobs with no larger share"),
    "proportion": sayable("are of queues that hold no more than they deserve"),
    "capacity": sayable("are of queues that hold no more than they deserve"),
    "pdb": sayable("are protected by a disruption budget"),
    "cdp": sayable("were placed a short while ago"),
    "tdm": sayable("are not lent out"),
    "extender": sayable("are kept by an extender"),
}
"""Why pods stay, by the rule that spares them."""


_SAYS = {
    Code.QUEUE_MISSING: sayable("queue %(queue)s does not exist"),
    Code.QUEUE_CLOSED: sayable("queue %(queue)s is closed to new work"),
    Code.QUEUE_CYCLE: sayable("nothing is scheduled: queue %(queue)s is its own ancestor"),
    Code.QUEUE_NOT_LEAF: sayable("nothing is scheduled: queue %(queue)s has queues below it, and jobs of its own"),
    Code.QUEUE_BROKEN: sayable("queue %(queue)s places nothing: its %(resource)s cannot be read"),
    Code.QUEUE_CAPABILITY: sayable("queue %(queue)s is at its limit: %(asks)s"),
    Code.QUEUE_DESERVED: sayable("queue %(queue)s is at its share: %(asks)s"),
    Code.RESOURCE_QUOTA: sayable("a resource quota of the namespace is used up: %(asks)s"),
    Code.OVERCOMMIT: sayable("the cluster has admitted as much as it may: %(asks)s"),
    Code.POD_TOO_LARGE: sayable("a pod asks %(asked)s %(resource)s, and the largest node has %(limit)s"),
    Code.GANG_TOO_FEW_PODS: sayable("%(placeable)s of the needed %(needed)s pods exist"),
    Code.GATED: sayable("a scheduling gate holds the pods"),
    Code.NODES_NONE: sayable("there are no nodes"),
    Code.RELEASING: sayable("room is kept until pods that are ending have left it"),
    Code.TOPOLOGY_OUTSIDE: sayable("its pods run in %(domain)s, above the allowed tier %(tier)s: the others may go nowhere"),
    Code.VOLUME_MISSING: sayable("persistent volume claim %(resource)s does not exist"),
    Code.VOLUME_UNBOUND: sayable("persistent volume claim %(resource)s is not bound yet, and waits for no pod"),
    Code.VOLUME_LOST: sayable("persistent volume claim %(resource)s has lost its volume"),
    Code.VOLUME_LEAVING: sayable("persistent volume claim %(resource)s is being deleted"),
    Code.VOLUME_FOREIGN: sayable("persistent volume claim %(resource)s was not made for this pod"),
    Code.DEVICE_CLAIM_MISSING: sayable("resource claim %(resource)s does not exist yet"),
    Code.DEVICE_CLAIM_LEAVING: sayable("resource claim %(resource)s is being deleted"),
    Code.DEVICE_CLAIM_FOREIGN: sayable("resource claim %(resource)s was not made for this pod"),
    Code.DEVICE_CLASS_MISSING: sayable("device class %(resource)s does not exist"),
    Code.DEVICE_SELECTOR: sayable("no device of class %(resource)s is what the claim selects"),
    Code.DEVICES_INSUFFICIENT: sayable("asks %(asked)s devices of class %(resource)s, the best node has %(free)s free"),
    Code.DEVICE_QUOTA: sayable("queue %(queue)s is at its limit of devices: %(asks)s"),
}
"""What says itself by its numbers; `asks` is what is asked, left and allowed."""
_NAMES = re.compile(r"%\((\w+)\)")


def describe(verdict: Verdict) -> str:
    """Why a gang or a pod waits."""
    match verdict.code:
        case Code.QUEUE_PARENT_MISSING if verdict.queue == "root":
            return said("nothing is scheduled: there is no queue root")
        case Code.QUEUE_PARENT_MISSING:
            return said("nothing is scheduled: the parent of queue %(queue)s does not exist", queue=verdict.queue)
        case Code.QUEUE_OVERUSED if verdict.resource:
            return said(
                "queue %(queue)s holds all that it deserves of %(resource)s", queue=verdict.queue, resource=verdict.resource
            )
        case Code.QUEUE_OVERUSED:
            return said("queue %(queue)s holds all that it deserves", queue=verdict.queue)
        case Code.EXTENDER if verdict.stage is Stage.QUEUE_LIMIT:
            return said("an extender of the scheduler holds back its queue")
        case Code.EXTENDER:
            return said("an extender of the scheduler holds back this job")
        case Code.TOPOLOGY_NO_DOMAIN:
            return _domains(verdict)
        case Code.NO_VICTIMS:
            return said(
                "%(nodes)s; no eviction makes room: %(candidates)s pods were looked at, %(kept)s",
                nodes=_nodes(verdict),
                candidates=verdict.candidates,
                kept=[_counted(count, _SPARED.get(rule, rule)) for rule, count in sorted(verdict.spared.items())],
            )
    template = _SAYS.get(verdict.code)
    return _nodes(verdict) if template is None else said(template, **_facts(verdict, template))


def _facts(verdict: Verdict, template: str) -> dict[str, object]:
    """The values that a template names."""
    found: dict[str, object] = {}
    for name in _NAMES.findall(template):
        if name == "asks":
            found[name] = _asks(verdict)
        else:
            value = getattr(verdict, name)
            found[name] = _amount(verdict, value) if name in ("asked", "free", "limit") else value
    return found


def _counted(count: int, what: str) -> str:
    return said("%(count)s %(what)s", count=count, what=said(what))


def _nodes(verdict: Verdict) -> str:
    """As Kubernetes says it: nodes by the cause that refuses them."""
    if not verdict.rejected:
        what = _asks(verdict) if verdict.resource else said("no node takes the next one")
    else:
        causes = [_cause(count, cause) for cause, count in sorted(verdict.rejected.items())]
        what = said("0/%(nodes)s nodes are available: %(causes)s", nodes=verdict.nodes, causes=causes)
    if not verdict.placeable:
        return what
    return said(
        "%(placeable)s of the needed %(needed)s pods have room; %(what)s",
        placeable=verdict.placeable, needed=verdict.needed, what=what,
    )  # fmt: skip


def _domains(verdict: Verdict) -> str:
    """The network domain that has most room, and what it lacks."""
    if not verdict.domain:
        return said("no network domain of tier %(tier)s or below may take it", tier=verdict.tier)
    room = said(
        "%(placeable)s of the needed %(needed)s pods have room in %(domain)s, the best domain up to tier %(tier)s, "
        "with %(nodes)s nodes",
        placeable=verdict.placeable, needed=verdict.needed, domain=verdict.domain, tier=verdict.tier, nodes=verdict.nodes,
    )  # fmt: skip
    return said("%(room)s; the next %(asks)s", room=room, asks=_asks(verdict)) if verdict.resource else room


def _cause(count: int, cause: str) -> str:
    if cause.startswith("insufficient:"):
        return said("%(count)s Insufficient %(resource)s", count=count, resource=cause.removeprefix("insufficient:"))
    return _counted(count, _CAUSES.get(cause, cause))


def _asks(verdict: Verdict) -> str:
    if not verdict.resource:
        return said("nothing is left")
    facts: dict[str, object] = {
        "asked": _amount(verdict, verdict.asked), "resource": verdict.resource, "left": _amount(verdict, max(verdict.free, 0)),
    }  # fmt: skip
    if verdict.limit:
        return said("asks %(asked)s %(resource)s, %(left)s of %(limit)s left", **facts, limit=_amount(verdict, verdict.limit))
    return said("asks %(asked)s %(resource)s, %(left)s left", **facts)


def _amount(verdict: Verdict, units: int) -> str:
    """Exact where that is short; else with at most three decimals: `500m`, `184.4`, `64Gi`, `1.172Ti`."""
    exact = format_units(verdict.resource, units)
    if exact.endswith("m") and units >= 1000:
        return f"{units / 1000:.3f}".rstrip("0")
    if verdict.resource in BYTES and len(exact) > 7:
        power = min((units.bit_length() - 1) // 10, 5)
        return f"{units / 1024**power:.3f}".rstrip("0").rstrip(".") + f"{'KMGTP'[power - 1]}i"
    return exact
