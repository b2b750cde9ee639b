"""Flows and templates as rows."""

from __future__ import annotations

from cluster import objects
from cluster.kinds import JOB_FLOW, JOB_TEMPLATE
from cluster.port import Obj
from cluster.projection import Batch, Projection, apply, common, differs, notify, writing
from jobs import keys
from jobs.disclosure import as_read
from jobs.flows.choices import FlowState
from jobs.flows.models import JobFlow, JobTemplate
from jobs.flows.parts import parts_of
from jobs.flows.status import BROKEN, phase_of, recorded


def flow(obj: Obj, deleted: bool = False) -> JobFlow:
    """A JobFlow as its row."""
    states = [str(entry.get("state") or "") for entry in recorded(obj).values()]
    return JobFlow(
        **common(obj, deleted),
        namespace=objects.namespace(obj),
        owner=objects.annotations(obj).get(keys.OWNER, ""),
        phase=FlowState(phase_of(obj)),
        retain=obj["spec"].get("jobRetainPolicy") or "retain",
        parts=len(parts_of(obj)),
        completed=states.count("Completed"),
        running=sum(state in ("Running", "Restarting", "Completing") for state in states),
        failed=sum(state in BROKEN for state in states),
        manifest=as_read(obj),
    )


def template(obj: Obj, deleted: bool = False) -> JobTemplate:
    """A JobTemplate as its row."""
    spec = obj["spec"]
    tasks = spec.get("tasks") or []
    return JobTemplate(
        **common(obj, deleted),
        namespace=objects.namespace(obj),
        owner=objects.annotations(obj).get(keys.OWNER, ""),
        queue=spec.get("queue") or "default",
        tasks=len(tasks),
        replicas=sum(int(task.get("replicas") or 0) for task in tasks),
        jobs=list((obj.get("status") or {}).get("jobDependsOnList") or []),
        manifest=as_read(obj),
    )


def project_flows(batch: Batch) -> None:
    """Flows, forward only."""
    with writing(JobFlow):
        changes = apply(JobFlow, flow, batch)
        notify("flows", (change.after.uid for change in changes if differs(change, ("manifest", "deleted_at"))))


def project_templates(batch: Batch) -> None:
    """Templates, forward only."""
    with writing(JobTemplate):
        changes = apply(JobTemplate, template, batch)
        notify("templates", (change.after.uid for change in changes))


PROJECTIONS = {
    JOB_TEMPLATE: Projection(JobTemplate, project_templates),
    JOB_FLOW: Projection(JobFlow, project_flows),
}
