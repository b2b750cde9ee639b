"""Jobs of many pods: made and stopped some at a time, whatever happens between."""

from __future__ import annotations

import pytest

from cluster.errors import Unavailable
from cluster.kinds import JOB
from jobs import keys
from tests.jobs.world import World, job, task


def test_many_pods_are_made_in_parts_and_all_of_them(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jobs.controller.sync.A_PASS", 3)
    world.started(job("train", task(replicas=10)))
    assert len(world.pods()) == 10
    assert world.phase() == "Running"


def test_a_job_that_goes_while_its_pods_are_made_leaves_none(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jobs.controller.sync.A_PASS", 3)
    made = []

    def create_many(kind, pods, **more):
        if not made:
            world.cluster.delete(JOB, "train", "default")
        made.extend(pods)
        return original(kind, pods, **more)

    original = world.cluster.create_many
    monkeypatch.setattr(world.cluster, "create_many", create_many)
    world.submit(job("train", task(replicas=50)))
    world.turn()
    assert len(made) <= 3
    assert world.pods() == []


@pytest.mark.parametrize(
    ("action", "after"), [("suspend", "Aborted"), ("terminate", "Terminated"), ("restart", "Running"), ("complete", "Completed")]
)
def test_many_pods_are_stopped_in_parts_and_the_counts_say_how_far(world: World, monkeypatch, action: str, after: str):
    from jobs.operations import act

    monkeypatch.setattr("jobs.controller.kill.A_PASS", 3)
    world.started(job("train", task(replicas=10)))
    before = {pod["metadata"]["uid"] for pod in world.pods()}
    seen, original = [], world.cluster.patch_status

    def patch_status(kind, title, namespace, status, **more):
        written = original(kind, title, namespace, status, **more)
        if kind == JOB:
            seen.append((written["status"]["running"], written["status"]["terminating"]))
        return written

    monkeypatch.setattr(world.cluster, "patch_status", patch_status)
    act(world.cluster, "default", "train", action)
    world.settle()
    assert [pair for pair in seen if pair[1]][:4] == [(7, 3), (4, 6), (1, 9), (0, 10)]
    world.turn()
    assert world.phase() == after
    assert not before & {pod["metadata"]["uid"] for pod in world.pods()}
    assert (world.status()["version"], world.status()["retryCount"]) == (1, int(action == "restart"))
    assert keys.PENDING_ACTION not in (world.status().get("controlledResources") or {})


def test_a_restart_half_done_when_the_controllers_die_is_finished(world: World, monkeypatch: pytest.MonkeyPatch):
    from jobs.operations import act

    monkeypatch.setattr("jobs.controller.kill.A_PASS", 3)
    world.started(job("train", task(replicas=10)))
    before = {pod["metadata"]["uid"] for pod in world.pods()}
    deleted, original = [], world.cluster.delete_many

    def delete_many(kind, victims):
        if len(deleted) == 6:
            raise Unavailable("the process is dying")
        deleted.extend(victims)
        return original(kind, victims)

    act(world.cluster, "default", "train", "restart")
    with monkeypatch.context() as dying:
        dying.setattr(world.cluster, "delete_many", delete_many)
        world.settle()
    world.restart()
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 1)
    assert not before & {pod["metadata"]["uid"] for pod in world.pods()}
