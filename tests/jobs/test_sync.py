"""What a sync makes beside pods, and what it says of it."""

from __future__ import annotations

import pytest

from cluster.kinds import POD_GROUP
from cluster.objects import annotations, labels
from jobs import keys
from tests.jobs.world import World, job


def test_a_job_records_the_claims_that_it_uses(world: World):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.started(job(volumes=[{"mountPath": "/data", "volumeClaim": spec}]))
    claim = world.pod("train-worker-0")["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert world.status()["controlledResources"][f"volume-pvc-{claim}"] == claim


def test_a_job_whose_queue_reaches_into_other_clusters_says_so_and_so_do_its_pods(world: World):
    world.make_queue("far", weight=1, extendClusters=[{"name": "west"}])
    world.turn()
    world.started(job(queue="far"))
    assert annotations(world.job())[keys.FORWARDING] == "true"
    pod = world.pod("train-worker-0")
    assert (annotations(pod)[keys.FORWARDING], labels(pod)[keys.FORWARDING]) == ("true", "true")
    assert keys.FORWARDING not in annotations(world.started(job("near")))


def test_a_group_that_is_refused_is_told_on_the_job(world: World, monkeypatch: pytest.MonkeyPatch):
    from cluster.errors import Forbidden

    original = world.cluster.create

    def create(kind, obj, **more):
        if kind == POD_GROUP:
            raise Forbidden("quota of groups is used up")
        return original(kind, obj, **more)

    monkeypatch.setattr(world.cluster, "create", create)
    world.submit(job())
    world.settle()
    assert "PodGroupError" in world.reasons()
    assert world.pods() == []


def test_conflicts_that_do_not_end_are_told(world: World, monkeypatch: pytest.MonkeyPatch):
    from cluster.errors import Conflict

    world.submit(job())

    def patch_status(*_, **__):
        raise Conflict("the object was changed since it was read")

    monkeypatch.setattr(world.cluster, "patch_status", patch_status)
    world.settle()
    assert "JobStatusError" not in world.reasons()
    for _ in range(6):
        world.settle()
        world.clock.advance(60)
    assert "JobStatusError" in world.reasons()
