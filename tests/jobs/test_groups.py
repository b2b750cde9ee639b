"""PodGroups of jobs and of bare pods, in exact numbers; and the pods that jobs make."""

from __future__ import annotations

import pytest

from cluster import objects
from cluster.errors import Invalid
from cluster.kinds import (
    DAEMON_SET,
    EVENT,
    NAMESPACE,
    PLAIN_JOB,
    POD,
    POD_GROUP,
    QUEUE,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from cluster.objects import annotations, clone
from cluster.port import Obj
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
    owner = replica_set(world)
    for name in ("a", "b"):
        world.cluster.create(POD, bare(name, metadata={"ownerReferences": [objects.owner_reference(owner)]}))
    world.settle()
    assert [g["metadata"]["name"] for g in world.cluster.list(POD_GROUP).items] == [f"podgroup-{objects.uid(owner)}"]


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
    meta = {"annotations": {keys.BARE_QUEUE_NAME: "nowhere"}, "ownerReferences": [objects.owner_reference(replica_set(world))]}
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


# --- owners -------------------------------------------------------------------------------------------------------


def replica_set(world: World, kind: Kind = REPLICA_SET, **notes: str) -> Obj:
    """An owner of pods, two replicas."""
    meta = {"name": "web", "namespace": "default", "annotations": notes}
    return world.cluster.create(
        kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": {"replicas": 2}}
    )


def owned(world: World, owner: Obj, name: str = "a", cpu: str = "2", **notes: str) -> Obj:
    """A pod of an owner, in a group of its own making."""
    pod = bare(name, metadata={"ownerReferences": [objects.owner_reference(owner)], "annotations": notes})
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    made = world.cluster.create(POD, pod)
    world.settle()
    return made


def group_of(world: World, owner: Obj) -> Obj:
    return world.cluster.get(POD_GROUP, f"podgroup-{objects.uid(owner)}", "default")


@pytest.mark.parametrize("kind", [REPLICA_SET, STATEFUL_SET, DAEMON_SET, PLAIN_JOB])
def test_a_group_takes_minimum_and_notes_from_its_owner(world: World, kind: Kind):
    notes = {keys.GROUP_MIN_MEMBER: "3", "volcano.sh/sla-waiting-time": "1h", "other": "x"}
    owner = replica_set(world, kind, **notes)
    owned(world, owner)
    group = group_of(world, owner)
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"] == {"cpu": "6", "pods": "3"}
    assert group["metadata"]["annotations"] == {"volcano.sh/sla-waiting-time": "1h"}


@pytest.mark.parametrize(("text", "minimum"), [("0", 0), ("-1", 1), ("many", 1), ("5", 5)])
def test_a_minimum_that_is_none_is_one_and_nought_stays_nought(world: World, text: str, minimum: int):
    owner = replica_set(world, **{keys.GROUP_MIN_MEMBER: text})
    owned(world, owner)
    assert group_of(world, owner)["spec"]["minMember"] == minimum


def test_a_group_follows_its_owners_annotations(world: World):
    owner = replica_set(world)
    owned(world, owner)
    notes = {keys.GROUP_MIN_MEMBER: "2", "volcano.sh/sla-waiting-time": "2h"}
    world.cluster.patch(REPLICA_SET, "web", "default", {"metadata": {"annotations": notes}})
    world.settle()
    group = group_of(world, owner)
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (2, "4")
    assert group["metadata"]["annotations"]["volcano.sh/sla-waiting-time"] == "2h"


def test_a_group_follows_its_newest_pod_and_no_older_one(world: World):
    owner = replica_set(world)
    owned(world, owner, "a", "2")
    world.clock.advance(5)
    owned(world, owner, "b", "4", **{keys.PREEMPTABLE: "true"})
    assert group_of(world, owner)["spec"]["minResources"] == {"cpu": "4", "pods": "1"}
    assert group_of(world, owner)["metadata"]["annotations"][keys.PREEMPTABLE] == "true"
    world.restart()
    world.settle()
    world.cluster.patch(POD, "a", "default", {"metadata": {"annotations": {keys.PREEMPTABLE: "false"}}})
    world.settle()
    assert group_of(world, owner)["metadata"]["annotations"][keys.PREEMPTABLE] == "true"
    world.cluster.patch(POD, "b", "default", {"metadata": {"annotations": {keys.PREEMPTABLE: "false"}}})
    world.settle()
    assert group_of(world, owner)["metadata"]["annotations"][keys.PREEMPTABLE] == "false"


def test_an_owner_without_replicas_has_no_group_and_gets_one_again(world: World):
    owner = replica_set(world)
    owned(world, owner)
    world.cluster.delete(POD, "a", "default", grace_seconds=0)
    world.cluster.patch(REPLICA_SET, "web", "default", {"spec": {"replicas": 0}})
    world.settle()
    assert world.cluster.list(POD_GROUP).items == []
    world.cluster.patch(REPLICA_SET, "web", "default", {"spec": {"replicas": 1}})
    owned(world, owner, "b")
    assert group_of(world, owner)["spec"]["minMember"] == 1


def test_what_the_scheduler_wrote_on_a_group_stays(world: World):
    owner = replica_set(world)
    owned(world, owner)
    name = f"podgroup-{objects.uid(owner)}"
    world.cluster.patch(POD_GROUP, name, "default", {"metadata": {"annotations": {"volcano.sh/job-allocated-hypernode": "h"}}})
    world.cluster.patch_status(POD_GROUP, name, "default", {"phase": "Running"})
    world.cluster.patch(REPLICA_SET, "web", "default", {"metadata": {"annotations": {keys.GROUP_MIN_MEMBER: "2"}}})
    world.settle()
    group = group_of(world, owner)
    assert (group["status"]["phase"], group["spec"]["minMember"]) == ("Running", 2)
    assert group["metadata"]["annotations"]["volcano.sh/job-allocated-hypernode"] == "h"


def test_pods_and_group_go_with_their_owner(world: World):
    owner = replica_set(world)
    owned(world, owner)
    world.cluster.delete(REPLICA_SET, "web", "default")
    world.turn()
    assert (world.cluster.list(POD).items, world.cluster.list(POD_GROUP).items) == ([], [])
