"""Names of what a verdict counts: stages on a job's way, causes that rule nodes out, rules that spare pods."""

from __future__ import annotations

from django.utils.translation import gettext as _

from cluster.display import resource_name, spaced
from jobs.reasons import supplies
from scheduler.framework.explain import Spared, Stage


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
        "node_lock": _("Giving cards to another pod"),
        "numa_policy": _("Another NUMA policy, or none"),
        "numa_cpus": _("No CPUs free as the NUMA policy wants them"),
        "extender": _("Ruled out by an extender"),
        "proportion": _("Would leave too little beside a scarce resource"),
        "usage": _("Measured to be too busy"),
        "node_group": _("Not in a node group of the queue"),
        "spread": _("Spreading rules it out"),
        "pod_affinity": _("Affinity to other pods rules it out"),
        **supplies.causes(),
    }
    return labels.get(cause, cause)


def spared_label(rule: str) -> str:
    """Why a pod does not have to give way, in words; an unknown rule keeps its name."""
    deserved = _("Its queue holds no more than it deserves")
    labels = {
        Spared.NOT_PREEMPTABLE: _("Says it is not preemptable"),
        Spared.NOT_RECLAIMABLE: _("Its queue is not reclaimed from"),
        Spared.HIGHER_PRIORITY: _("Of higher priority"),
        Spared.ASKS_NOTHING: _("Asks for something, which this job does not"),
        Spared.TOO_LITTLE: _("Might go, but that makes too little room"),
        Spared.NO_RULE: _("No rule lets it go"),
        "gang": _("Its gang needs it"),
        "priority": _("Of no lower priority"),
        "conformance": _("Keeps the cluster alive"),
        "drf": _("Its job has no larger share"),
        "proportion": deserved,
        "capacity": deserved,
        "pdb": _("Protected by a disruption budget"),
        "cdp": _("Placed a short while ago"),
        "tdm": _("Runs where nothing is lent"),
        "extender": _("Kept by an extender"),
    }
    return labels.get(rule, rule)
