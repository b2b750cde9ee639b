"""What the pages of flows show, and the parts of them that come whole over the live channel."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from jobs import summary
from jobs.choices import GroupPhase, JobPhase, job_mark
from jobs.flows.choices import FlowState
from jobs.flows.graph import State, draw
from jobs.flows.models import JobFlow
from jobs.flows.parts import job_name, parts_of, probe_of, targets_of
from jobs.flows.status import recorded
from jobs.models import Job
from jobs.pages.queries import EVENT_LIMIT, events_of
from jobs.pages.rendered import in_all_languages, parts_in_all_languages

ROW = "flows/row.html"
PARTS = {"head": "flows/head.html", "graph": "flows/graph.html", "jobs": "flows/jobs.html", "events": "flows/events.html"}


def decorated(flow: JobFlow) -> JobFlow:
    """A flow with what its row draws."""
    flow.mark = FlowState(flow.phase).mark  # type: ignore[attr-defined]
    flow.word = str(FlowState(flow.phase).label)  # type: ignore[attr-defined]
    return flow


def jobs_of(uid: str) -> dict[str, Job]:
    """The newest job of each name that a flow made."""
    found: dict[str, Job] = {}
    for job in Job.objects.filter(made_by=uid).order_by("created_at"):
        found[job.name] = job
    return found


def shown(flow: JobFlow) -> dict[str, Any]:
    """All that the page of one flow shows."""
    jobs, told = jobs_of(flow.uid), recorded(flow.manifest)
    names = [job_name(flow.name, part["name"]) for part in parts_of(flow.manifest)]
    states = {name: _state(flow, jobs.get(name), told.get(name, {})) for name in names}
    urls = {name: reverse("jobs:detail", args=[job.uid]) for name, job in jobs.items()}
    return {
        "flow": decorated(flow),
        "graph": draw(flow.manifest, states, urls),
        "rows": [_line(flow, part, jobs, told, states) for part in parts_of(flow.manifest)],
        "events": list(events_of(flow.uid)[:EVENT_LIMIT]),
    }


def _state(flow: JobFlow, job: Job | None, entry: Any) -> State:
    """A job as it is; when it is gone, as the flow remembers it."""
    alive = job is not None and job.deleted_at is None
    phase = job.phase if job is not None and alive else str(entry.get("state") or "")
    if phase not in JobPhase.values:
        return State("", "unknown", _not_made(flow))
    mark = job_mark(phase, job.group_phase if job is not None and alive else "")
    return State(phase, mark, str((GroupPhase.INQUEUE if mark == "inqueue" else JobPhase(phase)).label))


def _line(flow: JobFlow, part: Any, jobs: dict[str, Job], told: dict[str, Any], states: dict[str, State]) -> dict[str, Any]:
    """One line of the table, which says in words what the drawing shows."""
    name = job_name(flow.name, part["name"])
    job = jobs.get(name)
    return {
        "part": part["name"],
        "name": name,
        "job": job,
        "state": states[name],
        "targets": targets_of(part),
        "probe": bool(probe_of(part)),
        "patched": bool(part.get("patch")),
        "entry": told.get(name, {}),
        "why": summary.line(job) if job is not None and job.deleted_at is None else "",
    }


def _not_made(flow: JobFlow) -> str:
    return _("Not started") if flow.phase in (FlowState.FAILED, FlowState.TERMINATING) or flow.deleted_at else _("Waiting")


def rendered_rows(flows: Any) -> dict[str, dict[str, Any]]:
    """Rows of the list by uid, drawn in every language."""
    return {
        flow.uid: {"uid": flow.uid, "html": in_all_languages(ROW, lambda flow=flow: {"flow": decorated(flow)})} for flow in flows
    }


def rendered_parts(flow: JobFlow) -> dict[str, dict[str, Any]]:
    """Parts of the page of one flow, by name, drawn in every language."""
    return parts_in_all_languages(PARTS, lambda: shown(flow))
