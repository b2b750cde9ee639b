"""Beside another scheduler: whose gang it is, and that the other's are not there for ours."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from cluster.objects import owner_reference
from scheduler.served import FOREIGN, Served

TEMPLATE = {"spec": {"containers": [{"name": "m", "image": "i"}]}}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    cluster = EmbeddedCluster()
    for name in ("root", "default"):
        cluster.create(QUEUE, {"metadata": {"name": name}})
    return cluster


def group(cluster: EmbeddedCluster, name: str, **meta: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name, "namespace": "default", **meta}, "spec": {"minMember": 1, "queue": "default"}}
    return cluster.create(POD_GROUP, body)


def pod(cluster: EmbeddedCluster, name: str, scheduler: str, of: str = "") -> dict[str, Any]:
    notes = {"scheduling.k8s.io/group-name": of} if of else {}
    meta = {"name": name, "namespace": "default", "annotations": notes}
    return cluster.create(POD, {"metadata": meta, "spec": {**TEMPLATE["spec"], "schedulerName": scheduler}})


def job(cluster: EmbeddedCluster, name: str, scheduler: str) -> dict[str, Any]:
    spec = {"schedulerName": scheduler, "tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}]}
    return cluster.create(JOB, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def told(watch: Any) -> list[tuple[str, str]]:
    return [(e.type, e.object["metadata"]["name"]) for e in watch.drain() if e.kind == POD_GROUP]


def test_a_gang_that_its_controller_noted_is_never_told(cluster: EmbeddedCluster) -> None:
    watch = Served(cluster, ["basalt"], asks_jobs=False).watch([POD_GROUP, POD])
    group(cluster, "theirs", annotations={FOREIGN: "volcano"})
    group(cluster, "ours", annotations={FOREIGN: "basalt"})
    group(cluster, "unsaid")
    assert told(watch) == [("ADDED", "ours"), ("ADDED", "unsaid")]
    cluster.delete(POD_GROUP, "theirs", "default")
    cluster.delete(POD_GROUP, "ours", "default")
    assert told(watch) == [("DELETED", "ours")]
    watch.close()


def test_the_job_that_owns_a_gang_says_whose_it_is(cluster: EmbeddedCluster) -> None:
    for name, scheduler in (("a", "volcano"), ("b", "basalt")):
        owner = owner_reference(job(cluster, name, scheduler))
        group(cluster, f"group-{name}", ownerReferences=[owner])
    asking = Served(cluster, ["basalt"], asks_jobs=True).watch([POD_GROUP])
    assert told(asking) == [("ADDED", "group-b")]
    trusting = Served(cluster, ["basalt"], asks_jobs=False).watch([POD_GROUP])
    assert told(trusting) == [("ADDED", "group-a"), ("ADDED", "group-b")]
    asking.close()
    trusting.close()


def test_pods_say_whose_a_gang_is_that_nothing_else_says(cluster: EmbeddedCluster) -> None:
    watch = Served(cluster, ["basalt"], asks_jobs=True).watch([POD_GROUP, POD])
    group(cluster, "gang")
    assert told(watch) == [("ADDED", "gang")]
    theirs = pod(cluster, "theirs", "volcano", of="gang")
    assert told(watch) == [("DELETED", "gang")]
    group_now = cluster.patch(POD_GROUP, "gang", "default", {"metadata": {"labels": {"a": "b"}}})
    assert told(watch) == []
    pod(cluster, "ours", "basalt", of="gang")
    assert told(watch) == [("ADDED", "gang")]
    cluster.delete(POD, "ours", "default", grace_seconds=0)
    assert told(watch) == [("DELETED", "gang")]
    cluster.delete(POD, "theirs", "default", uid=theirs["metadata"]["uid"], grace_seconds=0)
    assert told(watch) == [("ADDED", "gang")]
    assert group_now["metadata"]["labels"] == {"a": "b"}
    watch.close()


def test_all_else_passes_and_the_end_of_the_list_is_told(cluster: EmbeddedCluster) -> None:
    group(cluster, "theirs", annotations={FOREIGN: "volcano"})
    pod(cluster, "lone", "default-scheduler")
    served = Served(cluster, ["basalt"], asks_jobs=False)
    watch = served.watch([NODE, POD_GROUP, POD])
    assert [(e.type, e.kind) for e in watch.drain()] == [("ADDED", POD), ("SYNCED", None)]
    assert watch.get(timeout=0) is None
    served.create(POD_GROUP, {"metadata": {"name": "new", "namespace": "default"}, "spec": {"minMember": 1}})
    event = watch.get(timeout=1)
    assert event is not None
    assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "new")
    watch.close()
