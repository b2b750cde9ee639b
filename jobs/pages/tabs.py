"""What each tab of a job's page shows: a function a tab, which reads only what that tab needs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from cluster import runtime
from cluster.access import policy
from jobs import reasons
from jobs.choices import PodPhase, job_mark
from jobs.logs import page as logs
from jobs.made import in_force
from jobs.models import Job, LogTail, Pod
from jobs.pages import defaulted, lineage, queries, timeline, verdict, yamlview
from jobs.pages.facts import gather
from jobs.pages.lanes import sentence
from jobs.pages.lives import lives
from jobs.pages.podgrid import grid, is_large, overview
from jobs.pages.podmap import maps
from jobs.pages.taskgraph import graph
from jobs.pages.usage import used
from jobs.topology import tab as placement

Context = dict[str, Any]


def _overview(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    present, large = runtime.now(), is_large(shown.tasks)
    facts = gather(job, shown.changes, shown.pods, shown.tasks, present)
    return {
        "timeline": timeline.build(job, shown.changes, lives(shown.pods), present, facts),
        "is_large": large,
        "grid": overview(shown.tasks) if large else grid(shown.tasks, shown.pods),
        "maps": maps(shown.tasks, shown.pods) if large else [],
        "graph": graph(job, shown.tasks),
        "why": verdict.panel(job),
        "plugins": in_force(job),
    }


def _pods(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    found = narrowed(shown.pods, request)
    return {"pods": Paginator(found, queries.POD_PAGE).get_page(request.GET.get("page")), "pod_phases": PodPhase.choices}


def narrowed(pods: QuerySet[Pod], request: HttpRequest) -> QuerySet[Pod]:
    """The pods of a task, a place in it, a phase, or a part of a name; what is not known narrows nothing."""
    asked = request.GET
    if task := asked.get("task"):
        pods = pods.filter(task=task.replace("\x00", ""))
    if (index := asked.get("index", "")).isascii() and index.isdigit() and len(index) < 10:
        pods = pods.filter(index=int(index))
    if (phase := asked.get("phase")) in PodPhase.values:
        pods = pods.filter(phase=phase)
    if text := asked.get("q", "").strip().replace("\x00", "")[:100]:
        pods = pods.filter(name__icontains=text)
    return pods


def _logs(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    found = logs.context(request.user, job, shown.pods, request.GET)
    if found["log_lines"] or found["log_denied"]:
        return found
    tail = LogTail.objects.filter(job_uid=job.uid).first()
    return found | {"log_tail": [(datetime.fromisoformat(line[0]), *line[1:]) for line in tail.lines] if tail else []}


def _placement(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    return placement.context(request.user, job, shown.tasks)


def _yaml(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    text, found = yamlview.dump(job.manifest), defaulted.of(job)
    marked = defaulted.lines(text, found.pointers)
    lines = [(line, number in marked) for number, line in enumerate(yamlview.lines(text), start=1)]
    return {"yaml": lines, "filled": found, "filled_lines": len(marked)}


def _decisions(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    facts = gather(job, shown.changes, shown.pods, shown.tasks, runtime.now())
    rows: list[Context] = [{"at": moment.at, "code": moment.code, "text": sentence(moment)} for moment in facts.moments]
    for hold in facts.holds:
        text, stage = reasons.say(hold.verdict, job.gpu_model), reasons.stage_label(hold.stage)
        row = {"at": hold.since, "until": hold.until, "code": "held", "text": text, "is_over": hold.until is not None}
        rows.append(row | {"stage": "" if text.startswith(stage) else stage})
    return {"decisions": sorted(rows, key=lambda row: row["at"])[::-1]}


def _usage(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    return {"used": used(shown.tasks, lives(shown.pods), runtime.now())}


def _lineage(request: HttpRequest, job: Job, shown: queries.JobDetail) -> Context:
    narrow, user = policy().visible, request.user
    found = [*lineage.copies(job, narrow, user)[: lineage.MOST]]
    before = lineage.ancestors(job, narrow, user)
    for each in (*found, *before):
        each.mark = job_mark(each.phase, each.group_phase)  # type: ignore[attr-defined]
    return {"ancestors": before, "copies": found}


TABS: dict[str, Callable[[HttpRequest, Job, queries.JobDetail], Context]] = {
    "overview": _overview,
    "pods": _pods,
    "placement": _placement,
    "logs": _logs,
    "events": lambda request, job, shown: {},
    "yaml": _yaml,
    "decisions": _decisions,
    "usage": _usage,
    "lineage": _lineage,
}
