"""The pages of GPUs in words: states, colourings, and what the heatmap's script says."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

MODES = ("state", "load", "memory", "queue", "job", "user", "model")
"""What the heatmap may be coloured by."""


def states() -> dict[str, str]:
    """States of GPUs, in the order of legends."""
    return {
        "allocated": _("Allocated"),
        "shared": _("Shared"),
        "idle": _("Idle"),
        "free": _("Free"),
        "reserved": _("Reserved"),
        "releasing": _("Releasing"),
        "unhealthy": _("Unhealthy"),
        "cordoned": _("Cordoned"),
        "not_ready": _("Not ready"),
        "unknown": _("No data"),
    }


def meanings() -> dict[str, str]:
    """What each state means, in one sentence."""
    return {
        "allocated": _("One pod holds the whole GPU."),
        "shared": _("Pods hold parts of its memory."),
        "idle": _("A pod holds it, and its measured load is 0 %."),
        "free": _("A pod can have it now."),
        "reserved": _("A waiting pod is to have it once others on this node have ended."),
        "releasing": _("Its pod is ending."),
        "unhealthy": _("Its node reports it as unhealthy: no pod gets it."),
        "cordoned": _("Its node takes no new pods."),
        "not_ready": _("Its node says that it is not ready."),
        "unknown": _("Its node is silent: what it does is not known."),
    }


def modes() -> list[tuple[str, str]]:
    """Colourings with their words."""
    words = {
        "state": _("State"),
        "load": _("Load"),
        "memory": _("Memory"),
        "queue": _("Queue"),
        "job": _("Job"),
        "user": _("User"),
        "model": _("Model"),
    }
    return [(mode, words[mode]) for mode in MODES]


def heatmap() -> dict[str, Any]:
    """What the heatmap's script says."""
    return {
        "states": states(),
        "meanings": meanings(),
        "noSpine": _("No spine"),
        "noRack": _("No rack"),
        "rack": _("rack %(name)s"),
        "spineFree": _("%(free)s of %(total)s free"),
        "whole": _("whole nodes free: %(count)s"),
        "noWhole": _("no whole node free"),
        "full": _("full"),
        "free": _("%(count)s free"),
        "others": _("others"),
        "lighter": _("pale: free"),
        "outlined": _("outlined: free"),
        "unmeasured": _("not measured"),
        "idle": _("No GPU is in use."),
        "noLoad": _("Nobody measures the load of these GPUs."),
        "cell": _("%(node)s, GPU %(gpu)s"),
        "inUse": _("in use"),
        "pods": _("%(state)s, %(count)s pods"),
        "state": _("State"),
        "since": _("Since"),
        "sinceLong": _("for %(time)s"),
        "job": _("Job"),
        "task": _("Task"),
        "queue": _("Queue"),
        "user": _("User"),
        "model": _("Model"),
        "memory": _("Memory"),
        "load": _("Load"),
        "share": _("Share"),
        "cause": _("Cause"),
        "promised": _("%(held)s of %(all)s promised"),
        "used": _("%(used)s used"),
        "over": _("Its pods claim more than the card has; their parts are drawn smaller."),
        "more": _("and %(count)s more"),
        "various": _("various"),
        "shown": _("%(count)s of %(total)s GPUs shown"),
        "ofJob": _("%(job)s · GPUs: %(gpus)s · nodes: %(nodes)s"),
        "cordoned": _("cordoned"),
        "draining": _("draining"),
        "notReady": _("not ready"),
        "unknown": _("no data"),
        "none": _("No GPU matches"),
    }
