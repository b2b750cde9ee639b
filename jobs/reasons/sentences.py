"""A form of words for each code of a verdict: one line, the job page's statement, and what to do.

Forms have places for the verdict's numbers (`%(asked)s`); who uses them fills these in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import spaced
from cluster.quantities import is_gpu
from jobs import elsewhere, held
from jobs.reasons import supplies
from scheduler.framework.explain import Code, Stage

Verdict = Mapping[str, Any]
Form = Callable[[Verdict], str]


def is_impossible(verdict: Verdict | None) -> bool:
    """Whether no amount of waiting helps."""
    return bool(verdict) and (
        verdict.get("code") in (Code.POD_TOO_LARGE, Code.QUEUE_MISSING) or beyond_queue(verdict) or beyond_cluster(verdict)
    )


def beyond_queue(verdict: Verdict) -> bool:
    """Whether more is asked than the queue may ever use, however empty it is."""
    return verdict.get("code") == Code.QUEUE_CAPABILITY and _above_limit(verdict)


def beyond_cluster(verdict: Verdict) -> bool:
    """Whether more is asked than would be admitted to the cluster, however empty it is."""
    return verdict.get("code") == Code.OVERCOMMIT and _above_limit(verdict)


def _above_limit(verdict: Verdict) -> bool:
    return int(verdict.get("asked") or 0) > int(verdict.get("limit", 1 << 63))


def is_gang(verdict: Verdict) -> bool:
    """Whether several pods are needed at once."""
    return int(verdict.get("needed") or 0) > 1


def _short_of_nodes(verdict: Verdict) -> str:
    """`asked`, `free` and `short` are of one pod and of the node that has most."""
    if not verdict.get("short"):
        return _("%(placeable)s of %(needed)s pods fit") if is_gang(verdict) else _("No node has all that its pod asks")
    if is_gang(verdict):
        return _("%(placeable)s of %(needed)s pods fit; the next asks %(asked)s, the best node has %(free_bare)s")
    return _("Its pod asks %(asked)s, the best node has %(free_bare)s free")


def _needs_nodes(verdict: Verdict) -> str:
    if is_gang(verdict):
        return _("Needs room for %(needed)s pods at once; %(placeable)s fit now.")
    return _("Needs %(asked)s on one node.") if verdict.get("short") else _("No node has all that its pod asks.")


def _refused(verdict: Verdict) -> str:
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
    if beyond_queue(verdict):
        return _("Impossible: asks %(asked)s, queue %(queue)s may use %(limit_bare)s at most")
    return _("Queue limit: asks %(asked)s, %(free_bare)s of %(limit_bare)s left")


def _far_at_limit(verdict: Verdict) -> str:
    if not beyond_queue(verdict):
        return _("Queue %(queue)s may use %(limit)s at most and uses %(used_bare)s; this job asks %(asked)s.")
    if verdict.get("stage") == Stage.ADMISSION:
        return _("This job asks %(asked)s, and queue %(queue)s may use %(limit_bare)s at most.")
    return _("One pod asks %(asked)s, and queue %(queue)s may use %(limit_bare)s at most.")


def _mend_limit(verdict: Verdict) -> str:
    if beyond_queue(verdict):
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


def _no_victims(verdict: Verdict) -> str:
    vain = ngettext(
        "no eviction helps (1 pod in reach)",
        "no eviction helps (%(candidates)s pods in reach)",
        int(verdict.get("candidates") or 0),
    )
    return _("%(first)s; %(second)s") % {"first": _short_of_nodes(verdict), "second": vain}


def _far_no_victims(verdict: Verdict) -> str:
    vain = ngettext(
        "It may drive others out, but the only pod in its reach stays.",
        "It may drive others out, but no eviction among the %(candidates)s pods in its reach makes enough room.",
        int(verdict.get("candidates") or 0),
    )
    return spaced(f"{_needs_nodes(verdict)} {vain}")


SHORT: dict[str, Form] = {
    **supplies.SHORT,
    **held.SHORT,
    **elsewhere.SHORT,
    Code.QUEUE_MISSING: lambda v: _("Queue %(queue)s does not exist"),
    Code.QUEUE_CLOSED: lambda v: _("Queue %(queue)s is closed"),
    Code.QUEUE_CYCLE: lambda v: _("Nothing is scheduled: queue %(queue)s is its own ancestor"),
    Code.QUEUE_PARENT_MISSING: lambda v: _("Nothing is scheduled: queue %(queue)s or its parent is missing"),
    Code.QUEUE_NOT_LEAF: lambda v: _("Nothing is scheduled: queue %(queue)s has jobs and queues below it"),
    Code.QUEUE_CAPABILITY: _at_limit,
    Code.QUEUE_DESERVED: lambda v: _("Queue share: asks %(asked)s, %(free_bare)s of %(limit_bare)s left"),
    Code.QUEUE_OVERUSED: _overused,
    Code.QUEUE_BROKEN: lambda v: _("Queue %(queue)s places nothing: its %(resource)s cannot be read"),
    Code.RESOURCE_QUOTA: lambda v: _("Resource quota of the namespace: asks %(asked)s, %(free_bare)s of %(limit_bare)s left"),
    Code.EXTENDER: lambda v: _("Held by an extender of the scheduler"),
    Code.OVERCOMMIT: lambda v: (
        _("Impossible: asks %(asked)s, the cluster admits %(limit_bare)s at most")
        if beyond_cluster(v)
        else _("Admission: asks %(asked)s, room for %(free_bare)s")
    ),
    Code.GANG_TOO_FEW_PODS: lambda v: _("%(placeable)s of %(needed)s pods of the gang exist"),
    Code.GANG_INCOMPLETE: _short_of_nodes,
    Code.NODES_INSUFFICIENT: _short_of_nodes,
    Code.NODES_REFUSED: _refused,
    Code.NODES_NONE: lambda v: _("There is no node"),
    Code.POD_TOO_LARGE: _too_large,
    Code.NO_VICTIMS: _no_victims,
    Code.RELEASING: _releasing,
    Code.GATED: lambda v: _("Its pods carry scheduling gates"),
    Code.TOPOLOGY_NO_DOMAIN: _no_domain,
    Code.TOPOLOGY_OUTSIDE: lambda v: _("Its pods run in %(domain)s, above the allowed tier %(tier)s"),
}
LONG: dict[str, Form] = {
    **supplies.LONG,
    **held.LONG,
    **elsewhere.LONG,
    Code.QUEUE_CAPABILITY: _far_at_limit,
    Code.QUEUE_DESERVED: lambda v: _("Queue %(queue)s deserves %(limit)s, uses %(used_bare)s and is asked for %(asked)s more."),
    Code.QUEUE_OVERUSED: lambda v: _("Queue %(queue)s has used all that it deserves; other queues come first."),
    Code.OVERCOMMIT: lambda v: (
        _("This job asks %(asked)s, and the cluster admits %(limit_bare)s at most.")
        if beyond_cluster(v)
        else _("The job asks %(asked)s; only %(free)s can be admitted now.")
    ),
    Code.GANG_TOO_FEW_PODS: lambda v: _("A gang needs %(needed)s pods; only %(placeable)s exist."),
    Code.GANG_INCOMPLETE: _needs_nodes,
    Code.NODES_INSUFFICIENT: _needs_nodes,
    Code.POD_TOO_LARGE: _far_too_large,
    Code.NO_VICTIMS: _far_no_victims,
    Code.RELEASING: _far_releasing,
    Code.TOPOLOGY_NO_DOMAIN: _far_no_domain,
    Code.TOPOLOGY_OUTSIDE: lambda v: _(
        "Its running pods are as far apart as %(domain)s reaches, above the allowed tier %(tier)s; the others may go nowhere."
    ),
}
ADVICE: dict[str, Form] = {
    **supplies.ADVICE,
    **held.ADVICE,
    **elsewhere.ADVICE,
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
    Code.EXTENDER: lambda v: _("Ask an administrator what the extender looks at."),
    Code.OVERCOMMIT: lambda v: (
        _("Ask for less, lower the minimum, or ask an administrator to add nodes.")
        if beyond_cluster(v)
        else _("Wait until running jobs end, or ask for %(free)s at most.")
        if int(v.get("free") or 0) >= (1000 if is_gpu(v.get("resource", "")) else 1)
        else _("Wait until running jobs end.")
    ),
    Code.GANG_TOO_FEW_PODS: lambda v: _("Look at the job's events: something keeps pods from being made."),
    Code.GANG_INCOMPLETE: lambda v: _("Wait for room, lower the minimum, or ask for less in each pod."),
    Code.NODES_INSUFFICIENT: lambda v: _("Wait for room, lower the minimum, or ask for less in each pod."),
    Code.NODES_REFUSED: lambda v: _("Compare the job's selector and tolerations with the nodes' labels and taints."),
    Code.NODES_NONE: lambda v: _("Ask an administrator to add nodes."),
    Code.POD_TOO_LARGE: lambda v: _("Ask for less in each pod, and use more pods."),
    Code.NO_VICTIMS: lambda v: _("Wait for room, ask for less in each pod, or ask for a higher priority."),
    Code.RELEASING: lambda v: _("Nothing to do: it starts by itself."),
    Code.GATED: lambda v: _("Remove the scheduling gates when the job may start."),
    Code.TOPOLOGY_NO_DOMAIN: lambda v: _("Wait for room in one domain, allow a higher tier, or ask for less."),
    Code.TOPOLOGY_OUTSIDE: lambda v: _("Restart the job, so that its pods are placed together, or allow a higher tier."),
}
