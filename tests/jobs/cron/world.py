"""Cron jobs, and what tests say of them."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

from cluster.kinds import CRON_JOB, EVENT, JOB
from cluster.objects import owner
from cluster.port import Obj
from tests.jobs.world import World, task


def cron(schedule: str = "*/5 * * * *", title: str = "c", **spec: Any) -> Obj:
    """A CronJob whose jobs have one worker."""
    template = {"spec": {"tasks": [task(replicas=1)]}}
    return {
        "apiVersion": CRON_JOB.api_version,
        "kind": "CronJob",
        "metadata": {"name": title, "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def make(world: World, obj: Obj) -> Obj:
    """Create one."""
    made = world.cluster.create(CRON_JOB, copy.deepcopy(obj))
    world.settle()
    return made


def go_to(world: World, text: str) -> None:
    """Move time on to an instant, stopping wherever a controller has something to do."""
    target = datetime.fromisoformat(text if "+" in text else f"{text}+00:00").timestamp()
    while (due := world.manager.next_due()) is not None and due <= target:
        world.clock.advance(max(due - world.clock.now(), 0.0))
        world.settle()
    world.clock.advance(max(target - world.clock.now(), 0.0))
    world.settle()


def runs(world: World) -> list[str]:
    """The names of all jobs that a cron job made and that are there."""
    return [job["metadata"]["name"] for job in world.cluster.list(JOB).items if (owner(job) or {}).get("kind") == "CronJob"]


def status(world: World, title: str = "c") -> dict[str, Any]:
    """Its status."""
    return world.cluster.get(CRON_JOB, title, "default").get("status") or {}


def reasons(world: World) -> list[str]:
    """Reasons of Events about cron jobs."""
    return [e["reason"] for e in world.cluster.list(EVENT).items if e["involvedObject"]["kind"] == "CronJob"]


def end(world: World, job: str, phase: str = "Completed") -> None:
    """A job ends in a phase, as its controller would say."""
    from cluster.objects import stamp

    state = {"phase": phase, "lastTransitionTime": stamp(world.clock.now())}
    world.cluster.patch_status(JOB, job, "default", {"state": state})
    world.settle()
