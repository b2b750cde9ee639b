"""Admission of pods, PodGroups, Commands and priority classes, through the store."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest

from cluster.errors import BadRequest, Invalid
from cluster.kinds import COMMAND, POD, POD_GROUP, PRIORITY_CLASS, Kind
from tests.jobs.world import World


def pointers(world: World, kind: Kind, obj: dict[str, Any]) -> set[str]:
    with pytest.raises(Invalid) as error:
        world.cluster.create(kind, obj)
    return {fault.pointer for fault in error.value.fields}


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"schedulerName": "volcano", "containers": containers, **spec},
    }


def priority_class(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


def test_a_pods_priority_is_its_classs_value(world: World):
    world.cluster.create(PRIORITY_CLASS, priority_class("high", 1000))
    assert world.cluster.create(POD, pod(priorityClassName="high"))["spec"]["priority"] == 1000
    assert world.cluster.create(POD, pod("q"))["spec"]["priority"] == 0
    world.cluster.create(PRIORITY_CLASS, priority_class("usual", 7, globalDefault=True))
    assert world.cluster.create(POD, pod("r"))["spec"]["priority"] == 7
    assert world.cluster.create(POD, pod("s", priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000


def test_a_pod_of_a_missing_class_or_with_a_faulty_spec_is_refused(world: World):
    assert pointers(world, POD, pod(priorityClassName="ghost")) == {"/spec/priorityClassName"}
    assert pointers(world, POD, pod(containers=[{"name": "c"}])) == {"/spec/containers/0/image"}
    assert pointers(world, POD, pod(containers="none")) == {"/spec/containers"}


@pytest.mark.parametrize(
    ("value", "good"), [("2", True), ("50%", True), ("0", False), ("100%", False), ("-1", False), ("x", False)]
)
def test_disruption_budgets_are_counts_or_percents(world: World, value, good):
    obj = pod()
    obj["metadata"]["annotations"] = {"volcano.sh/jdb-min-available": value}
    if good:
        world.cluster.create(POD, obj)
    else:
        assert pointers(world, POD, obj) == {"/metadata/annotations/volcano.sh~1jdb-min-available"}


def test_both_disruption_budgets_at_once_are_refused_for_our_pods_only(world: World):
    obj = pod()
    obj["metadata"]["annotations"] = {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "1"}
    assert pointers(world, POD, obj) == {"/metadata/annotations/volcano.sh~1jdb-max-unavailable"}
    obj["spec"]["schedulerName"] = "default-scheduler"
    world.cluster.create(POD, obj)


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"queue": "nowhere"}, "/spec/queue"),
        ({"minMember": "3"}, "/spec/minMember"),
        ({"minResources": {"cpu": "x"}}, "/spec/minResources/cpu"),
        ({"networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"}}, "/spec/networkTopology/highestTierName"),
        (
            {"subGroupPolicy": [{"name": "a", "networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"}}]},
            "/spec/subGroupPolicy/0/networkTopology/highestTierName",
        ),
        ({"minMember": -1}, "/spec/minMember"),
    ],
)
def test_a_faulty_group_is_refused_where_it_is_faulty(world: World, spec, where):
    meta = {"name": "g", "namespace": "default"}
    obj = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}
    assert pointers(world, POD_GROUP, obj) == {where}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"action": "Explode"}, "/action"),
        ({"action": "OpenQueue"}, "/action"),
        ({"target": None}, "/target"),
        ({"target": {"apiVersion": "v1", "kind": "Pod", "name": "x"}}, "/target/kind"),
    ],
)
def test_a_command_must_be_one_that_its_target_knows(world: World, change, where):
    sound = {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {"name": "c", "namespace": "default"},
        "action": "AbortJob",
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"},
    }
    assert pointers(world, COMMAND, copy.deepcopy(sound) | change) == {where}


def test_priority_classes_have_limits_and_one_default(world: World):
    assert pointers(world, PRIORITY_CLASS, priority_class("big", 1_000_000_001)) == {"/value"}
    assert pointers(world, PRIORITY_CLASS, priority_class("system-mine", 5)) == {"/metadata/name"}
    assert pointers(world, PRIORITY_CLASS, priority_class("text", "5")) == {"/value"}
    world.cluster.create(PRIORITY_CLASS, priority_class("one", 5, globalDefault=True))
    assert pointers(world, PRIORITY_CLASS, priority_class("two", 5, globalDefault=True)) == {"/globalDefault"}
    with pytest.raises(Invalid, match="cannot change"):
        world.cluster.patch(PRIORITY_CLASS, "one", "", {"value": 6})


@pytest.mark.parametrize("kind", [POD, POD_GROUP, COMMAND, PRIORITY_CLASS])
@pytest.mark.parametrize("spec", [None, 5, "text", [], {"spec": []}, {"spec": 3, "target": 3, "value": []}])
def test_objects_of_a_wrong_shape_are_judged_and_never_break(world: World, kind, spec):
    meta = {"name": "x"} | ({"namespace": "default"} if kind.namespaced else {})
    rest = spec if isinstance(spec, dict) else {"spec": spec}
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **rest}
    taken: list[str] = []
    with contextlib.suppress(BadRequest, Invalid):  # anything else is a bug
        taken = [world.cluster.create(kind, obj)["metadata"]["name"]]
    assert [each["metadata"]["name"] for each in world.cluster.list(kind).items] == taken
