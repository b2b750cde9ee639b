"""One bad object is named, by the reason for which it was set aside or by a verdict, and never stops the others."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cluster.port import Obj
from scheduler.framework.explain import Code
from tests.scheduler.world import World, gang, node, pod, queue

CAPACITY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
GPUS = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: gputopology}]
"""
SPREADING = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""
ABSURD = [
    ("NaN", "NaN"),
    ("-4", "0 or more"),
    ("1e30", "can be counted"),
    ("Infinity", "Infinity"),
    ("four", "four"),
    ([4], "list"),
    ({}, ""),
]


def good() -> list[Any]:
    return [node("good"), gang("fine", 2, cpu=2, at=1)]


def survived(*bad: Any, conf: str = "") -> World:
    """Two cycles with bad objects before good ones, and two with them behind."""
    for parts in ([*bad, *good()], [*good(), *bad]):
        world = World(*parts, **({"conf": conf} if conf else {})).cycle(2)
        assert world.started()["fine"] == 2
    return world


def reasons(world: World) -> dict[str, str]:
    return {f"{found.kind} {found.key}": found.reason for found in world.offline.cache.doubts()}


def changed(obj: Obj, **status: Any) -> Obj:
    return {**obj, "status": {**obj["status"], **status}}


@pytest.mark.parametrize("resource", ["cpu", "memory", "nvidia.com/gpu"])
@pytest.mark.parametrize(("quantity", "word"), ABSURD)
def test_an_absurd_amount_of_a_node(resource: str, quantity: Any, word: str) -> None:
    bad = changed(node("bad", cpu=1), allocatable={"cpu": "1", "memory": "1Gi", "pods": "9", resource: quantity})
    world = survived(bad)
    assert "bad" not in world.offline.cache.nodes.index
    assert word in reasons(world)["Node /bad"]


@pytest.mark.parametrize("status", [{}, {"allocatable": None}, {"allocatable": {}}, {"allocatable": {"cpu": "0"}}])
def test_a_node_without_anything_takes_nothing(status: Any) -> None:
    world = survived({**node("bare"), "status": status})
    assert set(world.bound.values()) == {"good"}
    alone = World({**node("bare"), "status": status}, gang("j", 1, cpu=1)).cycle(2)
    assert (alone.verdicts["j"].nodes, alone.verdicts["j"].free) == (1, 0)


@pytest.mark.parametrize(("quantity", "word"), ABSURD)
def test_an_absurd_request_of_a_pod(quantity: Any, word: str) -> None:
    group, bad = gang("bad", 1, cpu=1, at=0)
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = quantity
    world = survived(group, bad)
    assert "bad-w-0" not in world.bound
    assert word in reasons(world)["Pod default/bad-w-0"]
    assert world.cycle(6).verdicts["bad"].code is Code.GANG_TOO_FEW_PODS


@pytest.mark.parametrize(
    "spec",
    [{"minResources": {"cpu": "NaN"}}, {"minResources": [1]}, {"minMember": "two"}, {"minMember": 2**40}, {"minMember": True}],
)
def test_a_podgroup_that_makes_no_sense(spec: Any) -> None:
    group, *pods = gang("bad", 1, cpu=1, at=0)
    world = survived({**group, "spec": {**group["spec"], **spec}}, pods)
    assert "bad" not in world.started()
    assert next(iter(spec)) in reasons(world)["PodGroup default/bad"]


def test_pods_of_a_deleted_group_are_named_and_wait() -> None:
    world = survived(pod("lost", "w", 0, {"cpu": 1}), pod("lost", "w", 1, {"cpu": 1}))
    assert reasons(world) == {"PodGroup default/lost": "it does not exist, and is named by so many pods: 2"}
    assert "lost-w-0" not in world.bound


@pytest.mark.parametrize("conf", ["", CAPACITY])
def test_a_cycle_of_queues(conf: str) -> None:
    ring = [queue("a", parent="b"), queue("b", parent="a"), gang("inside", 1, cpu=1, queue="a", at=0)]
    if not conf:  # without a tree parents do not matter
        assert survived(*ring).started() == {"fine": 2, "inside": 1}
        return
    world = World(*good(), *ring, conf=conf).cycle(2)
    assert {world.verdicts[name].code for name in ("fine", "inside")} == {Code.QUEUE_CYCLE}
    assert {world.verdicts[name].queue for name in ("fine", "inside")} == {"a"}


@pytest.mark.parametrize(("weight", "taken"), [(0, True), (1, True), (10**9, True), (10**10, False), (-1, True), (0.5, False)])
def test_an_absurd_weight(weight: Any, taken: bool) -> None:
    world = survived(queue("odd", weight), gang("inside", 1, cpu=1, queue="odd", at=0))
    assert world.started().get("inside", 0) == taken
    if not taken:
        assert "weight" in reasons(world)["Queue /odd"]
        assert world.verdicts["inside"].code is Code.QUEUE_MISSING


def test_objects_of_one_name_and_different_uids() -> None:
    first, second = gang("twice", 1, cpu=1, at=0), copy.deepcopy(gang("twice", 2, cpu=1, at=0))
    for obj in second:
        obj["metadata"]["uid"] += "-again"
    again = {**node("good", cpu=16), "metadata": {**node("good")["metadata"], "uid": "other"}}
    world = survived(first, second, again, queue("default"), queue("default", 7))
    assert world.started()["twice"] >= 2
    assert (world.offline.cache.nodes.used <= world.offline.cache.nodes.allocatable).all()


@pytest.mark.parametrize("table", ["  GPU0 GPU1\nGPU0 X NV4\nGPU1 SYS X\n", "GPU0", "\x00", "X" * 10_000])
def test_a_topology_that_contradicts_itself_is_told_and_its_gpus_count_as_alike(table: str, caplog: Any) -> None:
    odd = node("odd", cpu=8, gpu=2)
    odd["metadata"]["annotations"] = {"basalt.dev/gpu-topology": table}
    world = survived(odd, gang("train", 1, cpu=1, gpu=2, at=0), conf=GPUS)
    assert world.gpus["train-w-0"] == "0,1"
    assert "basalt.dev/gpu-topology" in caplog.text


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"name": "m", "uid": "m", "namespace": "default"}, "spec": []},
        {
            "metadata": {"name": "m", "uid": "m", "namespace": "default"},
            "spec": {"containers": [None], "schedulerName": "volcano"},
        },
        {
            "metadata": {"name": "m", "uid": "m", "namespace": "default", "creationTimestamp": "soon"},
            "spec": {"schedulerName": "volcano"},
        },
        {"metadata": {"name": "m", "uid": "m", "namespace": "default", "annotations": []}, "spec": {"schedulerName": "volcano"}},
    ],
)
def test_a_pod_of_no_shape(obj: Obj) -> None:
    world = survived({"apiVersion": "v1", "kind": "Pod", **obj})
    assert "m" not in world.bound


MISSHAPEN = [
    ({"apiVersion": "v1", "kind": "Service", "spec": {"selector": {"app": [None]}}}, "spec.selector['app'] must be a text"),
    ({"apiVersion": "v1", "kind": "Service", "spec": {"selector": "all"}}, "spec.selector must be a mapping"),
    ({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"selector": 7}}, "spec.selector must be a mapping"),
    ({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": [True]}}, "spec.drivers[0] must be a mapping"),
    ({"apiVersion": "v1", "kind": "Node", "spec": {"taints": [{"effect": {}}]}}, "spec.taints[0].effect must be a text"),
]


@pytest.mark.parametrize(("obj", "why"), MISSHAPEN)
def test_a_field_of_a_wrong_type_sets_its_object_aside_by_its_place(obj: Obj, why: str) -> None:
    world = survived({**obj, "metadata": {"name": "odd", "uid": "odd", "namespace": "default"}}, conf=SPREADING)
    (found,) = reasons(world).values()
    assert found.startswith(why)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"tolerations": ["a"]}, "spec.tolerations[0] must be a mapping"),
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [3]}}}, "spec.affinity.podAffinity"),
        ({"nodeSelector": {"zone": 1}}, "spec.nodeSelector['zone'] must be a text"),
    ],
)
def test_a_pod_with_a_field_of_a_wrong_type(spec: Any, why: str) -> None:
    group, bad = gang("bad", 1, cpu=1, at=0)
    world = survived(group, {**bad, "spec": {**bad["spec"], **spec}}, conf=SPREADING)
    assert reasons(world)["Pod default/bad-w-0"].startswith(why)
