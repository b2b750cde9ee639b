"""What plugins and volumes make of a job's pods must still be pods: a path mounted twice would be refused of each, for ever."""

from __future__ import annotations

from typing import Any

from cluster.kinds import JOB
from cluster.pointers import steps
from cluster.said import said
from cluster.validation import Faults
from jobs.manifest.template import check_pod_spec
from jobs.plugins import plugins_of
from jobs.pods import build_pod


def check_made_pods(job: dict[str, Any], name: str, faults: Faults) -> None:
    """Build the first pod of each role and look at it. Only for a job without other faults; `name` as it will be."""
    spec = job["spec"]
    if not spec.get("plugins") and not spec.get("volumes"):
        return
    meta = {**(job.get("metadata") or {}), "name": name, "uid": "-"}
    whole = {**job, "apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": meta, "spec": {"queue": "default", **spec}}
    plugins = plugins_of(whole)
    for position, task in enumerate(spec["tasks"]):
        pod = build_pod(whole, task, 0)
        for plugin in plugins:
            plugin.on_pod_create(pod, whole)
        given = (task.get("template") or {}).get("spec") or {}
        found = Faults()
        check_pod_spec(pod["spec"], "", found)
        for fault in found:
            where = f"/spec/tasks/{position}/template/spec{_within(given, fault.pointer)}"
            faults.add(where, said("with what plugins and volumes add: %(message)s", message=fault.message), fault.code)


def _within(given: Any, where: str) -> str:
    """The deepest place on the way to a fault that the manifest has itself."""
    place = ""
    for step in steps(where):
        if isinstance(given, list) and step.isdecimal() and len(step) < 10 and int(step) < len(given):
            given = given[int(step)]
        elif isinstance(given, dict) and step in given:
            given = given[step]
        else:
            break
        place += f"/{step}"
    return place
