"""PodGroups of jobs and of bare pods, in exact numbers; and the pods that jobs make."""

from __future__ import annotations

import pytest

from cluster.errors import Invalid
from cluster.kinds import EVENT, NAMESPACE, POD, POD_GROUP, QUEUE
from cluster.objects import annotations, clone
from jobs import keys
from jobs.groups import build_group, min_resources
from jobs.manifest import default
from jobs.pods import build_pod, claim_name
from tests.jobs.world import World, job, task

PRIORITIES = {"high": 100, "low": 1}


def priority(name: str) -> int:
    return PRIORITIES.get(name, 0)


def role(name: str, replicas: int, cpu: str, cls: str = "", minimum: int | None = None) -> dict:
    made = task(name, replicas)
    made["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    if cls:
        made["template"]["spec"]["priorityClassName"] = cls
    if minimum is not None:
        made["minAvailable"] = minimum
    return made


@pytest.mark.parametrize(
    ("minimum", "roles", "cpu", "pods"),
    [
        # the gang is smaller than the minima together: its first pods by priority, whole replicas counted
        (3, [role("a", 4, "1", "low"), role("b", 2, "10", "high")], "21", "3"),
        (1, [role("a", 4, "1"), role("b", 2, "10")], "1", "1"),
        # every minimum, nothing more
        (3, [role("a", 4, "1", minimum=1), role("b", 2, "10", minimum=2)], "21", "3"),
        # every minimum, then filled up with the most important
        (5, [role("a", 4, "1", "low", 1), role("b", 3, "10", "high", 2)], "32", "5"),
        (6, [role("a", 4, "1", "low", 1), role("b", 3, "10", "high", 2)], "33", "6"),
        (0, [role("a", 4, "1", minimum=0)], None, None),
    ],
)
def test_min_resources_are_those_of_the_gangs_first_pods(minimum, roles, cpu, pods):
    found = min_resources(minimum, roles, priority)
    assert (found.get("cpu"), found.get("pods")) == (cpu, pods)


def test_the_group_of_a_partitioned_job_has_a_sub_group_policy():
    policy = {"totalPartitions": 2, "partitionSize": 4, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    manifest = job("train", task(replicas=8, partitionPolicy=policy), networkTopology={"mode": "soft", "highestTierAllowed": 2})
    default(manifest)
    manifest["metadata"]["uid"] = "u1"
    group = build_group(manifest, manifest["spec"]["tasks"], priority)
    assert group["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}
    assert group["spec"]["subGroupPolicy"] == [
        {
            "name": "worker",
            "subGroupSize": 4,
            "minSubGroups": 0,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "worker"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        }
    ]


def test_pods_of_a_partitioned_task_carry_their_partition():
    manifest = job("train", task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}))
    default(manifest)
    manifest["metadata"]["uid"] = "u1"
    made = [build_pod(manifest, manifest["spec"]["tasks"][0], index) for index in range(4)]
    assert [pod["metadata"]["labels"][keys.PARTITION_ID] for pod in made] == ["0", "0", "1", "1"]


def test_building_a_pod_changes_neither_the_job_nor_differs_the_second_time():
    manifest = job("train", task(), volumes=[{"mountPath": "/a", "volumeClaim": {}}, {"mountPath": "/b", "volumeClaimName": "x"}])
    default(manifest)
    manifest["metadata"]["uid"] = "u1"
    before = clone(manifest)
    first, second = (build_pod(manifest, manifest["spec"]["tasks"][0], 0) for _ in range(2))
    assert first == second
    assert manifest == before
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in first["spec"]["volumes"]]
    assert claims == [claim_name(manifest, 0), "x"]


def test_of_two_volumes_with_one_claim_only_the_first_is_mounted():
    volumes = [{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/b", "volumeClaimName": "x"}]
    manifest = job("train", task(), volumes=volumes)
    default(manifest)
    manifest["metadata"]["uid"] = "u1"
    spec = build_pod(manifest, manifest["spec"]["tasks"][0], 0)["spec"]
    assert [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]] == ["/a"]


def test_restart_policy_and_names_of_the_template_stay_as_they_are():
    worker = task()
    worker["template"]["spec"].pop("restartPolicy")
    worker["template"]["spec"] |= {"schedulerName": "other", "priorityClassName": "high"}
    manifest = job("train", worker, priorityClassName="low")
    default(manifest)
    manifest["metadata"]["uid"] = "u1"
    spec = build_pod(manifest, worker, 0)["spec"]
    assert "restartPolicy" not in spec
    assert (spec["schedulerName"], spec["priorityClassName"]) == ("other", "high")


def bare(name: str = "solo", **more: dict) -> dict:
    meta = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "volcano", "containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_a_bare_pod_of_ours_gets_a_group_of_one(world: World):
    pod = world.cluster.create(POD, bare())
    world.turn()
    group = world.cluster.get(POD_GROUP, f"podgroup-{pod['metadata']['uid']}", "default")
    assert group["spec"] == {
        "minMember": 1,
        "minResources": {"cpu": "2", "nvidia.com/gpu": "1", "pods": "1"},
        "queue": "default",
    }
    assert annotations(world.pod("solo"))[keys.GROUP_NAME] == group["metadata"]["name"]
    assert world.pod("solo")["status"]["phase"] == "Running"
    world.cluster.delete(POD, "solo", "default", grace_seconds=0)
    world.turn()
    assert world.cluster.list(POD_GROUP).items == []


def test_a_pod_of_another_scheduler_gets_none(world: World):
    world.cluster.create(POD, bare(schedulerName="default-scheduler"))
    world.settle()
    assert world.cluster.list(POD_GROUP).items == []


def test_pods_of_one_owner_share_a_group(world: World):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner-1", "controller": True}
    for name in ("a", "b"):
        world.cluster.create(POD, bare(name, metadata={"ownerReferences": [owner]}))
    world.settle()
    assert [g["metadata"]["name"] for g in world.cluster.list(POD_GROUP).items] == ["podgroup-owner-1"]


def test_a_bare_pods_queue_is_its_own_or_its_namespaces(world: World):
    world.make_queue("pods-own")
    world.make_queue("namespaces")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    namespace["metadata"]["annotations"] = {keys.BARE_QUEUE_NAME: "namespaces"}
    world.cluster.create(NAMESPACE, namespace)
    world.cluster.create(POD, bare("a", metadata={"annotations": {keys.BARE_QUEUE_NAME: "pods-own"}}))
    world.cluster.create(POD, bare("b", metadata={"namespace": "team"}))
    world.settle()
    assert {g["spec"]["queue"] for g in world.cluster.list(POD_GROUP).items} == {"pods-own", "namespaces"}


def test_a_controllers_pod_in_a_queue_that_is_missing_waits_and_is_told_so(world: World):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner-1", "controller": True}
    meta = {"annotations": {keys.BARE_QUEUE_NAME: "nowhere"}, "ownerReferences": [owner]}
    world.cluster.create(POD, bare(metadata=meta))
    world.settle()
    assert [e["reason"] for e in world.cluster.list(EVENT).items] == ["PodGroupError"]
    world.make_queue("nowhere")
    world.clock.advance(60)
    world.settle()
    assert len(world.cluster.list(POD_GROUP).items) == 1


def test_a_plain_pod_is_refused_by_a_queue_that_is_closed_or_missing(world: World):
    world.make_queue("night")
    world.cluster.patch_status(QUEUE, "night", "", {"state": "Closed"})
    for queue, said in (("night", "is Closed"), ("nowhere", "there is no queue 'nowhere'")):
        with pytest.raises(Invalid, match=said) as error:
            world.cluster.create(POD, bare(metadata={"annotations": {keys.BARE_QUEUE_NAME: queue}}))
        assert [fault.pointer for fault in error.value.fields] == ["/metadata/annotations/scheduling.volcano.sh~1queue-name"]
