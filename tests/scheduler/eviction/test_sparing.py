"""Why nobody gives way: the verdict of a job that may evict and finds no victims, in numbers."""

from __future__ import annotations

import pytest

from scheduler.framework.explain import Code, Stage
from scheduler.wording import describe
from tests.scheduler.eviction.test_limits import budget, labelled
from tests.scheduler.eviction.world import HIGH, LOW, MID, PREEMPT, RECLAIM, Busy, conf, job
from tests.scheduler.world import node, queue

GANGS = conf("enqueue, allocate, preempt", "priority gang conformance predicates proportion nodeorder")
BOTH = conf("enqueue, allocate, preempt, reclaim", "priority gang conformance predicates proportion nodeorder")


def unpreemptable(parts):
    for each in parts[1:]:
        each["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    return parts


def verdict(world: Busy, name: str = "h"):
    return world.cycle().verdicts[name]


def test_the_numbers_say_who_was_looked_at_and_what_is_short():
    world = Busy(node("n0", cpu=4), job("m", 3, 1, cpu=1, priority=HIGH), job("l", 1, cpu=1, priority=LOW)).cycle(3)
    found = verdict(world.add(job("h", 1, cpu=3, priority=HIGH)))
    assert (found.stage, found.code) == (Stage.PREEMPTION, Code.NO_VICTIMS)
    assert (found.candidates, found.spared) == (4, {"priority": 3, "too_little": 1})
    assert (found.resource, found.asked, found.free, found.short) == ("cpu", 3000, 0, 3000)
    assert (found.needed, found.placeable) == (1, 0)
    assert describe(found) == (
        "0/1 nodes are available: 1 Insufficient cpu; no eviction makes room: 4 pods were looked at, "
        "3 are of no lower priority, 1 might go without making enough room"
    )


def test_whoever_has_nobody_in_reach_is_told_of_the_nodes_alone():
    text = conf("enqueue, allocate, preempt", "priority gang conformance predicates")
    world = Busy(queue("other"), node("n0", cpu=1), job("l", 1, cpu=1, priority=LOW, queue="other"), conf=text).cycle()
    found = verdict(world.add(job("h", 1, cpu=1, priority=HIGH)))
    assert (found.stage, found.code) == (Stage.NODE_FIT, Code.NODES_INSUFFICIENT)
    assert (found.candidates, found.spared) == (0, {})


@pytest.mark.parametrize(
    ("old", "text", "rule"),
    [
        (job("l", 2, cpu=1, priority=LOW), GANGS, "gang"),
        (unpreemptable(job("l", 2, 1, cpu=1, priority=LOW)), PREEMPT, "not_preemptable"),
        (job("l", 2, 1, cpu=1, priority=LOW, pod_spec={"priorityClassName": "system-node-critical"}), PREEMPT, "conformance"),
        (job("l", 2, 1, cpu=1, priority=HIGH), PREEMPT, "priority"),
    ],
)
def test_each_rule_is_named_that_spares_somebody(old, text, rule):
    world = Busy(node("n0", cpu=2), old, conf=text).cycle(3)
    assert verdict(world.add(job("h", 1, cpu=1, priority=MID if rule == "priority" else HIGH))).spared == {
        "higher_priority" if rule == "priority" else rule: 2
    }


def test_a_budget_that_is_used_up_is_named():
    text = conf("enqueue, allocate, preempt", "priority -gang conformance pdb", "predicates proportion")
    world = Busy(node("n0", cpu=2), labelled(job("l", 2, 1, cpu=1, priority=LOW), app="x"), budget(maxUnavailable=0), conf=text)
    found = verdict(world.cycle(2).add(job("h", 1, cpu=1, priority=HIGH)))
    assert found.spared == {"pdb": 2}


def test_a_gang_that_finds_places_for_some_is_told_so_and_evicts_nobody():
    world = Busy(node("n0", cpu=2), node("n1", cpu=1), [*job("l", 2, 1, cpu=1, priority=LOW), *job("m", 1, cpu=1, priority=HIGH)])
    world.cycle(3).add(job("h", 3, cpu=1, priority=HIGH))
    found = verdict(world)
    assert world.evicted == []
    assert (found.code, found.needed, found.placeable, found.spared) == (Code.NO_VICTIMS, 3, 0, {"priority": 1, "too_little": 2})


def test_what_holds_a_job_before_any_eviction_stays_its_verdict():
    full = queue("q", capability={"cpu": "1"})
    world = Busy(full, node("n0", cpu=9), unpreemptable(job("l", 1, cpu=1, priority=LOW, queue="q"))).cycle(2)
    found = verdict(world.add(job("h", 1, cpu=1, priority=HIGH, queue="q")))
    assert (found.stage, found.code) == (Stage.QUEUE_LIMIT, Code.QUEUE_CAPABILITY)
    assert (found.candidates, found.spared) == (1, {"not_preemptable": 1})


def test_a_queue_that_reclaims_in_vain_is_told_by_which_rules():
    queues = [queue("a", reclaimable=False), queue("b"), queue("c")]
    old = [*job("x", 2, 1, cpu=1, queue="a"), *unpreemptable(job("y", 1, cpu=1, queue="b")), *job("z", 1, cpu=1, queue="b")]
    world = Busy(*queues, node("n0", cpu=4), old, conf=RECLAIM).cycle(4)
    found = verdict(world.add(job("h", 1, cpu=1, queue="c")))
    assert found.code is Code.NO_VICTIMS
    assert (found.candidates, found.spared) == (4, {"gang": 1, "not_preemptable": 1, "not_reclaimable": 2})


def test_both_actions_count_their_own():
    queues = [queue("a", reclaimable=False), queue("b")]
    old = [*job("x", 1, cpu=1, queue="a"), *unpreemptable(job("y", 1, cpu=1, queue="b", priority=LOW))]
    world = Busy(*queues, node("n0", cpu=2), old, conf=BOTH).cycle(3)
    found = verdict(world.add(job("h", 1, cpu=1, queue="b", priority=HIGH)))
    assert found.spared == {"not_preemptable": 1}  # b holds what it deserves, so that it reclaims nothing
    world = Busy(*queues, node("n0", cpu=4), job("x", 3, cpu=1, queue="a"), old[2:], conf=BOTH).cycle(3)
    found = verdict(world.add(job("h", 1, cpu=1, queue="b", priority=HIGH)))
    assert (found.candidates, found.spared) == (4, {"not_preemptable": 1, "not_reclaimable": 3})


def test_a_queue_that_may_not_reclaim_has_looked_at_nobody():
    owned = queue("a", guarantee={"resource": {"cpu": "4"}}, capability={"cpu": "4"})
    world = Busy(owned, queue("b", capability={"cpu": "4"}), node("n0", cpu=4), job("o", 4, 1, cpu=1, queue="a"), conf=RECLAIM)
    found = verdict(world.cycle(5).add(job("x", 1, cpu=1, queue="b")), "x")
    assert found.candidates == 0


def test_jobs_of_like_tasks_are_all_told():
    world = Busy(node("n0", cpu=1), unpreemptable(job("l", 1, cpu=1, priority=LOW))).cycle(2)
    world.add(*(job(f"h{i}", 1, cpu=1, priority=HIGH) for i in range(3))).cycle()
    assert [world.verdicts[f"h{i}"].spared for i in range(3)] == [{"not_preemptable": 1}] * 3


@pytest.mark.parametrize(
    ("action", "plugin", "rules"),
    [
        ("gangpreempt", "proportion", {"gang": 2, "priority": 1, "too_little": 1}),
        ("gangreclaim", "capacity", {"gang": 2, "not_reclaimable": 1, "too_little": 1}),
    ],
)
def test_gangs_that_take_whole_gangs_are_told_too(action, plugin, rules):
    text = conf(f"enqueue, allocate, {action}", f"priority gang conformance predicates {plugin} nodeorder")
    text += f"configurations:\n- name: {action}\n  arguments:\n    allowWholeBundle: false\n"
    inside = action == "gangpreempt"
    queues = [queue("a"), queue("b", reclaimable=False), queue("c", deserved={"cpu": "4", "memory": "64Gi"})]
    old = job("l", 3, 2, cpu=1, priority=LOW, queue="c" if inside else "a")
    old += job("m", 1, cpu=1, priority=HIGH, queue="c" if inside else "b")
    world = Busy(*queues, node("n0", cpu=4), old, conf=text).cycle(3)
    found = verdict(world.add(job("h", 2, cpu=1, priority=HIGH, queue="c")))
    assert world.evicted == []
    assert (found.code, found.candidates, found.spared) == (Code.NO_VICTIMS, 4, rules)


def test_once_somebody_does_give_way_the_job_only_waits_for_that():
    world = Busy(node("n0", cpu=1), job("l", 1, cpu=1, priority=LOW)).cycle(2)
    found = verdict(world.add(job("h", 1, cpu=1, priority=HIGH)))
    assert (found.code, found.candidates) == (Code.RELEASING, 0)
