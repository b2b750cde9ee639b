"""Actions and plugins in words: what each does, in a few of them."""

from __future__ import annotations

from django.utils.translation import gettext as _


def does(name: str) -> str:
    """What an action or a plugin does; empty for one that is not ours."""
    return _actions().get(name) or _plugins().get(name) or ""


def _actions() -> dict[str, str]:
    return {
        "enqueue": _("admits waiting jobs to their queues"),
        "allocate": _("gives admitted jobs nodes, all or nothing"),
        "backfill": _("places pods that ask for nothing"),
        "preempt": _("makes room within a queue"),
        "reclaim": _("gives queues back what they deserve"),
        "gangpreempt": _("makes room for a whole gang within a queue"),
        "gangreclaim": _("gives queues back what they deserve, gang by gang"),
        "shuffle": _("moves pods that should run elsewhere"),
    }


def _plugins() -> dict[str, str]:
    return {
        "binpack": _("scores full nodes higher"),
        "capacity": _("what queues deserve, as given"),
        "cdp": _("leaves new pods alone for a while"),
        "conformance": _("spares what the cluster needs"),
        "deviceshare": _("cards that pods share"),
        "drf": _("fair shares between jobs"),
        "extender": _("asks another program"),
        "gang": _("all or nothing"),
        "gputopology": _("whole GPUs that are linked well"),
        "network-topology-aware": _("gangs close together in the network"),
        "nodegroup": _("queues keep to their nodes"),
        "nodeorder": _("scores nodes"),
        "numa-aware": _("CPUs of one NUMA node"),
        "overcommit": _("how much is admitted"),
        "pdb": _("disruption budgets"),
        "predicates": _("which nodes a pod may run on"),
        "priority": _("higher priority first"),
        "proportion": _("what queues deserve, by weight"),
        "rescheduling": _("relieves busy nodes"),
        "resource-strategy-fit": _("fills and spreads by resource"),
        "resourcequota": _("quotas of namespaces"),
        "sla": _("admits who waited too long"),
        "task-topology": _("roles of a job near or apart"),
        "tdm": _("nodes lent by the hour"),
        "usage": _("keeps off measured busy nodes"),
        "core": _("order, journal, binds and statuses"),
    }


def phase(name: str) -> str:
    """A column of a cycle's time: the session's opening and closing, else an action's name."""
    known = {"open": _("opening"), "close": _("closing"), "others": _("other plugins"), "core": _("core")}
    return known.get(name, name)


def band(name: str, by: str) -> str:
    """A band of the chart: by action, what is around the actions."""
    return _("opening and closing") if by == "action" and name == "core" else phase(name)
