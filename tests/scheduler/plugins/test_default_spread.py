"""Spreading by the scheduler's own constraints of pods that are selected, and namespaces by their labels."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from scheduler import conf
from scheduler.placement.standing import Evaluator
from tests.scheduler.world import CONF, World, gang, group, node, pod

ZONE = "topology.kubernetes.io/zone"
_WEIGHTS = "leastrequested.weight: 0", "balancedresource.weight: 0", "podtopologyspread.weight: 1"
CONF_SPREAD = CONF.replace("- name: nodeorder", "\n      ".join(["- name: nodeorder\n    arguments:", *_WEIGHTS]))


def service(selector: Any, name: str = "web") -> Any:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": selector}}


def replica_set(name: str, selector: Any) -> Any:
    meta = {"name": name, "namespace": "default", "uid": f"rs-{name}"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"selector": selector}}


def labelled(one: Any, **labels: str) -> Any:
    one["metadata"]["labels"] = labels
    return one


def running(index: int, where: str, **labels: str) -> Any:
    found = labelled(pod("old", "w", index, {"cpu": 1}, nodeName=where), **labels)
    found["status"]["phase"] = "Running"
    return found


def nodes() -> list[Any]:
    """Two in zone a, one in zone b, one in none."""
    return [node("n0", labels={ZONE: "a"}), node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"})]


def score(world: World, name: str) -> list[float]:
    """What contextual scores say of each node for a waiting pod."""
    ssn = world.offline.cache.open_session("s", conf.load(CONF_SPREAD), now=0.0, random=Random(0))
    task = next(task for task in world.offline.cache.tasks.values() if task.name == name)
    evaluator: Evaluator = ssn.evaluator
    rows = ssn.nodes.live_rows()
    return [float(value) for value in evaluator.task_scores(task, rows)]


def test_a_pod_that_a_service_selects_is_spread_over_hosts_and_zones() -> None:
    wants = [group("a", 1), labelled(pod("a", "w", 0, {"cpu": 1}), app="web", other="x")]
    world = World(nodes(), service({"app": "web"}), running(0, "n0", app="web"), running(1, "n1", app="db"), wants)
    # raw: ln(3+2)·1 + ln(2+2)·1 + 2 + 4 = 9, ln(4)·1 + 6 = 7, 6; then 100·(9 + 6 − raw) / 9
    assert score(world, "a-w-0") == [66, 88, 100]
    assert World(nodes(), service({"app": "web"}), running(0, "n0", app="web"), wants, conf=CONF_SPREAD).cycle().bound == {
        "a-w-0": "n2"
    }


def test_a_node_without_a_zone_takes_part() -> None:
    wants = [group("a", 1), labelled(pod("a", "w", 0, {"cpu": 1}), app="web")]
    world = World(nodes(), node("bare"), service({"app": "web"}), running(0, "n0", app="web"), wants)
    # raw: ln(4+2)·1 + ln(3+2)·1 + 6 = 9, ln(5)·1 + 6 = 8, 6, and 2 where there is no zone
    assert score(world, "a-w-0") == [100 * 2 // 9, 100 * 3 // 9, 100 * 5 // 9, 100]


@pytest.mark.parametrize(
    ("selecting", "labels", "spec"),
    [
        ([], {"app": "web"}, {}),
        ([service({"app": "db"})], {"app": "web"}, {}),
        ([service({})], {"app": "web"}, {}),
        ([service({"app": "web"})], {"app": "web"}, {"topologySpreadConstraints": [
            {"maxSkew": 9, "topologyKey": "none", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]}),
    ],
    ids=["no service", "another's", "a service that selects nothing", "constraints of its own"],
)  # fmt: skip
def test_other_pods_are_not_spread(selecting: list[Any], labels: dict[str, str], spec: Any) -> None:
    wants = [group("a", 1), labelled(pod("a", "w", 0, {"cpu": 1}, **spec), **labels)]
    world = World(nodes(), selecting, running(0, "n0", app="web"), wants)
    assert score(world, "a-w-0") == [0, 0, 0]


def test_a_pod_is_spread_by_its_owners_selector() -> None:
    owned = labelled(pod("a", "w", 0, {"cpu": 1}), app="web", tier="1")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-web", "controller": True}
    ]
    selector = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["1"]}]}
    world = World(nodes(), replica_set("web", selector), running(0, "n0", tier="1"), group("a", 1), owned)
    assert score(world, "a-w-0") == [66, 88, 100]


def test_the_tasks_of_a_gang_spread_as_they_are_placed() -> None:
    parts = gang("a", 3, cpu=1)
    for each in parts[1:]:
        labelled(each, app="web")
    world = World(nodes(), service({"app": "web"}), parts, conf=CONF_SPREAD).cycle()
    assert sorted(world.bound.values()) == ["n0", "n1", "n2"]


# -- namespaces by their labels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchLabels": {"team": "red"}}, "n2"),
        ({"matchLabels": {"team": "blue"}}, ""),
        ({"matchLabels": {"kubernetes.io/metadata.name": "other"}}, "n2"),
        ({}, "n2"),
    ],
    ids=["its label", "another label", "its name", "all"],
)
def test_affinity_reaches_into_namespaces_by_their_labels(selector: Any, expected: str) -> None:
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": selector,
    }
    near = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "red"}}}
    there = running(0, "n2", app="db")
    there["metadata"]["namespace"] = "other"
    world = World(nodes(), other, there, gang("a", 1, cpu=1, pod_spec=near)).cycle()
    assert world.bound.get("a-w-0", "") == expected
