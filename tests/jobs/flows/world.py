"""Flows, templates and what tests say of them."""

from __future__ import annotations

import copy
from typing import Any

from cluster.kinds import JOB_FLOW, JOB_TEMPLATE
from cluster.port import Obj
from tests.jobs.world import World, task


def template(title: str, *tasks: dict[str, Any], **spec: Any) -> Obj:
    """A JobTemplate; without tasks its jobs have one worker."""
    meta = {"name": title, "namespace": "default"}
    spec = {"tasks": list(tasks) or [task(replicas=1)], **spec}
    return {"apiVersion": JOB_TEMPLATE.api_version, "kind": "JobTemplate", "metadata": meta, "spec": copy.deepcopy(spec)}


def flow(title: str, *parts: str | dict[str, Any], **spec: Any) -> Obj:
    """A JobFlow of parts; `"c<a,b"` is a part `c` that waits for `a` and `b`."""
    meta = {"name": title, "namespace": "default"}
    spec = {"flows": [part(each) for each in parts], **spec}
    return {"apiVersion": JOB_FLOW.api_version, "kind": "JobFlow", "metadata": meta, "spec": spec}


def part(words: str | dict[str, Any]) -> dict[str, Any]:
    """One part of a flow."""
    if not isinstance(words, str):
        return copy.deepcopy(words)
    name, _, targets = words.partition("<")
    return {"name": name, **({"dependsOn": {"targets": targets.split(",")}} if targets else {})}


def make(world: World, *objects: Obj) -> None:
    """Create flows and templates."""
    for obj in objects:
        world.cluster.create(JOB_FLOW if obj["kind"] == "JobFlow" else JOB_TEMPLATE, copy.deepcopy(obj))


def status(world: World, title: str = "f") -> dict[str, Any]:
    """A flow's status."""
    return world.cluster.get(JOB_FLOW, title, "default").get("status") or {}


def phase(world: World, title: str = "f") -> str:
    """A flow's phase."""
    return status(world, title).get("state", {}).get("phase", "")


def jobs(world: World) -> list[str]:
    """The names of all jobs."""
    from cluster.kinds import JOB

    return [job["metadata"]["name"] for job in world.cluster.list(JOB).items]


def finish(world: World, job: str, exit_code: int = 0) -> None:
    """Every pod of a job that runs ends; then everybody works until nothing moves."""
    for pod in world.pods(job):
        if pod["status"]["phase"] == "Running":
            world.end(pod["metadata"]["name"], exit_code)
    world.turn()
