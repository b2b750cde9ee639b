"""preempt: cluster in, evictions and places out."""

from __future__ import annotations

import pytest

from scheduler.framework.explain import Code
from tests.scheduler.eviction.world import HIGH, LOW, MID, PREEMPT, Busy, conf, job
from tests.scheduler.world import node, queue

GANGS = conf("enqueue, allocate, preempt, backfill", "priority gang conformance", "drf predicates proportion nodeorder")


def test_the_job_of_lowest_priority_gives_way_and_no_other():
    world = Busy(node("n0", cpu=2), job("m", 1, cpu=1, priority=MID), job("l", 1, cpu=1, priority=LOW)).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == ["l-w-0"]
    assert world.running() == {"m": 1, "h": 1}


def test_nobody_is_evicted_while_there_is_room():
    world = Busy(node("n0", cpu=2), job("l", 1, cpu=1, priority=LOW)).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == []
    assert world.running() == {"l": 1, "h": 1}


def test_equal_priority_is_no_reason_to_give_way():
    world = Busy(node("n0", cpu=1), job("a", 1, cpu=1, priority=MID)).cycle()
    world.add(job("b", 1, cpu=1, priority=MID)).cycle(3)
    assert world.evicted == []


def test_nobody_is_evicted_when_all_that_may_go_is_not_enough():
    world = Busy(node("n0", cpu=4), job("m", 3, 1, cpu=1, priority=HIGH), job("l", 1, cpu=1, priority=LOW)).cycle(2)
    world.add(job("h", 1, cpu=3, priority=HIGH)).cycle(3)
    assert world.evicted == []
    assert world.running() == {"m": 3, "l": 1}


def test_a_gang_that_would_be_whole_takes_all_its_places_or_none():
    old = [job(f"l{i}", 1, cpu=1, priority=LOW) for i in range(4)]
    world = Busy(node("n0", cpu=2), node("n1", cpu=2), *old).cycle()
    world.add(job("h", 5, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == []
    world.add(job("g", 3, cpu=1, priority=HIGH)).cycle(3)
    assert sorted(world.evicted_by_job().values()) == [1, 1, 1]
    assert world.running()["g"] == 3


def test_of_the_nodes_the_one_with_fewest_victims_is_taken_then_the_first():
    small = job("s", 2, 1, cpu=2, priority=LOW, pod_spec={"nodeSelector": {"kubernetes.io/hostname": "n0"}})
    large = [job(f"x{i}", 1, cpu=4, priority=LOW, pod_spec={"nodeSelector": {"kubernetes.io/hostname": f"n{i}"}}) for i in (1, 2)]
    world = Busy(*(node(f"n{i}", cpu=4) for i in range(3)), small, *large).cycle(3)
    world.add(job("h", 1, cpu=3, priority=HIGH)).cycle(3)
    assert world.evicted == ["x1-w-0"]
    assert world.bound["h-w-0"] == "n1"


def test_a_lower_highest_priority_beats_fewer_victims():
    at = [{"nodeSelector": {"kubernetes.io/hostname": f"n{i}"}} for i in range(2)]
    world = Busy(
        node("n0", cpu=4), node("n1", cpu=4), job("m", 1, cpu=4, priority=MID, pod_spec=at[0]),
        job("l", 4, 1, cpu=1, priority=LOW, pod_spec=at[1]),
    ).cycle(5)  # fmt: skip
    world.add(job("h", 1, cpu=3, priority=HIGH)).cycle(3)
    assert world.evicted_by_job() == {"l": 3}
    assert world.running() == {"m": 1, "l": 1, "h": 1}


def test_on_a_node_one_large_victim_is_better_than_two_small_ones():
    world = Busy(node("n0", cpu=4), job("a", 2, 1, cpu=1, priority=LOW), job("b", 1, cpu=2, priority=LOW)).cycle(3)
    world.add(job("h", 1, cpu=2, priority=HIGH)).cycle(3)
    assert world.evicted == ["b-w-0"]


def test_a_small_victim_is_spared_when_a_later_task_needs_a_large_one_there():
    world = Busy(node("n0", cpu=6), job("s", 1, cpu=1, priority=LOW), job("b", 1, cpu=5, priority=LOW)).cycle(2)
    pair = job("h", 1, 2, cpu=1, priority=HIGH, role="a") + job("h", 1, 2, cpu=3, priority=HIGH, role="b")[1:]
    world.add(pair).cycle(3)
    assert world.evicted == ["b-w-0"]
    assert world.running() == {"s": 1, "h": 2}


def test_gangs_keep_their_minimum_where_gang_has_a_say():
    world = Busy(node("n0", cpu=4), job("l", 4, 3, cpu=1, priority=LOW), conf=conf(
        "enqueue, allocate, preempt", "priority gang conformance predicates proportion")).cycle(3)  # fmt: skip
    world.add(job("h", 1, cpu=2, priority=HIGH)).cycle(3)
    assert world.evicted == []
    world.add(job("g", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted_by_job() == {"l": 1}
    assert world.running() == {"l": 3, "g": 1}


def test_a_tier_without_victims_leaves_the_decision_to_the_next():
    world = Busy(node("n0", cpu=4), job("l", 4, cpu=1, priority=LOW), conf=GANGS).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == ["l-w-3"]  # gang offers nobody, so drf decides: 3/4 is left to `l`, 1/4 comes to `h`
    assert [record.rule for record in world.records] == ["drf"]


def test_jobs_of_different_queues_never_preempt_one_another():
    world = Busy(queue("other"), node("n0", cpu=1), job("l", 1, cpu=1, priority=LOW, queue="other")).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == []


@pytest.mark.parametrize(("mark", "gone"), [("true", ["l-w-0"]), ("false", [])])
def test_pods_that_say_they_are_not_preemptable_stay(mark, gone):
    old = job("l", 1, cpu=1, priority=LOW)
    old[1]["metadata"]["annotations"]["volcano.sh/preemptable"] = mark
    world = Busy(node("n0", cpu=1), old).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == gone


def test_a_pod_whose_policy_is_never_preempts_nobody():
    world = Busy(node("n0", cpu=1), job("l", 1, cpu=1, priority=LOW)).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH, pod_spec={"preemptionPolicy": "Never"})).cycle(3)
    assert world.evicted == []


def test_critical_pods_stay():
    world = Busy(
        node("n0", cpu=1), job("l", 1, cpu=1, priority=LOW, pod_spec={"priorityClassName": "system-node-critical"})
    ).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == []


def test_victims_free_their_gpus():
    world = Busy(node("n0", gpu=4), job("a", 1, cpu=1, gpu=2, priority=LOW), job("b", 2, 1, cpu=2, gpu=1, priority=MID)).cycle(2)
    world.add(job("h", 1, cpu=1, gpu=2, priority=HIGH)).cycle(3)
    assert world.evicted == ["a-w-0"]
    assert world.bound["h-w-0"] == "n0"


def test_a_host_port_is_freed_by_its_holder():
    ports = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]}
    world = Busy(node("n0", cpu=9), job("o", 1, cpu=1, priority=LOW), job("l", 1, priority=LOW, pod_spec=ports)).cycle()
    world.add(job("h", 1, priority=HIGH, pod_spec=ports)).cycle(3)
    assert world.evicted == ["l-w-0"]
    assert world.running() == {"o": 1, "h": 1}


def test_room_in_the_queue_is_made_too():
    world = Busy(queue("q", capability={"cpu": "2"}), node("n0", cpu=9), job("l", 2, 1, cpu=1, priority=LOW, queue="q")).cycle(2)
    world.add(job("h", 1, cpu=1, priority=HIGH, queue="q")).cycle(3)
    assert len(world.evicted) == 1
    assert world.running() == {"l": 1, "h": 1}


def test_inside_a_job_the_task_that_matters_more_takes_the_place_of_one_that_matters_less():
    mixed = job("a", 1, 1, cpu=1, role="x") + job("a", 1, 1, cpu=1, role="y")[1:]
    mixed[2]["spec"]["priority"] = 100
    mixed[2]["spec"]["nodeName"] = ""
    world = Busy(node("n0", cpu=1), mixed[:2], conf=conf(
        "enqueue, allocate, preempt", "priority", "-gang predicates")).cycle()  # fmt: skip
    assert world.running() == {"a": 1}
    world.add(mixed[2]).cycle(3)
    assert world.evicted == ["a-x-0"]
    assert world.bound["a-y-0"] == "n0"


def test_the_topology_aware_variant_tells_equal_nodes_apart_by_who_started_last():
    text = PREEMPT + "configurations:\n- name: preempt\n  arguments:\n    enableTopologyAwarePreemption: true\n"
    at = [{"nodeSelector": {"kubernetes.io/hostname": f"n{i}"}} for i in range(2)]
    old = [job(f"l{i}", 1, cpu=1, priority=LOW, pod_spec=at[i]) for i in range(2)]
    for i, parts in enumerate(old):
        parts[1]["metadata"]["creationTimestamp"] = f"2030-01-01T00:00:{10 + i}Z"
    world = Busy(node("n0", cpu=1), node("n1", cpu=1), *old, conf=text).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert world.evicted == ["l1-w-0"]


def test_the_record_says_who_gave_way_to_whom_and_what_came_free():
    world = Busy(node("n0", cpu=2), job("l", 2, 1, cpu=1, priority=LOW)).cycle(2)
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle()
    (record,) = world.records
    assert (record.victim, record.victim_job, record.node) == ("default/l-w-1", "default/l", "n0")
    assert (record.preemptor, record.preemptor_pod, record.action) == ("default/h", "default/h-w-0", "preempt")
    assert (record.rule, record.proved) == ("priority+conformance", True)
    assert record.freed == {"cpu": 1000, "pods": 1}
    assert world.verdicts["h"].code is Code.RELEASING


@pytest.mark.parametrize("text", [PREEMPT, GANGS])
def test_a_gang_of_pods_that_ask_for_nothing_is_left_to_backfill(text):
    world = Busy(node("n0", cpu=2), job("free", 3, cpu=0, memory=0), conf=text).cycle(2)
    assert world.running() == {"free": 3}


def test_a_pod_that_asks_for_nothing_takes_the_place_that_an_eviction_made():
    world = Busy(node("n0", cpu=2, pods=1), job("l", 1, cpu=0, memory=0, priority=LOW), conf=PREEMPT).cycle()
    world.add(job("h", 1, cpu=0, memory=0, priority=HIGH)).cycle(3)
    assert world.evicted == ["l-w-0"]
    assert world.running() == {"h": 1}
