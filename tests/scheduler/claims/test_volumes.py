"""Where claims for volumes let pods run, by the facts of Kubernetes's own tables."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.explain import Code
from tests.scheduler.claims.make import ZONE, bound, claim, csi_node, mounting, obj, storage_class, volume
from tests.scheduler.world import CONF, World, gang, node, pod

LOCAL = "kubernetes.io/no-provisioner"


def nodes(count: int = 3) -> list[Any]:
    return [node(f"n{i}", labels={ZONE: f"z{i}"}) for i in range(count)]


def job(name: str, *claims: str, cpu: int = 1) -> list[Any]:
    return gang(name, 1, cpu=cpu, pod_spec=mounting(*claims), at=0)


def refusals(world: World, name: str) -> dict[str, int]:
    return {cause: n for cause, n in world.verdicts[name].rejected.items() if cause.startswith("volume")}


# -- claims that are not there, or not ready -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "code"),
    [
        ([], Code.VOLUME_MISSING),
        ([claim("data", of="now"), storage_class("now", delayed=False)], Code.VOLUME_UNBOUND),
        ([claim("data", of="")], Code.VOLUME_UNBOUND),
        ([claim("data", status={"phase": "Lost"})], Code.VOLUME_LOST),
        ([claim("data", deletionTimestamp="2030-01-01T00:00:00Z")], Code.VOLUME_LEAVING),
    ],
    ids=["missing", "immediate", "no class", "lost", "leaving"],
)
def test_a_claim_that_is_not_ready_keeps_its_pod_off_every_node(there: list[Any], code: Code) -> None:
    world = World(nodes(), there, job("a", "data")).cycle()
    verdict = world.verdicts["a"]
    assert (verdict.code, verdict.resource, verdict.nodes) == (code, "data", 3)
    assert not world.bound


def test_a_claim_that_is_bound_keeps_its_pod_where_the_volume_is() -> None:
    world = World(nodes(), volume("pv", on="n1"), bound("data", "pv"), job("a", "data")).cycle()
    assert world.bound == {"a-w-0": "n1"}


def test_a_bound_claim_whose_volume_is_elsewhere_refuses_by_its_own_cause() -> None:
    world = World(nodes(), volume("pv", on="n7"), bound("data", "pv"), job("a", "data")).cycle()
    assert refusals(world, "a") == {"volume_node": 3}


# -- zones -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({ZONE: "z1"}, "n1"),
        ({ZONE: "z0__z2"}, "n0"),
        ({"failure-domain.beta.kubernetes.io/zone": "z2"}, "n2"),
        ({"topology.kubernetes.io/region": "r9"}, ""),
        ({}, "n0"),
    ],
    ids=["zone", "set of zones", "old label", "region that no node names", "no zone"],
)
def test_a_volume_with_a_zone_is_used_there(labels: dict[str, str], expected: str) -> None:
    world = World(nodes(), volume("pv", labels=labels), bound("data", "pv"), job("a", "data")).cycle()
    assert world.bound.get("a-w-0", "") == expected
    if not expected:
        assert refusals(world, "a") == {"volume_zone": 3}


def test_nodes_that_name_no_zone_are_in_every_zone() -> None:
    world = World(node("bare"), volume("pv", labels={ZONE: "z1"}), bound("data", "pv"), job("a", "data")).cycle()
    assert world.bound == {"a-w-0": "bare"}


# -- volumes that exist ------------------------------------------------------------------------------------------------------


def local(*volumes: Any) -> list[Any]:
    return [storage_class("fast", LOCAL), *volumes]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (claim("data", "5Gi"), "five"),
        (claim("data", "6Gi"), "ten"),
        (claim("data", "11Gi"), ""),
        (claim("data", "1Gi", mode="ReadWriteMany"), ""),
        (claim("data", "1Gi", of="slow"), ""),
        (claim("data", "1Gi", volumeMode="Block"), ""),
        (claim("data", "1Gi", selector={"matchLabels": {"kind": "ssd"}}), "ten"),
    ],
    ids=["smallest that is large enough", "larger", "too large", "access mode", "class", "volume mode", "selector"],
)
def test_a_waiting_claim_takes_the_smallest_volume_that_fits(wanted: Any, expected: str) -> None:
    offers = local(volume("ten", "10Gi", on="n2", labels={"kind": "ssd"}), volume("five", "5Gi", on="n1"))
    world = World(nodes(), storage_class("slow", LOCAL), offers, wanted, job("a", "data")).cycle()
    if not expected:
        assert refusals(world, "a") == {"volume_bind": 3}
        return
    assert world.bound == {"a-w-0": {"five": "n1", "ten": "n2"}[expected]}
    made = world.offline.cache.estate.storage
    assert made.volume(expected)["spec"]["claimRef"]["name"] == "data"
    assert made.claim("default/data")["spec"]["volumeName"] == expected


@pytest.mark.parametrize(
    "taken",
    [
        volume("pv", on="n1", claimRef={"namespace": "default", "name": "other", "uid": "x"}),
        {**volume("pv", on="n1"), "status": {"phase": "Released"}},
    ],
    ids=["of another claim", "released"],
)
def test_a_volume_that_is_taken_is_no_offer(taken: Any) -> None:
    world = World(nodes(), local(taken), claim("data"), job("a", "data")).cycle()
    assert refusals(world, "a") == {"volume_bind": 3}


def test_a_volume_reserved_for_the_claim_is_taken_though_a_smaller_one_would_do() -> None:
    reserved = volume("reserved", "50Gi", on="n1", claimRef={"namespace": "default", "name": "data"})
    world = World(nodes(), local(volume("small", on="n1"), reserved), claim("data"), job("a", "data")).cycle()
    assert world.offline.cache.estate.storage.claim("default/data")["spec"]["volumeName"] == "reserved"


def test_two_pods_do_not_take_one_volume() -> None:
    offers = local(volume("pv0", on="n1"), volume("pv1", on="n2"))
    world = World(nodes(), offers, claim("d0"), claim("d1"), job("a", "d0"), job("b", "d1")).cycle()
    assert sorted(world.bound.values()) == ["n1", "n2"]
    world = World(nodes(), local(volume("pv0", on="n1")), claim("d0"), claim("d1"), job("a", "d0"), job("b", "d1")).cycle(3)
    assert world.bound == {"a-w-0": "n1"}
    assert refusals(world, "b") == {"volume_bind": 3}


def test_a_gang_gets_all_its_volumes_or_none() -> None:
    pods = [pod("g", "w", i, {"cpu": 1}, **mounting(f"d{i}")) for i in range(3)]
    group = gang("g", 0, 3, at=0)
    claims = [claim(f"d{i}") for i in range(3)]
    world = World(nodes(), local(volume("pv0", on="n0"), volume("pv1", on="n1")), claims, group, pods).cycle(2)
    assert not world.bound
    assert world.verdicts["g"].placeable == 2
    assert not world.offline.cache.estate.storage.promises
    world = World(nodes(), local(*[volume(f"pv{i}", on=f"n{i}") for i in range(3)]), claims, group, pods).cycle()
    assert sorted(world.bound.values()) == ["n0", "n1", "n2"]


def test_the_claims_of_one_pod_need_volumes_of_their_own_on_one_node() -> None:
    apart = local(volume("pv0", on="n0"), volume("pv1", on="n1"), volume("pv2", "2Gi", on="n1"))
    world = World(nodes(), apart, claim("d0"), claim("d1"), job("a", "d0", "d1")).cycle()
    assert world.bound == {"a-w-0": "n1"}
    named = {key: world.offline.cache.estate.storage.claim(f"default/{key}")["spec"]["volumeName"] for key in ("d0", "d1")}
    assert named == {"d0": "pv1", "d1": "pv2"}
    world = World(nodes(), local(volume("pv0", on="n0"), volume("pv1", on="n1")), claim("d0"), claim("d1"), job("a", "d0", "d1"))
    assert refusals(world.cycle(), "a") == {"volume_bind": 3}


def test_pods_that_share_a_claim_follow_the_first() -> None:
    offers = local(volume("pv0", on="n2"), volume("pv1", on="n1"))
    pods = [pod("g", "w", i, {"cpu": 1}, **mounting("data")) for i in range(2)]
    world = World(nodes(), offers, claim("data", mode="ReadWriteOnce"), gang("g", 0, 2, at=0), pods).cycle()
    assert len(set(world.bound.values())) == 1
    assert len(world.bound) == 2


# -- volumes that are made -----------------------------------------------------------------------------------------------------


def test_a_volume_is_made_where_the_pod_goes() -> None:
    world = World(nodes(), storage_class("fast"), claim("data"), job("a", "data")).cycle()
    assert world.bound == {"a-w-0": "n0"}
    assert world.offline.cache.estate.storage.claim("default/data")["spec"]["volumeName"] == "pvc-persistentvolumeclaim-data"


def test_a_volume_is_made_only_where_its_class_allows() -> None:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    world = World(nodes(), storage_class("fast", allowedTopologies=topologies), claim("data"), job("a", "data")).cycle()
    assert world.bound == {"a-w-0": "n1"}


def test_a_claim_with_a_selected_node_is_met_there_alone() -> None:
    chosen = claim("data", annotations={"volume.kubernetes.io/selected-node": "n2"})
    world = World(nodes(), storage_class("fast"), chosen, job("a", "data")).cycle()
    assert world.bound == {"a-w-0": "n2"}


def segment(zone: str, capacity: str, most: str = "") -> Any:
    parts = {"storageClassName": "fast", "capacity": capacity, "nodeTopology": {"matchLabels": {ZONE: zone}}}
    if most:
        parts["maximumVolumeSize"] = most
    return obj("storage.k8s.io/v1", "CSIStorageCapacity", f"s-{zone}", "kube-system", **parts)


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([segment("z0", "1Gi"), segment("z1", "20Gi")], "n1"),
        ([segment("z0", "100Gi", most="5Gi"), segment("z2", "100Gi")], "n2"),
        ([segment("z0", "9Gi")], ""),
    ],
    ids=["capacity", "largest volume", "nowhere"],
)
def test_a_driver_that_tells_its_capacity_is_believed(segments: list[Any], expected: str) -> None:
    driver = obj("storage.k8s.io/v1", "CSIDriver", "disk.example.com", spec={"storageCapacity": True})
    world = World(nodes(), storage_class("fast"), driver, segments, claim("data", "10Gi"), job("a", "data")).cycle()
    assert world.bound.get("a-w-0", "") == expected
    if not expected:
        assert refusals(world, "a") == {"volume_capacity": 3}


# -- how many, and by how many -----------------------------------------------------------------------------------------------


def attached(count: int, where: str) -> list[Any]:
    found: list[Any] = []
    for i in range(count):
        held = pod("old", where, i, {"cpu": 1}, nodeName=where, **mounting(f"{where}-{i}"))
        held["status"]["phase"] = "Running"
        found += [held, bound(f"{where}-{i}", f"{where}-{i}"), volume(f"{where}-{i}", driver="disk.example.com")]
    return found


@pytest.mark.parametrize(("limit", "expected"), [(2, {"volume_limit": 1}), (3, {})])
def test_a_node_takes_as_many_volumes_as_its_driver_says(limit: int, expected: dict[str, int]) -> None:
    there = [volume("pv", driver="disk.example.com"), bound("data", "pv"), *attached(2, "n0")]
    world = World(nodes(1), csi_node("n0", disk_example_com=limit), there, job("a", "data")).cycle()
    assert (refusals(world, "a") if expected else {}) == expected
    assert bool(world.bound) is not bool(expected)


def test_a_driver_that_names_no_limit_has_none() -> None:
    there = [volume("pv", driver="disk.example.com"), bound("data", "pv"), *attached(2, "n0")]
    assert World(nodes(1), csi_node("n0", other_example_com=0), there, job("a", "data")).cycle().bound == {"a-w-0": "n0"}


def test_a_volume_that_is_attached_already_counts_once() -> None:
    world = World(nodes(1), csi_node("n0", disk_example_com=1), attached(1, "n0"), job("a", "n0-0")).cycle()
    assert world.bound == {"a-w-0": "n0"}
    fresh = [volume("pv", driver="disk.example.com"), bound("data", "pv")]
    world = World(nodes(1), csi_node("n0", disk_example_com=1), attached(1, "n0"), fresh, job("a", "data")).cycle()
    assert refusals(world, "a") == {"volume_limit": 1}


def test_a_claim_for_one_pod_alone_is_used_by_one_pod() -> None:
    there = [storage_class("fast"), claim("data", mode="ReadWriteOncePod")]
    world = World(nodes(), there, job("a", "data"), job("b", "data")).cycle(2)
    assert list(world.bound) == ["a-w-0"]
    assert refusals(world, "b") == {"volume_in_use": 3}


def test_checks_can_be_turned_off() -> None:
    off = "".join(f"\n      predicate.{check}Enable: false" for check in ("VolumeZone", "VolumeBinding", "NodeVolumeLimits"))
    conf = CONF.replace("- name: predicates", f"- name: predicates\n    arguments:{off}")
    there = [
        csi_node("n0", disk_example_com=0),
        volume("pv", driver="disk.example.com", labels={ZONE: "z7"}),
        bound("data", "pv"),
    ]
    assert World(nodes(1), there, job("a", "data"), conf=conf).cycle().bound == {"a-w-0": "n0"}
