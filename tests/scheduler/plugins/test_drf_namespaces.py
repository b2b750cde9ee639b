"""drf between namespaces: turns within a queue by weighted shares, weights from quotas, and who gives way to whom."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cluster.port import Obj
from scheduler.model.quotas import quota
from scheduler.plugins.drf import weight_of
from tests.scheduler.world import World, group, node, pod, queue

CONF = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: drf
    enableNamespaceOrder: true
  - name: proportion
"""


def jobs(namespace: str, count: int, *, queue: str = "default", at: int = 0, cpu: int = 1) -> list[Obj]:
    """So many jobs of one pod each."""
    made = []
    for i in range(count):
        name = f"{namespace}{at + i}"
        head = group(name, 1, queue=queue, at=at + i)
        one = pod(name, "w", 0, {"cpu": cpu})
        for obj in (head, one):
            obj["metadata"]["namespace"] = namespace
            obj["metadata"]["uid"] += namespace
        made += [head, one]
    return made


def weighing(namespace: str, weight: Any, name: str = "q") -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"hard": {"volcano.sh/namespace.weight": weight}},
    }


def placed(world: World) -> Counter[str]:
    return Counter(binding.namespace for cycle in world.cycles for binding in cycle.binds)


def test_the_namespace_that_holds_least_goes_first_whoever_came_first() -> None:
    objs = [node("n0", cpu=6), jobs("a", 10), jobs("b", 2, at=50)]
    assert placed(World(*objs, conf=CONF).cycle()) == {"a": 4, "b": 2}
    off = CONF.replace("    enableNamespaceOrder: true\n", "")
    assert placed(World(*objs, conf=off).cycle()) == {"a": 6}


def test_a_weight_buys_a_larger_share() -> None:
    objs = [node("n0", cpu=8), weighing("a", "3"), jobs("a", 10), jobs("b", 10, at=50)]
    assert placed(World(*objs, conf=CONF).cycle()) == {"a": 6, "b": 2}


@pytest.mark.parametrize(
    ("queues", "weights", "asked", "expected"),
    [
        # The two tables of Volcano's design of it: 16 cpus, asked for by two namespaces in each of two queues.
        ((1, 1), (1, 1, 1, 1), (5, 10, 10, 2), (4, 4, 6, 2)),
        ((1, 3), (3, 1, 2, 6), (5, 10, 10, 2), (3, 1, 10, 2)),
    ],
)
def test_queues_are_shared_first_and_then_their_namespaces(
    queues: tuple[int, int], weights: tuple[int, ...], asked: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    objs: list[Any] = [node("n0", cpu=16), queue("q1", queues[0]), queue("q2", queues[1])]
    for i, (weight, count) in enumerate(zip(weights, asked, strict=True)):
        where = f"ns{i + 1}"
        objs += [weighing(where, str(weight)), *jobs(where, count, queue="q1" if i < 2 else "q2", at=100 * i)]
    found = placed(World(*objs, conf=CONF).cycle())
    assert tuple(found[f"ns{i + 1}"] for i in range(4)) == expected


@pytest.mark.parametrize(
    ("given", "weight"),
    [([], 1), (["2"], 2), (["2", "5", "3"], 5), (["0"], 1), (["500m"], 1), (["0", "4"], 4)],
)
def test_the_largest_weight_counts_and_what_is_none_is_one(given: list[str], weight: int) -> None:
    assert weight_of([quota(weighing("a", each, f"q{i}")) for i, each in enumerate(given)]) == weight


def running(objs: list[Obj]) -> list[Obj]:
    for obj in objs:
        obj["status"] = {"phase": "Running"}
        if obj["kind"] == "Pod":
            obj["spec"] |= {"nodeName": "n0", "priority": 1}
    return objs


@pytest.mark.parametrize(
    ("theirs", "weight", "evicted"),
    [
        (4, "1", 1),  # b comes to 1 of 4, a keeps 3
        (4, "4", 0),  # a keeps 3/4 over 4: less than b's 1/4
        (4, "3", 0),  # even: then the jobs, of which a's would keep nothing, and b's come to 1/4
    ],
)
def test_those_give_way_whose_namespace_keeps_more(theirs: int, weight: str, evicted: int) -> None:
    text = CONF.replace('"allocate"', '"allocate, preempt"').replace("- name: gang", "- name: priority")
    text = text.replace("  - name: proportion\n", "")
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 1), ("high", 9))
    ]
    there, wanting = running(jobs("a", theirs)), jobs("b", 1, at=50)
    for obj in there:
        if obj["kind"] == "PodGroup":
            obj["spec"]["priorityClassName"] = "low"
            obj["spec"]["minMember"] = 0
    wanting[0]["spec"]["priorityClassName"] = "high"
    wanting[1]["spec"]["priority"] = 9
    only_drf = text.replace("  - name: priority\n", "  - name: priority\n    enablePreemptable: false\n")
    world = World(node("n0", cpu=4), weighing("a", weight), classes, there, wanting, conf=only_drf).cycle()
    assert len(world.cycles[0].evictions) == evicted
