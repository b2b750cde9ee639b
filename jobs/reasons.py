"""Why a job waits, in words: a verdict's code and numbers become sentences in the reader's language.

A verdict is data (`scheduler.framework.explain.Verdict.as_dict()`); nothing else in Basalt words it. Unknown codes, as an
older or newer scheduler may write them, are said by the stage alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import amount, number, quantity, resource_name, short_model, spaced
from cluster.quantities import is_gpu
from jobs import held
from scheduler.framework.explain import Code, Stage

Verdict = Mapping[str, Any]


def say(verdict: Verdict | None, model: str = "") -> str:
    """One line in the active language; `model` names the GPUs that are asked."""
    if not verdict:
        return ""
    form = _SHORT.get(verdict.get("code", ""))
    places = _places(verdict, model)
    return spaced((form(verdict) if form else _("Held at: %(stage)s")) % places)


def headline(verdict: Verdict, model: str = "") -> tuple[str, str]:
    """The job page's answer: what is the matter, and what is missing (empty when nothing can be counted)."""
    form = _LONG.get(verdict.get("code", "")) or _SHORT.get(verdict.get("code", ""))
    places = _places(verdict, model)
    statement = spaced((form(verdict) if form else _("Held at: %(stage)s")) % places)
    if not statement.endswith((".", "。")):
        statement = _("%(statement)s.") % {"statement": statement}
    if is_impossible(verdict):
        return statement, _("It can never start as the queue stands.") if _beyond_queue(verdict) else _("It can never start.")
    if not verdict.get("short") or verdict.get("code") == Code.RELEASING:
        return statement, ""
    short = _("The best node is short by %(short)s.") if _is_of_a_node(verdict) else _("Short by %(short)s.")
    return statement, spaced(short % places)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the sum "asked − free = short", with its unit in the label; `key` is the verdict's."""

    key: str
    value: str
    label: str


def numbers(verdict: Verdict, model: str = "") -> list[Figure]:
    """Asked, what there is of it, and short, in this order; none when the verdict counts no resource."""
    resource = verdict.get("resource", "")
    if not resource or not verdict.get("asked") or not verdict.get("short"):
        return []
    what = {"resource": short_model(model) if model and is_gpu(resource) else resource_name(resource)}
    if is_impossible(verdict):  # what is free does not matter: the sum is with what there is at most
        verdict = {**verdict, "short": verdict["asked"] - verdict.get("limit", 0)}
    if _beyond_queue(verdict):
        labels = {"asked": _("%(resource)s asked") % what, "limit": _("the queue's limit"), "short": _("short")}
    elif is_impossible(verdict):
        labels = {"asked": _("%(resource)s for one pod") % what, "limit": _("on the largest node"), "short": _("short")}
    elif _is_of_a_node(verdict):
        labels = {"asked": _("%(resource)s for one pod") % what, "free": _("free on the best node"), "short": _("short")}
    else:
        labels = {"asked": _("%(resource)s asked") % what, "free": _("free for it"), "short": _("short")}
    return [Figure(key, _bare(verdict.get(key, 0), resource), label) for key, label in labels.items()]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage on the way to a start: `status` is ok, held, or empty for one that was not reached."""

    stage: str
    label: str
    status: str


def steps(verdict: Verdict) -> list[Step]:
    """The stages in the order in which this job meets them, up to and beyond the one that holds it."""
    order = [Stage.DEPENDENCY, Stage.ADMISSION, Stage.QUEUE_LIMIT, Stage.NODE_FIT, Stage.TOPOLOGY, Stage.GANG]
    held = verdict.get("stage", "")
    if verdict.get("code") == Code.GANG_TOO_FEW_PODS:  # pods that do not exist are missed before anything else is asked
        order = [Stage.DEPENDENCY, Stage.GANG, *[s for s in order[1:] if s is not Stage.GANG]]
    if held == Stage.PREEMPTION:
        order.append(Stage.PREEMPTION)
    at = order.index(Stage(held)) if held in order else 0
    return [Step(s.value, stage_label(s), "ok" if i < at else "held" if i == at else "") for i, s in enumerate(order)]


@dataclass(frozen=True, slots=True)
class Rejection:
    """How many nodes one cause ruled out; `share` is a part of the largest, for the bar."""

    count: int
    label: str
    cause: str
    share: float

    @property
    def is_room(self) -> bool:
        """Room may come by itself; other causes stay until somebody changes something."""
        return self.cause.startswith("insufficient:") or self.cause in ("gpu_slots", "gpu_cards", "pod_count", "ports")


def rejections(verdict: Verdict) -> list[Rejection]:
    """Nodes by cause, most first."""
    rejected = _by_count(verdict)
    most = max((count for _cause, count in rejected), default=1) or 1
    return [Rejection(count, cause_label(cause), cause, count / most) for cause, count in rejected]


def _by_count(verdict: Verdict) -> list[tuple[str, int]]:
    return sorted((verdict.get("rejected") or {}).items(), key=lambda item: (-item[1], item[0]))


def stage_label(stage: str) -> str:
    """A stage in words; an unknown one keeps its name."""
    labels = {
        Stage.DEPENDENCY: _("Dependency"),
        Stage.ADMISSION: _("Admission"),
        Stage.QUEUE_LIMIT: _("Queue limit"),
        Stage.GANG: _("Gang"),
        Stage.NODE_FIT: _("Node fit"),
        Stage.TOPOLOGY: _("Topology"),
        Stage.PREEMPTION: _("Preemption"),
    }
    return labels.get(stage, stage)  # type: ignore[call-overload]


def cause_label(cause: str) -> str:
    """Why a node was ruled out, in words."""
    if cause.startswith("insufficient:"):
        return spaced(_("Too little %(resource)s free") % {"resource": resource_name(cause.partition(":")[2])})
    labels = {
        "selector": _("Labels do not match the selector"),
        "affinity": _("Affinity rules it out"),
        "taint": _("Taint not tolerated"),
        "cordoned": _("Cordoned"),
        "not_ready": _("Not ready"),
        "pod_count": _("Full of pods"),
        "ports": _("Host port in use"),
        "gpu_slots": _("No GPU free enough"),
        "gpu_cards": _("No shared GPU has room"),
        "volume_claim": _("Volume claim does not exist"),
        "proportion": _("Would leave too little beside a scarce resource"),
        "usage": _("Measured to be too busy"),
        "node_group": _("Not in a node group of the queue"),
        "spread": _("Spreading rules it out"),
        "pod_affinity": _("Affinity to other pods rules it out"),
    }
    return labels.get(cause, cause)


def advice(verdict: Verdict, model: str = "") -> str:
    """The one thing to do about it; empty for codes that Basalt does not know."""
    form = _ADVICE.get(verdict.get("code", ""))
    return spaced(form(verdict) % _places(verdict, model)) if form else ""


def is_impossible(verdict: Verdict | None) -> bool:
    """Whether no amount of waiting helps."""
    return bool(verdict) and (verdict.get("code") in (Code.POD_TOO_LARGE, Code.QUEUE_MISSING) or _beyond_queue(verdict))


def _beyond_queue(verdict: Verdict) -> bool:
    """Whether more is asked than the queue may ever use, however empty it is."""
    return verdict.get("code") == Code.QUEUE_CAPABILITY and int(verdict.get("asked") or 0) > int(verdict.get("limit", 1 << 63))


def _is_of_a_node(verdict: Verdict) -> bool:
    """Whether the amounts are of one pod on one node; else they are of the job in its queue or cluster."""
    return verdict.get("code") in (
        Code.NODES_INSUFFICIENT,
        Code.GANG_INCOMPLETE,
        Code.RELEASING,
        Code.TOPOLOGY_NO_DOMAIN,
    )


def _bare(units: int, resource: str) -> str:
    text, unit = amount(units, resource)
    return f"{text} {unit}" if unit else text


def _places(verdict: Verdict, model: str) -> dict[str, str]:
    """The values for the places of a sentence; amounts carry what they are amounts of, except `…_bare`."""
    resource = verdict.get("resource", "")
    used = max(0, verdict.get("limit", 0) - verdict.get("free", 0))
    places = {
        "stage": stage_label(verdict.get("stage", "")),
        "queue": verdict.get("queue", ""),
        "task": verdict.get("task", ""),
        "domain": verdict.get("domain", ""),
        "plugin": verdict.get("plugin", ""),
        "kind": verdict.get("kind", ""),
        "object": verdict.get("object", ""),
        "resource": resource_name(resource),
        "cause": next((cause_label(cause) for cause, _count in _by_count(verdict)), ""),
        "used_bare": _bare(used, resource),
        "free_bare": _bare(verdict.get("free", 0), resource),
        "limit_bare": _bare(verdict.get("limit", 0), resource),
    }
    for key in ("asked", "free", "short"):
        places[key] = quantity(verdict.get(key, 0), resource, model)
    places["limit"] = quantity(verdict.get("limit", 0), resource)  # a queue's limit counts GPUs of every model
    for key in ("needed", "placeable", "nodes", "tier"):
        places[key] = number(verdict.get(key, 0))
    return places


def _is_gang(verdict: Verdict) -> bool:
    return int(verdict.get("needed") or 0) > 1


def _short_of_nodes(verdict: Verdict) -> str:
    """`asked`, `free` and `short` are of one pod and of the node that has most."""
    if not verdict.get("short"):
        return _("%(placeable)s of %(needed)s pods fit") if _is_gang(verdict) else _("No node has all that its pod asks")
    if _is_gang(verdict):
        return _("%(placeable)s of %(needed)s pods fit; the next asks %(asked)s, the best node has %(free_bare)s")
    return _("Its pod asks %(asked)s, the best node has %(free_bare)s free")


def _needs_nodes(verdict: Verdict) -> str:
    if _is_gang(verdict):
        return _("Needs room for %(needed)s pods at once; %(placeable)s fit now.")
    return _("Needs %(asked)s on one node.") if verdict.get("short") else _("No node has all that its pod asks.")


def _refused(verdict: Verdict) -> str:
    if "volume_claim" in (verdict.get("rejected") or {}):
        return _("Volume claim %(resource)s does not exist")
    if not verdict.get("rejected"):
        return ngettext("The only node refuses it", "All %(nodes)s nodes refuse it", int(verdict.get("nodes") or 0))
    return _("No node takes it. Most common cause: %(cause)s")


def _too_large(verdict: Verdict) -> str:
    if not verdict.get("short"):
        return _("Impossible: no node has all that a pod asks")
    return _("Impossible: a pod asks %(asked)s, the largest node has %(limit_bare)s")


def _far_too_large(verdict: Verdict) -> str:
    if not verdict.get("short"):
        return _("One pod asks more than any single node has, taken together.")
    return _("One pod asks %(asked)s, and the largest node has %(limit_bare)s.")


def _overused(verdict: Verdict) -> str:
    if not verdict.get("limit"):
        return _("Queue %(queue)s has used up its share")
    return _("Queue share used up: %(used_bare)s of %(limit)s")


def _at_limit(verdict: Verdict) -> str:
    if _beyond_queue(verdict):
        return _("Impossible: asks %(asked)s, queue %(queue)s may use %(limit_bare)s at most")
    return _("Queue limit: %(used_bare)s of %(limit)s used")


def _far_at_limit(verdict: Verdict) -> str:
    if not _beyond_queue(verdict):
        return _("Queue %(queue)s may use %(limit)s at most and uses %(used_bare)s; this job asks %(asked)s.")
    if verdict.get("stage") == Stage.ADMISSION:
        return _("This job asks %(asked)s, and queue %(queue)s may use %(limit_bare)s at most.")
    return _("One pod asks %(asked)s, and queue %(queue)s may use %(limit_bare)s at most.")


def _mend_limit(verdict: Verdict) -> str:
    if _beyond_queue(verdict):
        return _("Ask for less, take another queue, or ask an administrator to raise the limit of %(queue)s.")
    return _("Wait until jobs in %(queue)s end, ask for less, or take another queue.")


def _no_domain(verdict: Verdict) -> str:
    """`needed` and `placeable` are of the domain that has most room."""
    if not verdict.get("domain"):
        return _("No network domain of tier %(tier)s or below takes it")
    return _("%(placeable)s of %(needed)s pods fit into network domain %(domain)s, the best up to tier %(tier)s")


def _far_no_domain(verdict: Verdict) -> str:
    if not verdict.get("domain"):
        return _("Its pods must be near each other, in one network domain of tier %(tier)s at most; none takes them.")
    return _(
        "Its pods must be near each other, in one network domain of tier %(tier)s at most; "
        "the best, %(domain)s, has room for %(placeable)s of %(needed)s."
    )


def _releasing(verdict: Verdict) -> str:
    return (
        _("Waits for %(asked)s that others are releasing")
        if verdict.get("asked")
        else _("Waits for room that others are releasing")
    )


def _far_releasing(verdict: Verdict) -> str:
    if verdict.get("asked"):
        return _("Enough is being released: %(asked)s. It starts when the pods there have stopped.")
    return _("Enough is being released. It starts when the pods there have stopped.")


_Form = Callable[[Verdict], str]
_SHORT: dict[str, _Form] = {
    **held.SHORT,
    Code.QUEUE_MISSING: lambda v: _("Queue %(queue)s does not exist"),
    Code.QUEUE_CLOSED: lambda v: _("Queue %(queue)s is closed"),
    Code.QUEUE_CYCLE: lambda v: _("Nothing is scheduled: queue %(queue)s is its own ancestor"),
    Code.QUEUE_PARENT_MISSING: lambda v: _("Nothing is scheduled: queue %(queue)s or its parent is missing"),
    Code.QUEUE_NOT_LEAF: lambda v: _("Nothing is scheduled: queue %(queue)s has jobs and queues below it"),
    Code.QUEUE_CAPABILITY: _at_limit,
    Code.QUEUE_DESERVED: lambda v: _("Queue share: %(used_bare)s of %(limit)s used"),
    Code.QUEUE_OVERUSED: _overused,
    Code.QUEUE_BROKEN: lambda v: _("Queue %(queue)s places nothing: its %(resource)s cannot be read"),
    Code.RESOURCE_QUOTA: lambda v: _("Resource quota of the namespace: %(used_bare)s of %(limit)s used"),
    Code.OVERCOMMIT: lambda v: _("Admission: asks %(asked)s, room for %(free_bare)s"),
    Code.GANG_TOO_FEW_PODS: lambda v: _("%(placeable)s of %(needed)s pods of the gang exist"),
    Code.GANG_INCOMPLETE: _short_of_nodes,
    Code.NODES_INSUFFICIENT: _short_of_nodes,
    Code.NODES_REFUSED: _refused,
    Code.NODES_NONE: lambda v: _("There is no node"),
    Code.POD_TOO_LARGE: _too_large,
    Code.RELEASING: _releasing,
    Code.GATED: lambda v: _("Its pods carry scheduling gates"),
    Code.TOPOLOGY_NO_DOMAIN: _no_domain,
    Code.TOPOLOGY_OUTSIDE: lambda v: _("Its pods run in %(domain)s, above the allowed tier %(tier)s"),
}
_LONG: dict[str, _Form] = {
    **held.LONG,
    Code.QUEUE_CAPABILITY: _far_at_limit,
    Code.QUEUE_DESERVED: lambda v: _("Queue %(queue)s deserves %(limit)s and uses %(used_bare)s; this job asks %(asked)s."),
    Code.QUEUE_OVERUSED: lambda v: _("Queue %(queue)s has used all that it deserves; other queues come first."),
    Code.OVERCOMMIT: lambda v: _("The job asks %(asked)s; only %(free)s can be admitted now."),
    Code.GANG_TOO_FEW_PODS: lambda v: _("A gang needs %(needed)s pods; only %(placeable)s exist."),
    Code.GANG_INCOMPLETE: _needs_nodes,
    Code.NODES_INSUFFICIENT: _needs_nodes,
    Code.POD_TOO_LARGE: _far_too_large,
    Code.RELEASING: _far_releasing,
    Code.TOPOLOGY_NO_DOMAIN: _far_no_domain,
    Code.TOPOLOGY_OUTSIDE: lambda v: _(
        "Its running pods are as far apart as %(domain)s reaches, above the allowed tier %(tier)s; the others may go nowhere."
    ),
}
_ADVICE: dict[str, _Form] = {
    **held.ADVICE,
    Code.QUEUE_MISSING: lambda v: _("Submit it to a queue that exists, or ask an administrator to make %(queue)s."),
    Code.QUEUE_CLOSED: lambda v: _("Submit it to an open queue, or ask an administrator to open %(queue)s."),
    Code.QUEUE_CYCLE: lambda v: _("Ask an administrator to give queue %(queue)s another parent."),
    Code.QUEUE_PARENT_MISSING: lambda v: _("Ask an administrator to make the parent of queue %(queue)s, or to give it another."),
    Code.QUEUE_NOT_LEAF: lambda v: _("Move the jobs of queue %(queue)s into a queue below it."),
    Code.QUEUE_CAPABILITY: _mend_limit,
    Code.QUEUE_DESERVED: lambda v: _("Wait until jobs in %(queue)s end, ask for less, or take another queue."),
    Code.QUEUE_OVERUSED: lambda v: _("Wait until jobs in %(queue)s end, or take another queue."),
    Code.QUEUE_BROKEN: lambda v: _("Ask an administrator to mend queue %(queue)s."),
    Code.RESOURCE_QUOTA: lambda v: _("Wait until jobs in the namespace end, ask for less, or take another namespace."),
    Code.OVERCOMMIT: lambda v: _("Wait until running jobs end, or ask for %(free)s at most."),
    Code.GANG_TOO_FEW_PODS: lambda v: _("Look at the job's events: something keeps pods from being made."),
    Code.GANG_INCOMPLETE: lambda v: _("Wait for room, lower the minimum, or ask for less in each pod."),
    Code.NODES_INSUFFICIENT: lambda v: _("Wait for room, lower the minimum, or ask for less in each pod."),
    Code.NODES_REFUSED: lambda v: _("Compare the job's selector and tolerations with the nodes' labels and taints."),
    Code.NODES_NONE: lambda v: _("Ask an administrator to add nodes."),
    Code.POD_TOO_LARGE: lambda v: _("Ask for less in each pod, and use more pods."),
    Code.RELEASING: lambda v: _("Nothing to do: it starts by itself."),
    Code.GATED: lambda v: _("Remove the scheduling gates when the job may start."),
    Code.TOPOLOGY_NO_DOMAIN: lambda v: _("Wait for room in one domain, allow a higher tier, or ask for less."),
    Code.TOPOLOGY_OUTSIDE: lambda v: _("Restart the job, so that its pods are placed together, or allow a higher tier."),
}
