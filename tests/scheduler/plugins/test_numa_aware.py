"""numa-aware: which nodes a pod may have, how good they are, and what CPUs it is promised."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.cpus import parse_cpus
from cluster.kinds import NUMATOPOLOGY, POD, POD_GROUP
from cluster.port import Obj, WatchEvent
from scheduler import conf
from scheduler.framework.explain import Code
from scheduler.model import numa
from scheduler.model.nodes import Block
from tests.scheduler.world import World, group, node, pod

CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: numa-aware\n'


def topology(
    name: str, policy: str = "single-numa-node", *, nodes: int = 2, free: str = "0-7", manager: str = "static", **more: Any
) -> Obj:
    """Eight CPUs in cores of two threads, on so many NUMA nodes, each a socket."""
    each = 8 // nodes
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
            "cpuDetail": {str(c): {"numa": c // each, "socket": c // each, "core": c % each // 2} for c in range(8)},
            "numares": {"cpu": {"allocatable": free, "capacity": 8}},
            **more,
        },
    }


def guaranteed(name: str, index: int, *cpus: object, policy: str = "") -> Obj:
    found = pod(name, "w", index, {})
    amounts = [{"cpu": str(count), "memory": "1Gi"} for count in cpus]
    found["spec"]["containers"] = [{"name": f"c{i}", "resources": {"requests": a, "limits": a}} for i, a in enumerate(amounts)]
    if policy:
        found["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = policy
    return found


def gang(name: str, count: int, *cpus: object, policy: str = "", at: int = 0) -> list[Obj]:
    return [group(name, count, at=at), *(guaranteed(name, i, *cpus, policy=policy) for i in range(count))]


def given_cpus(world: World) -> dict[str, str]:
    """Pod → node and CPUs, as its bind says."""
    binds = [binding for cycle in world.cycles for binding in cycle.binds]
    return {binding.name: f"{binding.node} {binding.annotations.get('basalt.dev/cpus', '-')}" for binding in binds}


def rejected(world: World, name: str) -> dict[str, int]:
    verdict = world.verdicts[name]
    assert verdict.code is Code.NODES_REFUSED
    return dict(verdict.rejected)


# -- which nodes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (None, "numa_policy"),
        (topology("n0", manager="none"), "numa_policy"),
        (topology("n0", "restricted"), "numa_policy"),
        (topology("n0", free=""), "numa_policy"),
        (topology("n0", numares={}), "numa_policy"),
        (topology("n0", free="2-5"), "numa_cpus"),
        (topology("n0", nodes=4), "numa_cpus"),
        (topology("n0", resReserved={"cpu": "4500m"}), "numa_cpus"),
        (topology("n0"), None),
        (topology("n0", resReserved={"cpu": "3500m"}), None),
    ],
)
def test_a_pod_with_a_policy_needs_a_node_of_the_same_with_cpus_for_it(told: Obj | None, reason: str | None) -> None:
    world = World(node("n0"), [told] if told else [], gang("g", 1, 4, policy="single-numa-node"), conf=CONF).cycle()
    if reason is None:
        assert world.bound == {"g-w-0": "n0"}
    else:
        assert rejected(world, "g") == {reason: 1}


@pytest.mark.parametrize(
    ("told", "bound"),
    [
        (None, "n0 -"),
        (topology("n0", manager="none"), "n0 -"),
        (topology("n0", "none"), "n0 -"),
        (topology("n0", ""), "n0 -"),
        (topology("n0", free="2-5"), None),
        (topology("n0", "restricted", free="2-5"), None),
        (topology("n0", "best-effort", free="2-5"), "n0 2-5"),
        (topology("n0", "best-effort", free="2-4"), None),
        (topology("n0"), "n0 0-3"),
    ],
)
@pytest.mark.parametrize("policy", ["", "none"])
def test_a_pod_without_is_held_to_the_policy_of_its_node(told: Obj | None, bound: str | None, policy: str) -> None:
    world = World(node("n0"), [told] if told else [], gang("g", 1, 4, policy=policy), conf=CONF).cycle()
    assert given_cpus(world).get("g-w-0") == bound


def test_only_guaranteed_pods_are_looked_at() -> None:
    burstable = [group("g", 1, at=0), pod("g", "w", 0, {"cpu": 4, "memory": "1Gi"})]
    burstable[1]["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = "restricted"
    world = World(node("n0"), topology("n0", free=""), burstable, conf=CONF).cycle()
    assert given_cpus(world) == {"g-w-0": "n0 -"}


def test_containers_with_a_fraction_have_no_cpus_of_their_own() -> None:
    world = World(node("n0"), topology("n0", free="0-3"), gang("g", 1, "1500m", 3, policy="single-numa-node"), conf=CONF).cycle()
    assert given_cpus(world) == {"g-w-0": "n0 0-2"}


# -- which is best -----------------------------------------------------------------------------------------------------------


def test_the_node_where_cpus_are_on_fewest_numa_nodes_is_best() -> None:
    told = [
        topology("n0", "best-effort", nodes=4),
        topology("n1", "best-effort", free="0-2,4-6"),
        topology("n2", "best-effort"),
    ]
    parts = [[node(f"n{i}") for i in range(3)], told, gang("g", 1, 4, policy="best-effort")]
    world = World(*parts, conf=CONF).cycle()
    assert given_cpus(world) == {"g-w-0": "n2 0-3"}
    # A pod without a policy is not scored: the first node will do.
    world = World(*parts[:2], gang("h", 1, 4), conf=CONF).cycle()
    assert given_cpus(world) == {"h-w-0": "n0 0-3"}


def test_scores_are_parts_of_the_widest_and_the_weight_multiplies_them() -> None:
    nodes = [node(f"n{i}") for i in range(3)]
    told = [topology("n0", "best-effort", nodes=4), topology("n1", "best-effort"), topology("n2", "best-effort", nodes=8)]
    world = World(nodes, told, gang("g", 1, 4, policy="best-effort"), conf=CONF)
    cache = world.offline.cache
    ssn = cache.open_session("s", conf.load(CONF), now=0.0, random=Random(0))
    (item,) = ssn.functions("task_score")
    task = cache.tasks["pod-g-w-0"]
    assert item.applies(task)
    # On 2, 1 and 4 NUMA nodes.
    assert item.score(task, Block(ssn.nodes, ssn.nodes.live_rows())).tolist() == [50, 75, 0]
    ssn.undo()


# -- what is promised --------------------------------------------------------------------------------------------------------


def test_pods_of_a_gang_get_cpus_of_their_own_and_the_bind_tells_which() -> None:
    world = World(node("n0"), topology("n0"), gang("g", 2, 2, 1, policy="single-numa-node"), conf=CONF).cycle()
    # Each container by itself has its CPUs on one NUMA node: the second pod's last one is left over on the first.
    assert given_cpus(world) == {"g-w-0": "n0 0-2", "g-w-1": "n0 3-5"}
    decisions = [binding.annotations["volcano.sh/topology-decision"] for binding in world.cycles[0].binds]
    assert decisions == ['{"numa":{"0":{"cpu":"3"}}}', '{"numa":{"0":{"cpu":"1"},"1":{"cpu":"2"}}}']


def test_what_was_promised_is_kept_until_the_kubelet_tells_of_it() -> None:
    world = World(node("n0", cpu=16), topology("n0"), gang("g", 1, 3), conf=CONF).cycle()
    assert given_cpus(world) == {"g-w-0": "n0 0-2"}
    cache = world.offline.cache
    for one in gang("h", 1, 3, at=1):
        cache.apply(WatchEvent("ADDED", POD if one["kind"] == "Pod" else POD_GROUP, one))
    world.cycle()
    assert given_cpus(world)["h-w-0"] == "n0 4-6"
    # The kubelet gave g others than promised, and says nothing of h yet: both promises stand beside it.
    told = topology("n0", free="0-3,7", podAllocations=[{"uid": "pod-g-w-0"}])
    cache.apply(WatchEvent("MODIFIED", NUMATOPOLOGY, told))
    assert free(cache) == parse_cpus("3,7")
    # Now it tells of both, h by its name: what it says is all that counts, and old promises are forgotten for good.
    both = [{"uid": "pod-g-w-0"}, {"namespace": "default", "name": "h-w-0"}]
    cache.apply(WatchEvent("MODIFIED", NUMATOPOLOGY, topology("n0", free="3,7", podAllocations=both)))
    assert free(cache) == parse_cpus("3,7")
    cache.apply(WatchEvent("MODIFIED", NUMATOPOLOGY, topology("n0", free="2-3,7")))
    assert free(cache) == parse_cpus("2-3,7")


def free(cache: Any, name: str = "n0") -> int:
    ssn = cache.open_session("s", conf.load(CONF), now=0.0, random=Random(0))
    ssn.undo()
    return ssn._plugins[1]._free[cache.nodes.index[name]]


def test_a_restarted_scheduler_reads_promises_from_pods() -> None:
    there = guaranteed("g", 0, 3)
    there["metadata"]["annotations"]["basalt.dev/cpus"] = "0-2"
    there["spec"]["nodeName"] = "n0"
    world = World(node("n0", cpu=16), topology("n0"), group("g", 1, at=0), there, gang("h", 1, 2, at=1), conf=CONF).cycle()
    assert given_cpus(world) == {"h-w-0": "n0 4-5"}


def test_a_failed_bind_gives_the_cpus_back() -> None:
    world = World(node("n0"), topology("n0"), gang("g", 1, 4), conf=CONF)
    done = world.offline.decide()
    assert done.binds[0].annotations["basalt.dev/cpus"] == "0-3"
    cache = world.offline.cache
    assert free(cache) == parse_cpus("4-7")
    cache.bind_failed("pod-g-w-0")
    assert free(cache) == parse_cpus("0-7")
    assert cache.tasks["pod-g-w-0"].marks == {}


def test_a_gang_that_does_not_come_together_keeps_none() -> None:
    world = World(node("n0", cpu=16), topology("n0"), gang("g", 3, 3), gang("h", 1, 4, at=1), conf=CONF).cycle()
    assert given_cpus(world) == {"h-w-0": "n0 0-3"}
    assert world.verdicts["g"].rejected == {"numa_cpus": 1}


def test_a_bad_object_is_set_aside_and_its_node_is_one_without() -> None:
    broken = topology("n0", numares={"cpu": {"allocatable": "9-"}})
    world = World(node("n0"), broken, gang("g", 1, 4), conf=CONF).cycle()
    assert given_cpus(world) == {"g-w-0": "n0 -"}
    (aside,) = world.offline.cache.aside.values()
    assert (aside.kind, aside.key) == ("Numatopology", "/n0")
    assert "9-" in aside.reason


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"cpuDetail": []}, "spec.cpuDetail must be a mapping"),
        ({"cpuDetail": {"x": {}}}, "'x' is no CPU id"),
        ({"cpuDetail": {"0": {"numa": -1}}}, "whole numbers"),
        ({"cpuDetail": {"0": {}}, "numares": {"cpu": {"allocatable": "0-1"}}}, "1 are not in spec.cpuDetail"),
        ({"resReserved": {"cpu": "two"}}, "two"),
    ],
)
def test_what_makes_no_sense_is_named(spec: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        numa.read({"metadata": {"name": "n"}, "spec": spec})


# -- what must hold ----------------------------------------------------------------------------------------------------------

fleets = st.lists(
    st.tuples(
        st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
        st.sampled_from([1, 2, 4]),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=4,
)
jobs = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.integers(1, 5),
        st.integers(0, 2),
        st.sampled_from(["", "best-effort", "restricted", "single-numa-node"]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(fleets, jobs)
def test_no_cpu_is_promised_twice_and_policies_are_kept(fleet: Any, specs: Any) -> None:
    parts: list[Any] = []
    for i, (policy, nodes, mask) in enumerate(fleet):
        free_cpus = ",".join(str(cpu) for cpu in range(8) if mask >> cpu & 1)
        parts += [node(f"n{i}", cpu=16), topology(f"n{i}", policy, nodes=nodes, free=free_cpus)]
    for i, (count, first, second, policy) in enumerate(specs):
        parts += gang(f"g{i}", count, first, *([second] if second else []), policy=policy, at=i)
    world = World(*parts, conf=CONF).cycle(2)
    seen: dict[str, int] = {}
    for cycle in world.cycles:
        for binding in cycle.binds:
            row = int(binding.node[1:])
            policy, nodes, mask = fleet[row]
            _, first, second, asked = specs[int(binding.name.partition("-")[0][1:])]
            assert asked in ("", policy)
            cpus = parse_cpus(binding.annotations.get("basalt.dev/cpus", ""))
            if policy == "none":
                assert not cpus
                continue
            assert cpus.bit_count() == first + second
            assert not cpus & ~mask & 255
            assert not cpus & seen.get(binding.node, 0)
            seen[binding.node] = seen.get(binding.node, 0) | cpus
            if policy == "single-numa-node":
                each = 8 // nodes
                assert len({cpu // each for cpu in range(8) if cpus >> cpu & 1}) <= 2
    for name, cpus in seen.items():
        assert free(world.offline.cache, name) == fleet[int(name[1:])][2] & ~cpus
