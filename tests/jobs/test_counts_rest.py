"""Counts alone wait a second before they are written; a phase, and what others rely on, never does."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.kinds import JOB, QUEUE
from jobs.controller import ControllerManager
from tests.jobs.world import SCHEDULERS, World, job, task


class Resting(World):
    """A world whose controllers let counts rest, and which keeps every status that they write."""

    def new_manager(self, through: Any = None) -> ControllerManager:
        return ControllerManager(through or self.cluster, self.clock, schedulers=SCHEDULERS, rest=1.0)


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> tuple[Resting, list[tuple[str, dict[str, Any]]]]:
    world, written = Resting(), list[tuple[str, dict[str, Any]]]()
    write = world.cluster.patch_status

    def patch_status(kind: Any, name: str, namespace: str, status: dict[str, Any], **more: Any) -> Any:
        if kind in (JOB, QUEUE) and name in ("train", "default"):
            written.append((kind.kind, status))
        return write(kind, name, namespace, status, **more)

    monkeypatch.setattr(world.cluster, "patch_status", patch_status)
    return world, written


def phases(written: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [(status.get("state") or {}).get("phase", "-") for kind, status in written if kind == "Job"]


def test_a_job_of_six_pods_costs_three_status_writes(resting: Any) -> None:
    world, written = resting
    world.started(job("train", task(replicas=6)))
    for number in range(6):
        world.end(f"train-worker-{number}")
        world.turn()
    assert phases(written) == ["Pending", "Running", "Completed"]
    status = world.status()
    assert [c["status"] for c in status["conditions"]] == ["Pending", "Running", "Completed"]
    assert (status["succeeded"], status["running"], status["version"], status["runningDuration"]) == (6, 0, 1, "0s")
    world.clock.advance(60)
    world.turn()
    assert phases(written) == ["Pending", "Running", "Completed"]


def test_a_count_is_written_a_second_after_it_changed_with_all_that_came_until_then(resting: Any) -> None:
    world, written = resting
    world.started(job("train", task(replicas=3)))
    world.clock.advance(5)
    world.turn()
    written.clear()
    world.end("train-worker-0")
    world.turn()
    assert world.manager.next_due() == world.clock.now() + 1.0
    world.clock.advance(0.5)
    world.end("train-worker-1")
    world.turn()
    assert (phases(written), world.status()["running"]) == ([], 3)
    world.clock.advance(0.5)
    world.turn()
    assert phases(written) == ["-"]
    assert (world.status()["running"], world.status()["succeeded"]) == (1, 2)


def test_the_counts_of_a_queue_are_written_together(resting: Any) -> None:
    world, written = resting
    world.clock.advance(5)
    world.started(job("train", task(replicas=2)))
    assert [status for kind, status in written if kind == "Queue"] == []
    world.clock.advance(1.0)
    world.turn()
    queue = [status for kind, status in written if kind == "Queue"]
    assert queue == [{"state": "Open", "pending": 0, "running": 1, "inqueue": 0, "unknown": 0, "completed": 0}]


def test_what_policies_remember_does_not_rest(resting: Any) -> None:
    world, written = resting
    world.started(job("train", task(replicas=2), policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    assert any("controlledResources" in status for kind, status in written if kind == "Job")
    assert world.status()["controlledResources"]["basalt.dev/memory"] == '{"pods":{"worker":"0-1"}}'
