"""Quotas of devices and gates of queues: the facts of Volcano's own table, and more."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.explain import Code, Stage
from tests.scheduler.claims.make import (
    allocated,
    device_class,
    everything,
    request,
    resource_claim,
    slice_of,
    template,
    using,
)
from tests.scheduler.world import World, gang, node, pod, queue

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: capacity
    enableHierarchy: {tree}
    arguments:
      capacity.DRAConsumableCapacityEnable: {consumable}
"""
FLAT = CONF.format(tree="false", consumable="false")


def quota(name: str, capability: dict[str, object], **spec: Any) -> Any:
    return queue(name, capability={key: str(value) for key, value in capability.items()}, **spec)


def wanting(name: str, where: str, count: int, of: str = "gpu.com", **more: Any) -> list[Any]:
    """A job of one pod with a claim of its own; it need not be admitted any more."""
    group, one = gang(name, 1, cpu=1, queue=where, pod_spec=using(f"{name}-claim"))
    group["spec"]["minTaskMember"] = {"w": 1}
    group["status"]["phase"] = more.pop("phase", "Inqueue")
    return [group, one, resource_claim(f"{name}-claim", request("req", count, of, **more))]


@pytest.mark.parametrize(
    ("limits", "jobs", "bound"),
    [
        ({"deviceclass/gpu.com": 2}, [wanting("p1", "q", 1)], ["p1-w-0"]),
        ({"deviceclass/gpu.com": 1}, [wanting("p2", "q", 2)], []),
        ({"deviceclass/gpu.com": 1, "deviceclass/nic.com": 1},
         [wanting("p1", "q", 1), wanting("p2", "q", 1, "nic.com"), wanting("p3", "q", 1)], ["p1-w-0", "p2-w-0"]),
        ({"deviceclass/gpu.com": 1}, [wanting("p1", "q", 1), wanting("p2", "q", 100, "nic.com")], ["p1-w-0", "p2-w-0"]),
        ({"deviceclass/gpu.com": 1}, [wanting("p1", "q", 2, phase="Pending")], []),
        ({"deviceclass/gpu.com": 0}, [wanting("p1", "q", 5)], ["p1-w-0"]),
        ({"deviceclass/gpu.com": 9}, [wanting("p1", "q", (1 << 60))], []),
    ],
    ids=["within", "beyond", "two classes", "another class", "not admitted", "none is no limit", "absurd"],
)  # fmt: skip
def test_devices_count_against_the_quota_of_their_class(limits: Any, jobs: list[Any], bound: list[str]) -> None:
    world = World(node("n1", 10), quota("q", limits), *jobs, conf=FLAT).cycle()
    assert sorted(world.bound) == bound


def test_what_is_asked_and_left_is_said() -> None:
    held = [quota("q", {"deviceclass/gpu.com": 3}), wanting("p1", "q", 2)]
    world = World(node("n1", 10), *held, wanting("p2", "q", 2), conf=FLAT).cycle()
    verdict = world.verdicts["p2"]
    assert (verdict.stage, verdict.code, verdict.queue, verdict.resource) == (
        Stage.QUEUE_LIMIT, Code.DEVICE_QUOTA, "q", "deviceclass/gpu.com",
    )  # fmt: skip
    assert (verdict.asked, verdict.free, verdict.short, verdict.limit) == (2000, 1000, 1000, 3000)
    assert world.cycles[0].record.queues["q"].allocated["deviceclass/gpu.com"] == 2000


def test_a_claim_that_pods_share_is_charged_once() -> None:
    pods = [pod("g", "w", i, {"cpu": 1}, **using("shared")) for i in range(3)]
    shared = resource_claim("shared", request("req", 2, "gpu.com"))
    group, alone = gang("g", 0, 1, queue="q", at=0), wanting("p", "q", 1)
    world = World(node("n1", 10), quota("q", {"deviceclass/gpu.com": 2}), group, pods, shared, alone, conf=FLAT).cycle(2)
    assert sorted(world.bound) == ["g-w-0", "g-w-1", "g-w-2"]


def test_claims_from_a_template_are_charged_a_pod_each() -> None:
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two"}]}
    parts = [quota("q", {"deviceclass/gpu.com": 5}), template("two", request("req", 2, "gpu.com"))]
    world = World(node("n1", 10), *parts, gang("g", 4, 1, cpu=1, queue="q", pod_spec=spec), conf=FLAT).cycle(3)
    assert len(world.bound) == 2


@pytest.mark.parametrize(("count", "expected"), [("All", 1), ("first", 1)])
def test_what_cannot_be_counted_is_not(count: str, expected: int) -> None:
    wanted = everything(of="gpu.com") if count == "All" else {
        "name": "req", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.com", "count": 9}]}  # fmt: skip
    group, one = gang("p", 1, cpu=1, queue="q", pod_spec=using("c"))
    world = World(node("n1"), quota("q", {"deviceclass/gpu.com": 1}), group, one, resource_claim("c", wanted), conf=FLAT).cycle()
    assert len(world.bound) == expected


@pytest.mark.parametrize(
    ("limits", "consumable", "bound"),
    [
        ({"deviceclass/gpu.com": 9, "memory.deviceclass/gpu.com": "40Gi"}, "true", True),
        ({"deviceclass/gpu.com": 9, "memory.deviceclass/gpu.com": "39Gi"}, "true", False),
        ({"deviceclass/gpu.com": 9, "cores.deviceclass/gpu.com": "39"}, "true", False),
        ({"deviceclass/gpu.com": 9, "memory.deviceclass/gpu.com": "1Gi"}, "false", True),
        ({"deviceclass/nic.com": 9}, "true", True),
    ],
    ids=["enough", "too little", "not named", "switched off", "another class"],
)
def test_the_capacity_of_devices_has_quotas_too(limits: Any, consumable: str, bound: bool) -> None:
    job = wanting("p", "q", 1, capacity={"requests": {"memory": "40Gi"}})
    world = World(node("n1"), quota("q", limits), job, conf=CONF.format(tree="false", consumable=consumable)).cycle()
    assert bool(world.bound) is bound


def test_ancestors_have_quotas() -> None:
    tree = CONF.format(tree="true", consumable="false")
    queues = [queue("root"), quota("dept", {"deviceclass/gpu.com": 3}), queue("a", parent="dept"), quota("b", {}, parent="dept")]
    world = World(node("n1", 10), queues, wanting("p1", "a", 2), wanting("p2", "b", 2), wanting("p3", "b", 1), conf=tree).cycle()
    assert sorted(world.bound) == ["p1-w-0", "p3-w-0"]
    assert world.verdicts["p2"].queue == "dept"


def test_jobs_admitted_in_one_cycle_count_with_each_other() -> None:
    jobs = [wanting(f"p{i}", "q", 2, phase="Pending") for i in range(2)]
    world = World(node("n1", 10), quota("q", {"deviceclass/gpu.com": 3}), *jobs, conf=FLAT).cycle()
    assert [world.phase(f"p{i}") for i in range(2)].count("Pending") == 1
    assert {verdict.code for verdict in world.verdicts.values() if verdict is not None} == {Code.DEVICE_QUOTA}


def test_devices_that_run_already_are_counted() -> None:
    held = wanting("old", "q", 2)
    held[1]["spec"]["nodeName"], held[1]["status"]["phase"] = "n1", "Running"
    held[2]["status"] = allocated("n1", "gpu-0", "gpu-1", users=("old-w-0",))
    parts = [device_class("gpu.com"), slice_of("n1", 4), quota("q", {"deviceclass/gpu.com": 3})]
    world = World(node("n1", 10), *parts, held, wanting("p1", "q", 2), wanting("p2", "q", 1), conf=FLAT).cycle()
    assert list(world.bound) == ["p2-w-0"]


# -- gates -----------------------------------------------------------------------------------------------------------------

GATE = "scheduling.volcano.sh/queue-allocation-gate"


def held_at_gate(name: str, cpu: int, *, off: bool = False, **spec: Any) -> list[Any]:
    group, one = gang(name, 1, cpu=cpu, queue="q", pod_spec=spec)
    group["status"]["phase"] = "Inqueue"
    one["metadata"]["annotations"][GATE] = "true"
    if not off:
        one["spec"]["schedulingGates"] = [{"name": GATE}]
    return [group, one]


def plain(name: str, cpu: int) -> list[Any]:
    group, one = gang(name, 1, cpu=cpu, queue="q")
    group["status"]["phase"] = "Inqueue"
    return [group, one]


def test_a_gate_opens_when_the_queue_has_room_and_the_pod_is_placed_after_it() -> None:
    world = World(node("n1", 10), quota("q", {"cpu": 4}), held_at_gate("a", 3), held_at_gate("b", 3), conf=FLAT).cycle()
    assert [task.name for task in world.cycles[0].released] == ["a-w-0"]
    assert not world.bound
    world.cycle()
    assert world.bound == {"a-w-0": "n1"}
    assert not world.cycle().cycles[-1].released, "b still finds no room"


def test_room_is_kept_for_a_pod_whose_gate_opened_until_it_has_a_node() -> None:
    nowhere = held_at_gate("a", 3, off=True, nodeSelector={"is": "nowhere"})
    conf = FLAT.replace("- name: gang", "- name: gang\n  - name: predicates")
    world = World(node("n1", 10), quota("q", {"cpu": 4}), nowhere, plain("b", 2), plain("c", 1), conf=conf).cycle(2)
    assert list(world.bound) == ["c-w-0"]
    assert (world.verdicts["b"].code, world.verdicts["b"].free, world.verdicts["b"].limit) == (Code.QUEUE_CAPABILITY, 1000, 4000)


def test_the_pod_itself_finds_what_is_kept_for_it() -> None:
    world = World(node("n1", 10), quota("q", {"cpu": 4}), held_at_gate("a", 4, off=True), conf=FLAT).cycle()
    assert world.bound == {"a-w-0": "n1"}
    two = [held_at_gate("a", 2, off=True), held_at_gate("b", 2, off=True)]
    assert len(World(node("n1", 10), quota("q", {"cpu": 4}), *two, conf=FLAT).cycle().bound) == 2


def test_another_gate_keeps_a_pod_held() -> None:
    other = held_at_gate("a", 1)
    other[1]["spec"]["schedulingGates"].append({"name": "example.com/mine"})
    world = World(node("n1", 10), quota("q", {"cpu": 4}), other, conf=FLAT).cycle()
    assert not world.cycles[0].released
