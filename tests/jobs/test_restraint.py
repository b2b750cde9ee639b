"""What a cluster refuses for as long as something lasts is tried ever later, told, and never ends a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.errors import Forbidden
from cluster.kinds import EVENT, POD, POD_GROUP
from cluster.objects import labels
from cluster.port import Obj, Outcome
from jobs.controller.restraint import Restraint, is_ending, quota_of
from jobs.held import verdict
from tests.jobs.world import World, job, task

EXCEEDED = 'pods "train-worker-1" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=1, limited: pods=1'
ENDING = 'pods "a" is forbidden: unable to create new content in namespace default because it is being terminated'


class Quota:
    """At most so many pods in the cluster; the rest is refused as an API server does it."""

    def __init__(self, world: World, room: int) -> None:
        self.world, self.room, self.tried = world, room, list[int]()
        self._make: Callable[..., list[Outcome]] = world.cluster.create_many

    def create_many(self, kind: Any, pods: list[Obj], **more: Any) -> list[Outcome]:
        self.tried.append(len(pods))
        outcomes = []
        for pod in pods:
            full = kind == POD and len(self.world.pods()) >= self.room
            outcomes += [Outcome("default", "", Forbidden(EXCEEDED))] if full else self._make(kind, [pod], **more)
        return outcomes


@pytest.fixture
def quota(world: World, monkeypatch: pytest.MonkeyPatch) -> Quota:
    found = Quota(world, 1)
    monkeypatch.setattr(world.cluster, "create_many", found.create_many)
    return found


def test_words_of_a_server_are_understood() -> None:
    assert quota_of(Forbidden(EXCEEDED)) == "compute"
    assert (quota_of(Forbidden(ENDING)), is_ending(Forbidden(ENDING))) == ("", True)
    assert (quota_of(ValueError(EXCEEDED)), is_ending(ValueError(ENDING))) == ("", False)
    assert quota_of(Forbidden("pods is forbidden: failed quota: compute: must specify limits.cpu")) == ""


def test_pauses_double_up_to_a_minute() -> None:
    restraint = Restraint()
    assert [restraint.refused("a", 0.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert (restraint.left("a", 50.0), restraint.left("a", 60.0), restraint.left("b", 0.0)) == (10.0, 0.0, 0.0)
    restraint.clear("a")
    assert (restraint.holds("a"), restraint.refused("a", 0.0)) == (False, 1.0)


def test_a_job_that_a_quota_refuses_waits_tells_and_starts_when_there_is_room(world: World, quota: Quota) -> None:
    world.submit(job("train", task(replicas=3)))
    world.turn()
    assert world.pod_names() == ["train-worker-0"]
    assert quota.tried == [3]
    said = next(e for e in world.cluster.list(EVENT).items if e["reason"] == "FailedCreate")
    assert said["involvedObject"]["kind"] == "Job"
    assert "exceeded quota: compute" in said["message"]
    assert verdict(world.job()) == {
        "stage": "dependency", "code": "quota.used", "plugin": "quota", "kind": "ResourceQuota", "object": "compute",
    }  # fmt: skip
    for _ in range(30):
        world.clock.advance(60)
        world.turn()
    assert world.phase() == "Pending"
    assert set(quota.tried[1:]) == {1}  # one is tried, not all
    assert len(quota.tried) <= 32
    quota.room = 3
    world.clock.advance(60)
    world.turn()
    assert (world.phase(), len(world.pods())) == ("Running", 3)
    assert verdict(world.job()) is None
    assert "basalt.dev/held" not in world.status().get("controlledResources", {})


def test_whatever_else_happens_to_a_job_does_not_hasten_its_next_try(world: World, quota: Quota) -> None:
    world.submit(job("train", task(replicas=3), minAvailable=1))
    world.turn()
    assert world.phase() == "Running"
    tried = len(quota.tried)
    for number in range(5):
        pod = world.pod("train-worker-0")
        world.cluster.patch(POD, "train-worker-0", "default", {"metadata": {"labels": {**labels(pod), "n": str(number)}}})
        world.turn()
    assert len(quota.tried) == tried
    quota.room = 3
    world.clock.advance(1.0)
    world.turn()
    assert len(world.pods()) == 3
    assert "basalt.dev/held" not in world.status().get("controlledResources", {})


def test_a_namespace_that_ends_is_asked_ever_less_often_and_no_job_is_terminated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    make = world.cluster.create

    def create(kind: Any, obj: Obj, **more: Any) -> Obj:
        if kind in (POD_GROUP, EVENT):
            tried.append(kind.kind)
            raise Forbidden(ENDING)
        return make(kind, obj, **more)

    monkeypatch.setattr(world.cluster, "create", create)
    world.submit(job())
    for _ in range(600):
        world.settle()
        world.clock.advance(1.0)
    assert len(tried) <= 16
    assert set(tried) == {"PodGroup"}
    assert world.phase() == ""


def test_a_name_that_somebody_elses_pod_has_is_told_and_tried_again(world: World) -> None:
    stranger = {
        "metadata": {"name": "train-worker-1", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    world.cluster.create(POD, stranger)
    world.submit(job())
    world.turn()
    assert "FailedCreate" in world.reasons()
    assert len(world.pods("train")) == 1
    world.cluster.delete(POD, "train-worker-1", "default", grace_seconds=0)
    world.settle()
    world.clock.advance(5.0)
    world.turn()
    assert world.phase() == "Running"
