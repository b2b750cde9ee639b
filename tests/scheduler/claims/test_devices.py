"""Which devices claims are given, by the facts of Kubernetes's own tables of its structured allocator."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.explain import Code
from tests.scheduler.claims.make import (
    DRIVER,
    allocated,
    device,
    device_class,
    everything,
    obj,
    request,
    resource_claim,
    slice_of,
    template,
    using,
)
from tests.scheduler.world import World, created, gang, node, pod


def nodes(count: int = 2) -> list[Any]:
    return [node(f"n{i}", labels={"rack": f"r{i}"}) for i in range(count)]


def job(name: str, *claims: str, cpu: int = 1) -> list[Any]:
    return gang(name, 1, cpu=cpu, pod_spec=using(*claims), at=0)


def given(world: World, name: str) -> list[str]:
    """Pool and device of each result of a claim."""
    claim = world.offline.cache.estate.devices.claim(f"default/{name}")
    assert claim is not None
    found = (claim.get("status") or {}).get("allocation") or {"devices": {"results": []}}
    return [f"{result['pool']}/{result['device']}" for result in found["devices"]["results"]]


# -- claims that are not ready ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "code", "what"),
    [
        ([], Code.DEVICE_CLAIM_MISSING, "mine"),
        ([resource_claim("mine", request(of="none"))], Code.DEVICE_CLASS_MISSING, "none"),
        ([{**resource_claim("mine"), "metadata": {**resource_claim("mine")["metadata"], "deletionTimestamp": created(0)}}],
         Code.DEVICE_CLAIM_LEAVING, "mine"),
    ],
    ids=["missing", "no class", "leaving"],
)  # fmt: skip
def test_a_claim_that_is_not_ready_keeps_its_pod_off_every_node(there: list[Any], code: Code, what: str) -> None:
    world = World(nodes(), device_class(), slice_of("n0"), there, job("a", "mine")).cycle()
    verdict = world.verdicts["a"]
    assert (verdict.code, verdict.resource, verdict.nodes) == (code, what, 2)


def test_a_claim_from_a_template_is_waited_for_and_must_be_the_pods_own() -> None:
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "one"}]}
    waiting = gang("a", 1, cpu=1, pod_spec=spec, at=0)
    world = World(nodes(), device_class(), slice_of("n0"), template("one"), waiting).cycle()
    assert (world.verdicts["a"].code, world.verdicts["a"].resource) == (Code.DEVICE_CLAIM_MISSING, "gpus")
    waiting[1]["status"]["resourceClaimStatuses"] = [{"name": "gpus", "resourceClaimName": "a-gpus"}]
    world = World(nodes(), device_class(), slice_of("n0"), resource_claim("a-gpus", owner="other"), waiting).cycle()
    assert world.verdicts["a"].code is Code.DEVICE_CLAIM_FOREIGN
    world = World(nodes(), device_class(), slice_of("n0"), resource_claim("a-gpus", owner="a-w-0"), waiting).cycle()
    assert world.bound == {"a-w-0": "n0"}


# -- which devices -----------------------------------------------------------------------------------------------------------

A100 = [device("a", model="A100", memory="40Gi", numa=0), device("b", model="A100", memory="80Gi", numa=1)]
MIXED = [device("v", model="V100", memory="16Gi", numa=0), *A100, device("c", model="A100", memory="80Gi", numa=1)]


@pytest.mark.parametrize(
    ("requests", "extra", "expected"),
    [
        ([request()], {}, ["n0/v"]),
        ([request("req", 3)], {}, ["n0/v", "n0/a", "n0/b"]),
        ([request("req", 5)], {}, []),
        ([request("req", 1, "gpu", f'device.attributes["{DRIVER}"].model == "A100"')], {}, ["n0/a"]),
        ([request("req", 2, "gpu", f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("64Gi"))')], {}, ["n0/b", "n0/c"]),
        ([request("req", 1, "gpu", f'device.attributes["{DRIVER}"].model == "H100"')], {}, []),
        ([request("req", 1, "gpu", f'device.attributes["{DRIVER}"].absent')], {}, []),
        ([everything()], {}, ["n0/v", "n0/a", "n0/b", "n0/c"]),
        ([request("one"), request("two", 2)], {}, ["n0/v", "n0/a", "n0/b"]),
        ([request("one"), everything("two")], {}, []),
        ([request("req", 2)], {"constraints": [{"matchAttribute": f"{DRIVER}/model"}]}, ["n0/a", "n0/b"]),
        ([request("req", 2)], {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]}, ["n0/v", "n0/a"]),
        ([request("req", 3)], {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]}, []),
        ([request("req", 2)], {"constraints": [{"distinctAttribute": f"{DRIVER}/numa"}]}, ["n0/v", "n0/b"]),
        ([request("x"), request("y")], {"constraints": [{"requests": ["x", "y"], "matchAttribute": f"{DRIVER}/model"}]},
         ["n0/a", "n0/b"]),
        ([{"name": "req", "firstAvailable": [
            {"name": "big", "deviceClassName": "gpu", "count": 9}, {"name": "small", "deviceClassName": "gpu", "count": 1}]}],
         {}, ["n0/v"]),
    ],
    ids=["one", "three", "five of four", "by model", "by memory", "no such model", "no such attribute", "all", "two requests",
         "all but one is taken", "same model", "same numa", "three of one numa", "two numas", "across requests", "alternatives"],
)  # fmt: skip
def test_the_first_devices_that_meet_a_claim_are_given(requests: list[Any], extra: Any, expected: list[str]) -> None:
    world = World(nodes(), device_class(), slice_of("n0", MIXED), resource_claim("mine", *requests, **extra), job("a", "mine"))
    assert given(world.cycle(), "mine") == expected
    assert world.bound == ({"a-w-0": "n0"} if expected else {})


def test_how_many_are_missing_is_said() -> None:
    world = World(nodes(), device_class(), slice_of("n0", 3), resource_claim("mine", request("req", 5)), job("a", "mine")).cycle()
    verdict = world.verdicts["a"]
    assert (verdict.code, verdict.resource) == (Code.DEVICES_INSUFFICIENT, "gpu")
    assert (verdict.asked, verdict.free, verdict.short, verdict.rejected) == (5000, 3000, 2000, {"devices": 2})


def test_a_selector_that_no_device_meets_is_said() -> None:
    wanted = request("req", 1, "gpu", 'device.driver == "other"')
    world = World(nodes(), device_class(), slice_of("n0"), resource_claim("mine", wanted), job("a", "mine")).cycle()
    assert world.verdicts["a"].code is Code.DEVICE_SELECTOR


def test_a_selector_that_is_no_expression_meets_nothing() -> None:
    wanted = request("req", 1, "gpu", "device.driver ==")
    world = World(nodes(), device_class(), slice_of("n0"), resource_claim("mine", wanted), job("a", "mine")).cycle()
    assert world.verdicts["a"].code is Code.DEVICE_SELECTOR


def test_a_device_with_a_taint_is_for_those_who_tolerate_it() -> None:
    tainted = slice_of("n0", [device("ill", taints=[{"key": "ill", "effect": "NoSchedule"}])])
    world = World(nodes(), device_class(), tainted, resource_claim("mine"), job("a", "mine")).cycle()
    assert not world.bound
    patient = request(tolerations=[{"key": "ill", "operator": "Exists"}])
    world = World(nodes(), device_class(), tainted, resource_claim("mine", patient), job("a", "mine")).cycle()
    assert given(world, "mine") == ["n0/ill"]


def test_devices_for_administration_are_shared() -> None:
    held = resource_claim("theirs", status=allocated("n0", "gpu-0", users=("x",)))
    admin = resource_claim("mine", request(adminAccess=True))
    world = World(nodes(), device_class(), slice_of("n0", 1), held, admin, job("a", "mine")).cycle()
    assert given(world, "mine") == ["n0/gpu-0"]


# -- pools -------------------------------------------------------------------------------------------------------------------


def test_of_a_pool_only_its_newest_generation_counts_and_only_when_it_is_complete() -> None:
    old, new = slice_of("n0", 2, name="old"), slice_of("n0", 1, name="new", generation=2)
    claim = resource_claim("mine", request("req", 2))
    assert not World(nodes(), device_class(), old, new, claim, job("a", "mine")).cycle().bound
    part = slice_of("n0", 2)
    part["spec"]["pool"]["resourceSliceCount"] = 2
    assert not World(nodes(), device_class(), part, claim, job("a", "mine")).cycle().bound


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"allNodes": True}, None),
        ({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}},
         {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}),
    ],
    ids=["all nodes", "selected nodes"],
)  # fmt: skip
def test_devices_that_several_nodes_reach_say_so_in_the_allocation(where: Any, expected: Any) -> None:
    shared = slice_of("", 1, pool="fabric", name="fabric", where=where)
    world = World(nodes(), device_class(), shared, resource_claim("mine"), job("a", "mine")).cycle()
    claim = world.offline.cache.estate.devices.claim("default/mine")
    assert claim is not None
    assert claim["status"]["allocation"].get("nodeSelector") == expected
    assert world.bound == {"a-w-0": "n1" if expected else "n0"}


def test_the_configuration_of_class_and_claim_goes_with_the_devices() -> None:
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"mode": "x"}}}
    claim = resource_claim("mine", config=[{"requests": ["req"], **opaque}])
    world = World(nodes(), device_class(config=[opaque]), slice_of("n0"), claim, job("a", "mine")).cycle()
    found = world.offline.cache.estate.devices.claim("default/mine")
    assert found is not None
    assert [each["source"] for each in found["status"]["allocation"]["devices"]["config"]] == ["FromClass", "FromClaim"]


# -- several pods --------------------------------------------------------------------------------------------------------------


def test_two_pods_are_not_given_one_device() -> None:
    claims = [resource_claim(name) for name in ("a", "b", "c")]
    jobs = [job(name, name) for name in ("a", "b", "c")]
    world = World(nodes(1), device_class(), slice_of("n0", 2), claims, *jobs).cycle(3)
    assert given(world, "a") + given(world, "b") == ["n0/gpu-0", "n0/gpu-1"]
    assert sorted(world.bound) == ["a-w-0", "b-w-0"]


def test_pods_that_share_a_claim_share_its_devices_and_its_node() -> None:
    pods = [pod("g", "w", i, {"cpu": 1}, **using("mine")) for i in range(2)]
    world = World(nodes(), device_class(), slice_of("n1", 1), resource_claim("mine"), gang("g", 0, 2, at=0), pods).cycle()
    assert world.bound == {"g-w-0": "n1", "g-w-1": "n1"}
    claim = world.offline.cache.estate.devices.claim("default/mine")
    assert claim is not None
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["g-w-0", "g-w-1"]


def test_a_gang_gets_all_its_devices_or_none() -> None:
    pods = [pod("g", "w", i, {"cpu": 1}, **using(f"c{i}")) for i in range(3)]
    claims = [resource_claim(f"c{i}") for i in range(3)]
    world = World(nodes(), device_class(), slice_of("n0", 2), claims, gang("g", 0, 3, at=0), pods).cycle(2)
    assert not world.bound
    assert not world.offline.cache.estate.devices.grants
    assert world.verdicts["g"].placeable == 2


def test_an_allocated_claim_keeps_its_pod_on_its_node() -> None:
    claim = resource_claim("mine", status=allocated("n1", "gpu-0"))
    assert World(nodes(), device_class(), slice_of("n1"), claim, job("a", "mine")).cycle().bound == {"a-w-0": "n1"}


def test_a_pod_that_asks_for_nothing_but_devices_is_placed_by_backfill() -> None:
    bare = gang("a", 1, pod_spec=using("mine"), at=0)
    assert World(nodes(), device_class(), slice_of("n1"), resource_claim("mine"), bare).cycle().bound == {"a-w-0": "n1"}


def test_devices_of_pods_that_leave_are_waited_for_and_not_taken() -> None:
    leaving = pod("old", "w", 0, {"cpu": 1}, nodeName="n0", **using("theirs"))
    leaving["status"]["phase"] = "Running"
    leaving["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    theirs = resource_claim("theirs", status=allocated("n0", "gpu-0", users=("old-w-0",)))
    world = World(nodes(1), device_class(), slice_of("n0", 1), theirs, leaving, resource_claim("mine"), job("a", "mine")).cycle()
    assert not world.bound
    assert world.cycles[-1].record.pipelined == {"default/a-w-0": "n0"}


def test_preemption_makes_room_for_devices() -> None:
    conf = """\
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
"""
    high = obj("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    held = pod("old", "w", 0, {"cpu": 1}, nodeName="n0", **using("theirs"))
    held["status"]["phase"] = "Running"
    theirs = resource_claim("theirs", status=allocated("n0", "gpu-0", users=("old-w-0",)))
    wants = gang(
        "a", 1, cpu=1, pod_spec={**using("mine"), "priorityClassName": "high", "priority": 1000}, at=1, priorityClassName="high"
    )
    parts = [
        nodes(1),
        high,
        device_class(),
        slice_of("n0", 1),
        gang("old", 0, 0, at=0),
        held,
        theirs,
        resource_claim("mine"),
        wants,
    ]
    world = World(*parts, conf=conf).cycle()
    assert [each.name for each in world.cycles[0].evictions] == ["old-w-0"]
    assert world.cycles[0].record.pipelined == {"default/a-w-0": "n0"}
