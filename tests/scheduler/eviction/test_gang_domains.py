"""gangpreempt and gangreclaim for gangs that must be close: room in one domain, and a nomination that is redeemed there."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.kinds import POD
from cluster.port import WatchEvent
from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, conf, job
from tests.scheduler.topology.world import close, domain
from tests.scheduler.world import node, pod, queue

PREEMPT = conf(
    "enqueue, allocate, gangpreempt, backfill", "priority gang conformance predicates proportion nodeorder network-topology-aware"
)
RECLAIM = conf(
    "enqueue, allocate, gangreclaim, backfill", "priority gang conformance predicates capacity nodeorder network-topology-aware"
)
RACKS = [
    *[domain(f"s{i}", 1, [f"n{2 * i}", f"n{2 * i + 1}"], name_of_tier="rack") for i in range(4)],
    domain("m0", 2, domains=["s0", "s1"], name_of_tier="spine"),
    domain("m1", 2, domains=["s2", "s3"], name_of_tier="spine"),
]
"""Eight nodes in racks of two, two racks on a spine."""


class Slow(Busy):
    """Evicted pods are only leaving until `leave` lets them go."""

    def cycle(self, times: int = 1) -> Slow:
        for _ in range(times):
            done = self.offline.decide()
            self.cycles.append(done)
            self.leaving = [*getattr(self, "leaving", []), *done.evictions]
            done.evictions = []
            self.offline.take_in(done)
            for binding in done.binds:
                self.run(binding.uid)
                self.bound[binding.name] = binding.node
        return self

    def leave(self) -> None:
        cache = self.offline.cache
        for eviction in self.leaving:
            self.evicted.append(eviction.name)
            cache.apply(_deleted(cache.tasks[eviction.uid].pod))
        self.leaving = []


def _deleted(obj):
    return WatchEvent("DELETED", POD, dict(obj))


def eight(cpu: int = 4):
    return [node(f"n{i}", cpu=cpu) for i in range(8)]


def full(priority: Any = LOW, cpu: int = 4, **more):
    """One job of one pod on each node."""
    each = priority if isinstance(priority, list) else [priority] * 8
    at = [{"nodeSelector": {"kubernetes.io/hostname": f"n{i}"}} for i in range(8)]
    return [part for i in range(8) for part in job(f"l{i}", 1, cpu=cpu, priority=each[i], pod_spec=at[i], **more)]


def racks(world, name: str, tier: int = 1) -> set[int]:
    size = 2 * 2 ** (tier - 1)
    return {int(where[1:]) // size for pod_, where in world.bound.items() if pod_.startswith(f"{name}-")}


def urgent(name: str, replicas: int, least: int | None = None, **more):
    found = close(name, replicas, least, **more)
    found[0]["spec"]["priorityClassName"] = HIGH
    return found


@pytest.mark.parametrize(("tier", "pods"), [(1, 2), ("rack", 2), (2, 4), ("spine", 4)])
def test_room_is_made_in_one_allowed_domain_and_taken_there(tier, pods):
    world = Busy(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", pods, cpu=4, tier=tier)).cycle(3)
    assert len(world.evicted) == pods
    assert world.running()["h"] == pods
    assert len(racks(world, "h", 1 if pods == 2 else 2)) == 1


def test_nobody_goes_when_no_allowed_domain_could_hold_the_gang():
    world = Busy(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 3, cpu=4, tier=1)).cycle(3)
    assert world.evicted == []


def test_a_domain_that_needs_no_stronger_victim_is_found_behind_those_that_do():
    world = Busy(eight(), full([HIGH] * 6 + [LOW] * 2), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle(3)
    assert sorted(world.evicted) == ["l6-w-0", "l7-w-0"]
    assert racks(world, "h") == {3}


def test_only_so_many_domains_are_looked_at():
    text = PREEMPT + "configurations:\n- name: gangpreempt\n  arguments:\n    maxDomains: 2\n"
    world = Busy(eight(), full([HIGH] * 4 + [LOW] * 4), *RACKS, conf=text).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle(3)
    assert world.evicted == []  # s0 and s1 hold only pods of its own priority


@pytest.mark.parametrize(("weak", "count"), [(slice(4, 8), 2), (slice(0, 4), 0)])
def test_the_plugin_offers_so_many_domains_for_eviction_the_last_of_a_tier(weak, count):
    text = PREEMPT + "    arguments:\n      hypernode.gradient.evict.max-hypernodes: 2\n"
    strong = [HIGH] * 8
    strong[weak] = [LOW] * 4
    world = Busy(eight(), full(strong), *RACKS, conf=text).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle(3)
    assert len(world.evicted) == count


def test_the_smallest_set_goes_though_bundles_were_taken_for_more():
    parts = [job("a", 8, 1, cpu=1, priority=LOW), job("b", 1, cpu=4, priority=LOW)]
    world = Busy(eight(), *parts, *RACKS, conf=PREEMPT).cycle(9)
    world.add(urgent("h", 2, cpu=2, tier=1)).cycle(3)
    assert world.running()["h"] == 2
    assert world.evicted == []  # there was room beside them


def test_a_nomination_waits_for_its_victims_and_is_redeemed_where_it_was_made():
    world = Slow(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle()
    assert len(world.leaving) == 2
    nominated = {task.name: task.nominated for task in world.offline.cache.jobs["default/h"].tasks.values()}
    world.cycle(3)
    assert len(world.leaving) == 2  # nobody else is evicted while they leave
    world.leave()
    world.cycle()
    assert {name: where for name, where in world.bound.items() if name.startswith("h-")} == nominated


def test_a_nomination_survives_the_scheduler_that_made_it():
    world = Slow(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle()
    written = {w.name: w.status["nominatedNodeName"] for w in world.cycles[-1].writes.statuses if "nominatedNodeName" in w.status}
    assert set(written) == {"h-w-0", "h-w-1"}
    gone = {eviction.name for eviction in world.leaving}
    fresh = urgent("h", 2, cpu=4, tier=1)
    fresh[0]["status"]["phase"] = "Inqueue"
    for each in fresh[1:]:
        each["status"]["nominatedNodeName"] = written[each["metadata"]["name"]]
    others = [part for part in full() if part["metadata"]["name"] not in gone]
    for each in others:
        if each["kind"] == "Pod":
            each["spec"]["nodeName"] = "n" + each["metadata"]["name"][1]
            each["status"]["phase"] = "Running"
    free = [node(f"n{i}", cpu=4) for i in range(8)] + [node("x0", cpu=4), node("x1", cpu=4)]
    again = Busy(free, others, *RACKS, domain("a0", 1, ["x0", "x1"]), fresh, conf=PREEMPT).cycle(2)
    assert {name: where for name, where in again.bound.items() if name.startswith("h-")} == written


def test_all_tasks_of_a_redeemed_gang_start_at_once_not_only_its_minimum():
    world = Slow(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 4, 2, cpu=2, tier=1)).cycle()
    world.add(job("r", 2, cpu=2, priority=HIGH))  # would come between, once the minimum is placed
    world.leave()
    done = world.cycle().cycles[-1]
    assert sorted(binding.name for binding in done.binds) == [f"h-w-{i}" for i in range(4)]


def test_a_plain_gang_is_redeemed_whole_too():
    world = Slow(eight(), full(), conf=PREEMPT).cycle(2)
    world.add(job("h", 4, 2, cpu=4, priority=HIGH)).cycle()
    assert len(world.leaving) == 4
    world.add(job("r", 2, cpu=4, priority=HIGH))
    world.leave()
    done = world.cycle().cycles[-1]
    assert sorted(binding.name for binding in done.binds) == [f"h-w-{i}" for i in range(4)]


def test_a_nomination_that_no_longer_holds_is_forgotten_and_the_gang_placed_anew():
    world = Slow(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle()
    taken = {task.nominated for task in world.offline.cache.jobs["default/h"].tasks.values()}
    world.leave()
    foreign = pod("f", "w", 0, {"cpu": 1}, nodeName=min(taken), schedulerName="other")
    foreign["metadata"]["annotations"], foreign["status"]["phase"] = {}, "Running"
    world.add(foreign).cycle()
    assert "h" not in world.running()
    world.cycle()
    world.leave()
    world.cycle(2)
    assert world.running()["h"] == 2
    assert len(racks(world, "h")) == 1
    assert min(taken) not in {where for name, where in world.bound.items() if name.startswith("h-")}


def test_a_node_that_left_its_domain_makes_the_nomination_void():
    world = Slow(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(urgent("h", 2, cpu=4, tier=1)).cycle()
    rack = {task.nominated for task in world.offline.cache.jobs["default/h"].tasks.values()}
    world.leave()
    number = int(min(rack)[1:]) // 2
    world.add(domain(f"s{number}", 1, [min(rack)], name_of_tier="rack")).cycle()
    assert "h" not in world.running()


IN_A_RACK = {"mode": "hard", "highestTierAllowed": 1}


def parted(name: str, parts: int, *, least: int, cpu: int = 4):
    policy = {"name": "part", "matchLabelKeys": ["part"], "subGroupSize": 2, "minSubGroups": least}
    found = urgent(name, 2 * parts, 2 * least, cpu=cpu, tier=2, policies=[{**policy, "networkTopology": IN_A_RACK}])
    for i, each in enumerate(found[1:]):
        each["metadata"]["labels"] = {"part": str(i // 2)}
    return found


def test_each_part_has_its_rack_and_the_gang_its_spine():
    world = Busy(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(parted("h", 2, least=2)).cycle(3)
    assert len(world.evicted) == 4
    assert world.running()["h"] == 4
    where = {name: int(at[1:]) // 2 for name, at in world.bound.items() if name.startswith("h-")}
    assert where["h-w-0"] == where["h-w-1"] != where["h-w-2"] == where["h-w-3"]
    assert len(racks(world, "h", 2)) == 1


def test_no_more_parts_get_room_than_the_gang_needs():
    world = Busy(eight(), full(), *RACKS, conf=PREEMPT).cycle(2)
    world.add(parted("h", 2, least=1)).cycle()
    assert len(world.evicted) == 2
    world.cycle(3)
    assert world.running()["h"] == 2


def test_a_queue_reclaims_a_rack_whole():
    a, b = (queue(name, deserved={"cpu": "16", "memory": "256Gi"}) for name in "ab")
    world = Busy(a, b, eight(), full(MID, queue="a"), *RACKS, conf=RECLAIM).cycle(2)
    world.add(close("y", 2, cpu=4, tier=1, queue="b")).cycle(3)
    assert len(world.evicted) == 2
    assert world.running()["y"] == 2
    assert len(racks(world, "y")) == 1


def test_a_guarantee_is_kept_though_a_rack_is_claimed():
    a = queue("a", deserved={"cpu": "16"}, guarantee={"resource": {"cpu": "31"}})
    world = Busy(a, queue("b", deserved={"cpu": "16"}), eight(), full(MID, queue="a"), *RACKS, conf=RECLAIM).cycle(2)
    world.add(close("y", 2, cpu=4, tier=1, queue="b")).cycle(3)
    assert world.evicted == []
