"""The overview: is the fleet used, who uses it, what needs me? What it shows, gathered in a constant number of queries."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cluster import queries as fleet_queries
from cluster import runtime
from cluster.access import policy
from cluster.display import short_model
from jobs.choices import job_mark
from jobs.models import Job
from jobs.reasons import stage_label
from jobs.rows import JOB_FIELDS
from jobs.summary import line
from portal import attention, demand, figures
from queues import history as queue_history
from queues import queries as queue_queries
from queues.colours import categories
from queues.models import Queue

RANGES = {"1h": gettext_lazy("1 h"), "24h": gettext_lazy("24 h"), "7d": gettext_lazy("7 d")}
CELLS = 1200
"""GPUs that the small map draws one by one; a larger fleet is drawn a bar a rack."""


def context(user: Any, window: str) -> dict[str, Any]:
    """Everything that the page shows; `window` is a key of RANGES."""
    present = runtime.now()
    fleet = fleet_queries.fleet(user)
    queues = queue_queries.queues(user)
    capacity = queue_queries.capacity()
    gpu = queue_queries.main_gpu(capacity)
    branches = queue_queries.tree(queues, [gpu], capacity)
    leaves = [branch for branch in branches if not branch.parent and branch.queue.name != queue_queries.ROOT]
    names = [branch.queue.name for branch in leaves]
    named = list(categories(queues))
    others = [name for name in names if name not in named]
    history = queue_history.shares_over_time(named, others, gpu, queue_history.WINDOWS[window], present)
    shown = figures.headline(user, fleet)
    return {
        "figures": shown,
        "window": window,
        "ranges": list(RANGES.items()),
        "branches": sorted(leaves, key=lambda branch: (-branch.bars[0].request, branch.queue.name))[:9],
        "history": history,
        "chart": history.as_json()
        | {"queues": names, "gpu": gpu, "capacity": shown.gpus_total, "asked": demand.asked_over_time(user, history.times)},
        "spines": _spines(fleet),
        "is_small": fleet.total <= CELLS,
        "is_empty": not policy().visible(user, Job.objects.all()).exists(),
        "may_start": policy().may(user, "workload.start"),
        **_lists(user, fleet, queues),
    }


def side(user: Any) -> dict[str, Any]:
    """What the page renews by itself: what needs attention, why jobs wait, what has finished."""
    return _lists(user, fleet_queries.fleet(user), queue_queries.queues(user))


def _lists(user: Any, fleet: fleet_queries.Fleet, queues: list[Queue]) -> dict[str, Any]:
    held = figures.held_at(user)
    return {
        "attention": attention.entries(user, fleet, queues, runtime.now()),
        "held": [(stage_label(stage) if stage else _("Not judged yet"), stage, jobs, gpus) for stage, jobs, gpus in held],
        "held_total": sum(jobs for _stage, jobs, _gpus in held),
        "held_most": max((jobs for _stage, jobs, _gpus in held), default=1),
        "finished": _finished(user),
    }


def _spines(fleet: fleet_queries.Fleet) -> list[dict[str, Any]]:
    """The fleet by spine, then rack, for the small map; machines whose rack nobody knows are put together by model."""
    spines: dict[str, dict[str, list[fleet_queries.Strip]]] = {}
    for strip in fleet.strips:
        spines.setdefault(strip.node.spine, {}).setdefault(strip.node.rack or short_model(strip.node.gpu_model), []).append(strip)
    return [
        {
            "name": name,
            "racks": [
                {"name": rack, "strips": strips, "used": sum(s.used for s in strips), "total": sum(len(s.cells) for s in strips)}
                for rack, strips in racks.items()
            ],
            "free": sum(strip.free for strips in racks.values() for strip in strips),
            "total": sum(len(strip.cells) for strips in racks.values() for strip in strips),
        }
        for name, racks in spines.items()
    ]


def _finished(user: Any) -> list[Job]:
    jobs = policy().visible(user, Job.objects.filter(finished_at__isnull=False))
    found = list(jobs.only(*JOB_FIELDS, "deleted_at").order_by("-finished_at")[:8])
    for job in found:
        job.mark = job_mark(job.phase, job.group_phase)  # type: ignore[attr-defined]
        job.line = line(job)  # type: ignore[attr-defined]
    return found
