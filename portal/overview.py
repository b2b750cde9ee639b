"""The overview: is the fleet used, who uses it, what needs me? What it shows, gathered in a constant number of queries."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cluster import compact, gpu_words, runtime
from cluster import queries as fleet_queries
from cluster.access import policy
from cluster.gpu_views import in_script
from jobs.models import Job
from jobs.reasons import stage_label
from portal import attention, demand, figures, happened
from portal.standing import standing
from queues import history as queue_history
from queues import queries as queue_queries
from queues.colours import categories
from queues.models import Queue

RANGES = {"1h": gettext_lazy("1 h"), "24h": gettext_lazy("24 h"), "7d": gettext_lazy("7 d")}
RECENT = 9
"""Lines of what happened last."""


def context(user: Any, window: str) -> dict[str, Any]:
    """Everything that the page shows; `window` is a key of RANGES."""
    present = runtime.now()
    fleet = fleet_queries.fleet(user)
    queues = queue_queries.queues(user)
    now = standing(user, fleet, queues)
    names = [line.queue.name for line in now.lines]
    named = list(categories(queues))
    others = [name for name in names if name not in named]
    history = queue_history.shares_over_time(named, others, now.gpu, queue_history.WINDOWS[window], present)
    text, digest = compact.encoded(fleet)
    return {
        "figures": now.figures,
        "window": window,
        "ranges": list(RANGES.items()),
        "lines": sorted(now.lines, key=lambda line: (-line.bar.request, line.queue.name))[:9],
        "history": history,
        "chart": history.as_json()
        | {
            "queues": names,
            "gpu": now.gpu,
            "capacity": now.figures.gpus_total,
            "asked": demand.asked_over_time(user, history.times),
        },
        "fleet": fleet,
        "fleet_data": in_script(text),
        "fleet_digest": digest,
        "fleet_words": gpu_words.heatmap(),
        "spines": _spines(fleet),
        "is_empty": not policy().visible(user, Job.objects.all()).exists(),
        "may_start": policy().may(user, "workload.start"),
        **_lists(user, fleet, queues, now.waits),
    }


def side(user: Any) -> dict[str, Any]:
    """What the page renews by itself: what needs attention, why jobs wait, what happened last."""
    return _lists(user, fleet_queries.fleet(user), queue_queries.queues(user), figures.waits(user))


def _lists(user: Any, fleet: fleet_queries.Fleet, queues: list[Queue], waits: list[figures.Wait]) -> dict[str, Any]:
    return {
        "attention": attention.entries(user, fleet, queues, runtime.now()),
        "has_machines": bool(fleet.strips),
        "recent": happened.newest(user, RECENT),
        **causes(waits),
    }


def causes(waits: list[figures.Wait]) -> dict[str, Any]:
    """Why jobs wait, for `portal/held.html`, in the language in force."""
    held = figures.held_at(waits)
    return {
        "held": [(*_stage(stage), jobs, gpus) for stage, jobs, gpus in held],
        "held_total": sum(jobs for _stage, jobs, _gpus in held),
        "held_most": max((jobs for _stage, jobs, _gpus in held), default=1),
    }


def _stage(stage: str) -> tuple[str, str]:
    """What is written for what jobs wait for, and the stage by which the list of jobs can be narrowed, if it can."""
    if stage == figures.STARTING:
        return _("Pods are starting"), ""
    return (stage_label(stage), stage) if stage else (_("Not judged yet"), "")


def _spines(fleet: fleet_queries.Fleet) -> list[tuple[str, int, int]]:
    """Each spine with its free GPUs and all, in words for who has no script."""
    found: dict[str, list[int]] = {}
    for strip in fleet.strips:
        counts = found.setdefault(strip.node.spine, [0, 0])
        counts[0] += strip.free
        counts[1] += len(strip.cells)
    return [(name, free, total) for name, (free, total) in found.items()]
