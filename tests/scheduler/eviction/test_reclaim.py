"""reclaim: a queue gets back what it deserves, cluster in, evictions and places out."""

from __future__ import annotations

import pytest

from tests.scheduler.eviction.world import HIGH, LOW, RECLAIM, Busy, conf, job
from tests.scheduler.world import node, queue

ALL = conf("enqueue, allocate, preempt, reclaim, backfill", "priority -gang conformance -drf predicates proportion nodeorder")


def two_queues(**more) -> list:
    return [queue("a", **more), queue("b")]


def test_a_queue_takes_its_half_back_task_by_task():
    world = Busy(two_queues(), node("n0", cpu=4), node("n1", cpu=4), job("x", 7, 1, cpu=1, queue="a"), conf=RECLAIM).cycle(8)
    assert world.running() == {"x": 7}
    world.add(job("y", 4, cpu=1, queue="b")).cycle(3)
    assert world.running() == {"x": 4, "y": 4}
    assert len(world.evicted) == 3


def test_it_goes_on_for_ever_without_another_eviction():
    nodes = [node(f"n{i}", cpu=16) for i in range(3)]
    world = Busy(two_queues(), nodes, job("one", 5, 1, cpu=7, queue="a"), conf=RECLAIM, restarts=True).cycle(6)
    assert world.running() == {"one": 5}
    world.add(job("two", 5, 3, cpu=7, queue="b")).cycle(40)
    assert world.running() == {"one": 3, "two": 3}
    assert len(world.evicted) == 2


def test_only_whoever_holds_what_is_lacking_is_evicted():
    world = Busy(
        two_queues(), node("n0", cpu=16, gpu=2), job("c", 4, 1, cpu=1, queue="a"), job("g", 2, 1, gpu=1, queue="a"), conf=RECLAIM
    ).cycle(6)
    world.add(job("w", 1, gpu=1, queue="b")).cycle(3)
    assert world.evicted_by_job() == {"g": 1}
    assert world.running() == {"c": 4, "g": 1, "w": 1}


def test_gangs_keep_their_minimum():
    world = Busy(two_queues(), node("n0", cpu=4), job("x", 4, 4, cpu=1, queue="a"), conf=RECLAIM).cycle()
    world.add(job("y", 1, cpu=1, queue="b")).cycle(3)
    assert world.evicted == []


def test_without_gang_a_gang_may_be_broken():
    text = conf("enqueue, allocate, reclaim", "priority -gang conformance predicates proportion")
    world = Busy(two_queues(), node("n0", cpu=4), job("x", 4, 4, cpu=1, queue="a"), conf=text).cycle()
    world.add(job("y", 1, cpu=1, queue="b")).cycle(3)
    assert world.evicted == ["x-w-3"]


@pytest.mark.parametrize(("reclaimable", "count"), [(True, 1), (False, 0), (None, 1)])
def test_a_queue_may_say_that_nothing_is_reclaimed_from_it(reclaimable, count):
    spec = {} if reclaimable is None else {"reclaimable": reclaimable}
    world = Busy(two_queues(**spec), node("n0", cpu=4), job("x", 4, 1, cpu=1, queue="a"), conf=RECLAIM).cycle(4)
    world.add(job("y", 1, cpu=1, queue="b")).cycle(3)
    assert len(world.evicted) == count


def test_what_a_queue_is_guaranteed_stays_its_own_however_small_its_weight():
    mine = queue("a", 1, guarantee={"resource": {"cpu": "1"}})
    world = Busy(mine, queue("b", 65535), node("n0", cpu=1), job("x", 1, cpu=1, queue="a"), conf=RECLAIM).cycle()
    assert world.running() == {"x": 1}
    world.add(job("y", 1, cpu=1, queue="b", priority=HIGH)).cycle(5)
    assert world.evicted == []


def test_a_queue_without_a_claim_takes_nothing():
    owned = queue("a", guarantee={"resource": {"cpu": "4"}}, capability={"cpu": "4"})
    world = Busy(owned, queue("b", capability={"cpu": "4"}), node("n0", cpu=4), job("o", 4, 1, cpu=1, queue="a"), conf=ALL).cycle(
        5
    )
    world.add(job("x", 2, 1, cpu=1, queue="b")).cycle(5)
    assert world.evicted == []
    assert world.running() == {"o": 4}


def test_priority_does_not_matter_between_queues():
    world = Busy(two_queues(), node("n0", cpu=4), job("x", 4, 1, cpu=1, queue="a", priority=HIGH), conf=RECLAIM).cycle(4)
    world.add(job("y", 1, cpu=1, queue="b", priority=LOW)).cycle(3)
    assert len(world.evicted) == 1


def test_the_last_queue_in_order_loses_first():
    queues = [queue("a", priority=10), queue("b", priority=5), queue("c", priority=7)]
    world = Busy(queues, node("n0", cpu=6), job("x", 3, 1, cpu=1, queue="a"), job("y", 3, 1, cpu=1, queue="b"), conf=RECLAIM)
    world.cycle(4).add(job("z", 1, cpu=1, queue="c")).cycle(3)
    assert world.evicted_by_job() == {"y": 1}


def test_a_claim_that_no_eviction_can_meet_evicts_nobody():
    world = Busy(two_queues(), node("n0", cpu=4), node("n1", cpu=4), job("x", 8, 1, cpu=1, queue="a"), conf=RECLAIM).cycle(8)
    world.add(job("y", 2, cpu=3, queue="b")).cycle(3)  # deserves 4
    assert world.evicted == []
