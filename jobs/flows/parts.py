"""What a flow is made of: its parts by name, what each waits for, and the jobs that they become. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from cluster import objects
from cluster.kinds import JOB, JOB_FLOW
from cluster.port import Obj
from jobs import keys
from jobs.flows.patching import patched

RECORDED = "basalt.dev/flow"
"""A finalizer on jobs with a time to live: they stay until their flow has written down how they ended."""


def parts_of(flow: Obj) -> list[Obj]:
    """The entries of `spec.flows`; each is named like its JobTemplate."""
    return list((flow.get("spec") or {}).get("flows") or [])


def targets_of(part: Obj) -> list[str]:
    """The parts that must be done, or answer its probe, before this one starts."""
    return list((part.get("dependsOn") or {}).get("targets") or [])


def probe_of(part: Obj) -> Obj:
    """What targets must answer instead of being done; empty: they must be done."""
    return dict((part.get("dependsOn") or {}).get("probe") or {})


def job_name(flow: str, part: str) -> str:
    """The name of the job that a part becomes."""
    return f"{flow}-{part}"


def template_key(flow: Obj, part: Obj) -> str:
    """`namespace/name` of the template that a part is made from."""
    return f"{objects.namespace(flow)}/{part['name']}"


def owning_flow(obj: Obj) -> Obj | None:
    """The owner reference to the JobFlow that controls a job; None when no flow does."""
    return keys.owner_of(JOB_FLOW, obj)


def job_spec(template: Obj, part: Obj) -> dict[str, Any]:
    """The spec of the job that a part becomes. Raises `patching.PatchError`."""
    patch = part.get("patch") or {}
    return patched(template.get("spec") or {}, patch.get("spec") or patch.get("jobSpec") or {})


def build_job(flow: Obj, part: Obj, template: Obj) -> Obj:
    """The job of a part. It belongs to the flow, and to whom the flow belongs. Raises `patching.PatchError`."""
    namespace = objects.namespace(flow)
    made_by = {
        keys.CREATED_BY_TEMPLATE: f"{namespace}.{part['name']}",
        keys.CREATED_BY_FLOW: f"{namespace}.{objects.name(flow)}",
    }
    owner = objects.annotations(flow).get(keys.OWNER)
    spec = job_spec(template, part)
    meta: dict[str, Any] = {
        "name": job_name(objects.name(flow), part["name"]),
        "namespace": namespace,
        "labels": dict(made_by),
        "annotations": {**made_by, **({keys.OWNER: owner} if owner else {})},
        "ownerReferences": [objects.owner_reference({"apiVersion": JOB_FLOW.api_version, "kind": JOB_FLOW.kind, **flow})],
    }
    if spec.get("ttlSecondsAfterFinished") is not None:
        meta["finalizers"] = [RECORDED]
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": meta, "spec": spec}


def circle(waits: Mapping[str, Iterable[str]]) -> list[str]:
    """Names that wait for each other in a ring, the first one again at the end; empty when there is none."""
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
