"""gangpreempt and gangreclaim: what other gangs can spare goes first, then gangs whole, and none for nothing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.conf import ConfError, load
from scheduler.eviction import bundles
from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, conf, job
from tests.scheduler.world import node, queue

PREEMPT = conf("enqueue, allocate, gangpreempt, backfill", "priority gang conformance predicates proportion nodeorder")
RECLAIM = conf("enqueue, allocate, gangreclaim, backfill", "priority gang conformance predicates capacity nodeorder")
SPARING = PREEMPT + "configurations:\n- name: gangpreempt\n  arguments:\n    allowWholeBundle: false\n"


def test_the_surplus_of_gangs_goes_first():
    world = Busy(node("n0", cpu=8), job("l", 4, 2, cpu=1, priority=LOW), job("m", 4, cpu=1, priority=LOW), conf=PREEMPT).cycle(3)
    world.add(job("h", 2, cpu=1, priority=HIGH)).cycle(2)
    assert world.evicted_by_job() == {"l": 2}
    assert world.running() == {"l": 2, "m": 4, "h": 2}


def test_a_gang_goes_whole_where_the_surplus_is_not_enough():
    world = Busy(node("n0", cpu=8), job("l", 4, cpu=1, priority=LOW), job("m", 4, cpu=1, priority=MID), conf=PREEMPT).cycle(2)
    world.add(job("h", 3, cpu=1, priority=HIGH)).cycle(2)
    assert world.evicted_by_job() == {"l": 4}
    assert world.running() == {"m": 4, "h": 3}


def test_gangs_are_not_taken_whole_where_that_is_not_allowed():
    world = Busy(node("n0", cpu=8), job("l", 5, 4, cpu=1, priority=LOW), job("m", 3, cpu=1, priority=MID), conf=SPARING).cycle(3)
    world.add(job("h", 2, cpu=1, priority=HIGH)).cycle(2)
    assert world.evicted == []
    world.add(job("g", 1, cpu=1, priority=HIGH)).cycle(2)
    assert world.evicted_by_job() == {"l": 1}


def test_equal_priority_and_other_queues_are_out_of_reach():
    equal, other = job("m", 2, 1, cpu=1, priority=MID), job("o", 2, 1, cpu=1, priority=LOW, queue="b")
    world = Busy(queue("b"), node("n0", cpu=4), equal, other, conf=PREEMPT).cycle(3)
    world.add(job("h", 1, cpu=1, priority=MID)).cycle(2)
    assert world.evicted == []


def test_nobody_goes_when_the_gang_would_not_fit_all_the_same():
    world = Busy(node("n0", cpu=2), node("n1", cpu=2), job("l", 4, cpu=1, priority=LOW), conf=PREEMPT).cycle()
    world.add(job("h", 2, cpu=3, priority=HIGH)).cycle(2)
    assert world.evicted == []


def test_roles_keep_their_minimum():
    mixed = job("l", 2, 2, cpu=1, priority=LOW, role="a") + job("l", 2, 2, cpu=1, priority=LOW, role="b")[1:]
    mixed[0]["spec"]["minTaskMember"] = {"a": 2}
    world = Busy(node("n0", cpu=4), mixed, conf=PREEMPT).cycle(4)
    assert world.running() == {"l": 4}
    world.add(job("h", 2, cpu=1, priority=HIGH)).cycle(2)
    assert sorted(world.evicted) == ["l-b-0", "l-b-1"]


def test_a_queue_below_what_it_deserves_takes_a_gang_from_one_above():
    a, b = (queue(name, deserved={"cpu": "4", "memory": "32Gi"}) for name in "ab")
    world = Busy(a, b, node("n0", cpu=8), job("x", 8, 2, cpu=1, queue="a"), conf=RECLAIM).cycle(8)
    assert world.running() == {"x": 8}
    world.add(job("y", 3, cpu=1, queue="b")).cycle(2)
    assert world.evicted_by_job() == {"x": 3}
    assert world.running() == {"x": 5, "y": 3}


def test_both_actions_refuse_arguments_that_make_no_sense():
    with pytest.raises(ConfError, match="maxDomains"):
        load(PREEMPT + "configurations:\n- name: gangpreempt\n  arguments:\n    maxDomains: many\n")


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_bundles_share_out_all_tasks_and_the_safe_ones_leave_the_gang_whole(seed):
    random = Random(seed)
    parts = job("l", random.randint(1, 4), 1, cpu=1, priority=LOW, role="a")
    parts += job("l", random.randint(0, 4), 1, cpu=1, priority=LOW, role="b")[1:]
    parts[0]["spec"]["minMember"] = random.randint(1, len(parts) - 1)
    if random.random() < 0.5:
        parts[0]["spec"]["minTaskMember"] = {"a": random.randint(0, parts[0]["spec"]["minMember"])}
    world = Busy(node("n0", cpu=16), parts, conf=PREEMPT).cycle(9)
    gang = world.offline.cache.jobs["default/l"]
    assume(gang.ready_count() >= gang.min_available)
    tasks = list(gang.tasks.values())
    found = bundles.of_job(gang, tasks, whole=True)
    assert sorted(task.name for bundle in found for task in bundle.tasks) == sorted(task.name for task in tasks)
    safe = [task for bundle in found if bundle.safe for task in bundle.tasks]
    assert gang.ready_count() - len(safe) >= gang.min_available
    for role, least in gang.role_min.items() if gang.role_min_counts() else ():
        assert sum(task.role == role for task in tasks) - sum(task.role == role for task in safe) >= least


@pytest.mark.parametrize(("size", "gone"), [(2, {"x": 2}), (3, {})])
def test_a_queue_takes_for_a_gang_only_what_it_deserves_of_the_whole(size, gone):
    a, b = queue("a", deserved={"cpu": "6"}), queue("b", deserved={"cpu": "2"})
    world = Busy(a, b, node("n0", cpu=8), job("x", 8, 2, cpu=1, queue="a"), conf=RECLAIM).cycle(8)
    world.add(job("y", size, cpu=1, queue="b")).cycle(2)
    assert world.evicted_by_job() == gone
