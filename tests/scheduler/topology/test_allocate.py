"""Gangs with a network topology: clusters in, binds and verdicts out."""

from __future__ import annotations

import pytest

from cluster.kinds import NODE, POD
from cluster.port import WatchEvent
from scheduler.framework.explain import Code, Stage
from scheduler.topology.places import ANNOTATION
from tests.scheduler.topology.world import close, domain
from tests.scheduler.world import World, gang, node, pod

CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
  - name: network-topology-aware
    arguments: {weight: 10}
"""
RACKS = [
    *[domain(f"s{i}", 1, [f"n{2 * i}", f"n{2 * i + 1}"], name_of_tier="rack") for i in range(4)],
    domain("m0", 2, domains=["s0", "s1"], name_of_tier="spine"),
    domain("m1", 2, domains=["s2", "s3"], name_of_tier="spine"),
]
"""Eight nodes in racks of two, two racks on a spine."""


def eight(cpu: int = 4):
    return [node(f"n{i}", cpu=cpu) for i in range(8)]


def racks(world: World, name: str, tier: int = 1) -> set[int]:
    size = 2 * 2 ** (tier - 1)
    return {int(where[1:]) // size for pod, where in world.bound.items() if pod.startswith(f"{name}-")}


def run(*parts, cycles: int = 1) -> World:
    return World(*parts, *RACKS, conf=CONF).cycle(cycles)


@pytest.mark.parametrize("tier", [1, "rack"])
def test_a_gang_with_a_hard_topology_stays_in_one_domain(tier):
    world = run(eight(), close("a", 8, cpu=1, tier=tier))
    assert world.started() == {"a": 8}
    assert len(racks(world, "a")) == 1


def test_it_goes_to_the_next_tier_when_the_lower_has_no_room_and_it_may():
    world = run(eight(), close("a", 3, cpu=4, tier=2))
    assert len(racks(world, "a", 2)) == 1
    assert len(racks(world, "a")) == 2


def test_it_waits_when_no_allowed_domain_has_room_though_the_cluster_has():
    world = run(eight(), close("a", 3, cpu=4, tier=1))
    assert world.started() == {}
    verdict = world.verdicts["a"]
    assert (verdict.stage, verdict.code) == (Stage.TOPOLOGY, Code.TOPOLOGY_NO_DOMAIN)
    assert (verdict.tier, verdict.domain, verdict.nodes) == (1, "s0", 2)
    assert (verdict.needed, verdict.placeable) == (3, 2)
    assert (verdict.resource, verdict.asked, verdict.free, verdict.short) == ("cpu", 4000, 0, 4000)
    assert not world.offline.cache.nodes.used.any()


def test_the_verdict_tells_of_the_domain_with_most_room():
    taken = [pod("old", "w", i, {"cpu": 4}, nodeName=f"n{i}") for i in (0, 1, 2, 4, 6)]
    for each in taken:
        each["status"]["phase"] = "Running"
    world = run([*eight(), node("n8", cpu=4)], taken, close("a", 4, cpu=2, tier=1))
    verdict = world.verdicts["a"]
    assert (verdict.domain, verdict.placeable) == ("s1", 2)
    verdict = run(eight(), taken, close("b", 7, cpu=2, tier=2)).verdicts["b"]
    assert (verdict.tier, verdict.domain, verdict.nodes, verdict.placeable) == (2, "m1", 4, 4)


def test_soft_means_near_if_it_can_be_and_anywhere_if_not():
    near = run(eight(), close("a", 4, cpu=2, mode="soft"))
    assert len(racks(near, "a")) == 1
    far = run(eight(), close("a", 8, cpu=4, mode="soft"))
    assert far.started() == {"a": 8}


@pytest.mark.parametrize("topology", [{"mode": "hard"}, {"mode": "hard", "highestTierName": "galaxy"}])
def test_hard_without_a_known_tier_limits_nothing(topology):
    world = run(eight(), close("a", 8, cpu=4, topology=topology))
    assert world.started() == {"a": 8}


def test_hard_without_a_tier_still_prefers_to_be_near():
    world = run(eight(), close("a", 4, cpu=2, topology={"mode": "hard"}))
    assert len(racks(world, "a")) == 1


def test_a_node_in_no_domain_is_not_used():
    world = run([*eight(1), node("x", cpu=64)], close("a", 4, cpu=4, tier=2))
    assert world.started() == {}
    assert world.verdicts["a"].stage is Stage.TOPOLOGY


def test_without_domains_of_an_allowed_tier_it_waits_and_says_so():
    world = World(eight(), domain("big", 3, ["n0", "n1"]), close("a", 2, cpu=1, tier=2), conf=CONF).cycle()
    assert world.started() == {}
    assert (world.verdicts["a"].domain, world.verdicts["a"].nodes) == ("", 0)


def test_the_fuller_domain_is_taken_so_that_empty_ones_stay_whole():
    old = pod("old", "w", 0, {"cpu": 2}, nodeName="n5")
    old["status"]["phase"] = "Running"
    world = run(eight(), old, close("a", 3, cpu=2, tier=1))
    assert racks(world, "a") == {2}


def test_a_domain_is_remembered_on_the_podgroup_and_forgotten_when_nothing_is_left():
    world = run(eight(), close("a", 2, cpu=2, tier=1), cycles=2)
    cache = world.offline.cache
    assert cache.jobs["default/a"].annotations[ANNOTATION] == "s0"
    for task in list(cache.tasks.values()):
        cache.apply(WatchEvent("DELETED", POD, dict(task.pod)))
    world.cycle(2)
    assert ANNOTATION not in cache.jobs["default/a"].annotations


def lose(world: World, name: str, index: int) -> None:
    """A pod of a gang goes with its node, and the gang's controller makes it again."""
    cache = world.offline.cache
    task = next(task for task in cache.tasks.values() if task.name == f"{name}-w-{index}")
    where, again = cache.nodes.names[task.node], pod(name, "w", index, {"cpu": 2})
    cache.apply(WatchEvent("DELETED", POD, dict(task.pod)))
    cache.apply(WatchEvent("DELETED", NODE, dict(cache.nodes.objects[cache.nodes.index[where]])))
    again["metadata"]["uid"] += "-again"
    cache.apply(WatchEvent("ADDED", POD, again))


def test_a_lost_pod_comes_back_inside_the_domain_of_its_gang_or_waits():
    world = run(eight(2), close("a", 2, cpu=2, tier=1))
    assert racks(world, "a") == {0}
    lose(world, "a", 1)
    world.bound.clear()
    world.cycle(3)
    assert world.bound == {}
    verdict = world.verdicts["a"]
    assert (verdict.stage, verdict.domain, verdict.needed, verdict.placeable) == (Stage.TOPOLOGY, "s0", 2, 1)


def test_a_lost_pod_may_go_to_a_sibling_domain_below_the_allowed_one():
    world = run(eight(2), close("a", 2, cpu=2, tier=2))
    lose(world, "a", 1)
    world.bound.clear()
    world.cycle(2)
    assert racks(world, "a") == {1}


def test_a_gang_that_runs_too_far_apart_gets_no_further_pods():
    old = [pod("a", "w", i, {"cpu": 1}, nodeName=f"n{6 * i}") for i in range(2)]
    for each in old:
        each["status"]["phase"] = "Running"
    parts = close("a", 3, cpu=1, tier=1)
    world = run(eight(), old, [parts[0], parts[3]])
    assert world.started() == {}
    assert world.verdicts["a"].code is Code.TOPOLOGY_OUTSIDE
    assert world.verdicts["a"].tier == 1


def test_two_gangs_that_fill_a_rack_each_do_not_share_one():
    world = run(eight(), close("a", 4, cpu=2, tier=1, at=1), close("b", 4, cpu=2, tier=1, at=2))
    assert (racks(world, "a"), racks(world, "b")) == ({0}, {1})


def test_tasks_beyond_the_minimum_follow_into_the_same_domain():
    world = run(eight(), close("a", 4, 2, cpu=2, tier=1))
    assert world.started() == {"a": 4}
    assert racks(world, "a") == {0}


def test_a_domain_must_be_able_to_hold_all_tasks_not_only_the_minimum():
    world = run(eight(), close("a", 5, 2, cpu=2, tier=1))
    assert world.started() == {}
    verdict = world.verdicts["a"]
    assert (verdict.code, verdict.domain, verdict.needed, verdict.placeable) == (Code.TOPOLOGY_NO_DOMAIN, "s0", 5, 4)


def test_plain_pods_fill_domains_one_by_one():
    conf = CONF.replace("  - name: nodeorder\n", "")
    world = World(eight(), gang("a", 3, 1, cpu=4, at=1), gang("b", 1, cpu=4, at=2), *RACKS, conf=conf).cycle()
    assert racks(world, "a", 2) == {0}
    assert racks(world, "b", 2) == {0}


def arguments(**more) -> str:
    """The configuration with further arguments of the plugin, and no other scores."""
    said = ", ".join(f"{key.replace('_', '.')}: {value}" for key, value in {"weight": 10, **more}.items())
    return CONF.replace("  - name: nodeorder\n", "").replace("arguments: {weight: 10}", f"arguments: {{{said}}}")


def running(name: str, cpu: int):
    found = pod(f"old{name}", "w", 0, {"cpu": cpu}, nodeName=name)
    found["status"]["phase"] = "Running"
    return found


@pytest.mark.parametrize(("enabled", "where"), [("true", "n5"), ("false", "n0")])
def test_plain_pods_are_left_alone_where_that_is_switched_off(enabled, where):
    text = arguments().replace("weight: 10}", f"weight: 10, hypernode.binpack.normal-pod.enable: {enabled}}}")
    world = World(eight(), running("n4", 4), gang("b", 1, cpu=4), *RACKS, conf=text).cycle()
    assert world.bound == {"b-w-0": where}


@pytest.mark.parametrize(("fading", "rack"), [(0.8, 3), (0.2, 0), (0, 0), (-1, 3)])
def test_how_much_the_wider_domains_count_fades_with_their_tier(fading, rack):
    """Rack 0 is fuller than rack 3, spine 1 fuller than spine 0: 3/8 + f × 3/16 against 1/8 + f × 9/16."""
    text = arguments().replace("weight: 10}", f"weight: 10, hypernode.binpack.normal-pod.fading: {fading}}}")
    old = [running("n0", 2), running("n4", 4), running("n5", 4)]
    world = World(eight(), old, gang("b", 1, cpu=1), *RACKS, conf=text).cycle()
    assert racks(world, "b") == {rack}


def test_without_the_plugin_a_topology_is_a_plain_gang():
    conf = CONF[: CONF.index("  - name: network-topology-aware")]
    world = World(eight(), *RACKS, close("a", 8, cpu=4, tier=1), conf=conf).cycle()
    assert world.started() == {"a": 8}


def parted(name: str, parts: int, size: int, least: int, tier: int | None = None, **more):
    """A gang in parts by a label, each with a topology of its own."""
    policy = {"name": "p", "subGroupSize": size, "minSubGroups": least, "matchLabelKeys": ["part"]}
    if tier is not None:
        policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    found = close(name, parts * size, more.pop("gang", least * size), more.pop("topology", False), policies=[policy], **more)
    for i, each in enumerate(found[1:]):
        each["metadata"]["labels"] = {"part": str(i // size)}
    return found


def places(world: World, name: str, size: int) -> list[set[int]]:
    found: dict[int, set[int]] = {}
    for each, where in world.bound.items():
        if each.startswith(f"{name}-"):
            found.setdefault(int(each.split("-")[2]) // size, set()).add(int(where[1:]) // 2)
    return [found[part] for part in sorted(found)]


def test_each_part_of_a_gang_has_its_own_domain():
    world = run(eight(), parted("a", 3, 4, 3, tier=1, cpu=2))
    assert world.started() == {"a": 12}
    assert all(len(place) == 1 for place in places(world, "a", 4))


def test_parts_stay_within_the_domain_of_their_gang():
    topology = {"mode": "hard", "highestTierAllowed": 2}
    fits = run(eight(), parted("a", 2, 4, 2, tier=1, cpu=2, topology=topology))
    assert fits.started() == {"a": 8}
    assert len(racks(fits, "a", 2)) == 1
    waits = run(eight(), parted("a", 3, 4, 3, tier=1, cpu=2, topology=topology))
    assert waits.started() == {}
    assert (waits.verdicts["a"].tier, waits.verdicts["a"].needed) == (2, 12)


def test_a_gang_starts_with_the_parts_that_it_needs_and_never_with_a_torn_one():
    taken = [pod("old", "w", i, {"cpu": 4}, nodeName=f"n{i}") for i in (5, 6, 7)]
    for each in taken:
        each["status"]["phase"] = "Running"
    world = run(eight(), taken, parted("a", 3, 4, 2, tier=1, cpu=2), cycles=2)
    assert world.started() == {"a": 8}
    assert places(world, "a", 4) == [{0}, {1}]


def test_a_gang_waits_when_fewer_parts_fit_than_it_needs_and_says_which_domain_is_best():
    taken = [pod("old", "w", i, {"cpu": 4}, nodeName=f"n{i}") for i in (3, 5, 7)]
    for each in taken:
        each["status"]["phase"] = "Running"
    world = run(eight(), taken, parted("a", 2, 4, 2, tier=1, cpu=2))
    assert world.started() == {}
    verdict = world.verdicts["a"]
    assert (verdict.stage, verdict.tier, verdict.needed) == (Stage.TOPOLOGY, 1, 4)


def test_parts_without_a_topology_start_whole_too():
    world = run(eight(2), parted("a", 3, 3, 2, cpu=2, gang=1))
    assert world.started() == {"a": 6}
    verdict = run(eight(2), parted("b", 3, 3, 3, cpu=2, gang=1)).verdicts["b"]
    assert verdict.stage in (Stage.GANG, Stage.NODE_FIT)


def test_what_is_being_released_in_a_domain_is_reserved_for_it():
    leaving = [pod("old", "w", i, {"cpu": 4}, nodeName=f"n{i}") for i in range(8)]
    for each in leaving:
        each["status"]["phase"] = "Running"
    for each in leaving[:2]:
        each["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    world = run(eight(), leaving, close("a", 2, cpu=4, tier=1))
    assert world.started() == {}
    assert world.verdicts["a"].code is Code.RELEASING
    assert not world.offline.cache.nodes.pipelined.any()
