"""Room that an eviction made is kept for its preemptor, from all but its queue's jobs of higher priority, while it is of use."""

from __future__ import annotations

import pytest

from cluster.kinds import POD, POD_GROUP
from cluster.port import WatchEvent
from tests.scheduler.eviction.test_invariants import TIERS
from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, conf, job
from tests.scheduler.world import node, queue

SHARELESS = conf("enqueue, allocate, preempt, backfill", "priority -gang conformance predicates nodeorder")
"""Queues are served by name, and have no limits: what stops a job of `a` is only that the room is held."""


def gone(world, name):
    """A job is deleted with its pods."""
    cache = world.offline.cache
    of = cache.jobs[f"default/{name}"]
    for task in list(of.tasks.values()):
        cache.apply(WatchEvent("DELETED", POD, task.pod))
    cache.apply(WatchEvent("DELETED", POD_GROUP, of.obj))


@pytest.mark.parametrize("priority", [LOW, HIGH])
def test_who_was_evicted_does_not_come_back_to_the_room_before_the_preemptor(priority):
    """Queue a is served first, and the best place of its new pod is the very room that was made for j3."""
    nodes = [node("n0", cpu=1), node("n1", cpu=1), node("n2", cpu=5)]
    held = job("j0", 2, 1, cpu=1, queue="a", priority=priority, at=0)
    world = Busy(nodes, [queue("a"), queue("b")], held, conf=TIERS, restarts=True)
    for number, where in ((1, "b"), (3, "b")):
        world.add(job(f"j{number}", 1, cpu=2, queue=where, priority=LOW, at=number))
    world.cycle(2)
    assert world.evicted == ["j0-w-1"]
    world.cycle()
    assert world.cycles[-1].record.bound == 2
    assert world.bound == {"j0-w-0": "n2", "j0-w-1": "n0", "j1-w-0": "n2", "j3-w-0": "n2"}
    world.cycle(20)
    assert world.evicted == ["j0-w-1"]
    assert world.running() == {"j0": 2, "j1": 1, "j3": 1}


def made_room(*others):
    """A node full of l, from which a pod went for m; `others` come in that moment, and one more cycle is run."""
    world = Busy([node("n0", cpu=2)], queue("a"), job("l", 2, 1, cpu=1, priority=LOW), conf=SHARELESS).cycle()
    world.add(job("m", 1, cpu=1, priority=MID)).cycle()
    assert world.evicted == ["l-w-1"]
    return world.add(*others)


def test_a_job_of_higher_priority_in_the_same_queue_may_take_the_room():
    world = made_room(job("h", 1, cpu=1, priority=HIGH)).cycle()
    assert world.running() == {"h": 1}
    assert world.evicted == ["l-w-1", "l-w-0"], "m makes room anew"
    assert world.cycle().running() == {"h": 1, "m": 1}


@pytest.mark.parametrize("priority", [MID, HIGH])
def test_a_job_of_another_queue_may_not_though_it_is_served_first(priority):
    world = made_room(job("o", 1, cpu=1, priority=priority, queue="a")).cycle(3)
    assert world.running() == {"l": 1, "m": 1}
    assert world.evicted == ["l-w-1"]


def test_an_older_job_of_equal_priority_may_not():
    world = made_room(job("o", 1, cpu=1, priority=MID, at=0)).cycle()
    assert world.running()["m"] == 1
    assert "o" not in world.running()


def test_without_an_order_by_priority_none_is_of_higher_priority():
    text = conf("enqueue, allocate, preempt, backfill", "gang conformance drf predicates nodeorder")
    world = Busy([node("n0", cpu=4)], job("l", 4, 1, cpu=1, priority=LOW, at=0), conf=text).cycle()
    world.add(job("m", 1, cpu=1, priority=LOW, at=2)).cycle()
    assert world.evicted == ["l-w-3"]
    world.add(job("h", 1, cpu=1, priority=HIGH, at=1)).cycle()
    assert world.running()["m"] == 1
    assert world.bound["m-w-0"] == "n0"


def test_nothing_is_held_for_a_job_that_is_gone():
    world = made_room(job("o", 1, cpu=1, priority=LOW, queue="a"))
    gone(world, "m")
    assert world.cycle().running() == {"l": 1, "o": 1}


def test_a_gang_that_cannot_use_its_room_keeps_it_from_others_for_one_cycle_at_most():
    """The idle half of the gang's room goes to a job of higher priority, so the half that was made for it is of no use."""
    kept = job("k", 1, cpu=1, priority=HIGH, at=0)
    world = Busy([node("n0", cpu=1), node("n1", cpu=1), node("n2", cpu=1)], queue("a"), kept, conf=SHARELESS).cycle()
    world.add(job("l", 1, cpu=1, priority=LOW)).cycle()
    world.add(job("m", 2, 2, cpu=1, priority=MID)).cycle()
    assert world.evicted == ["l-w-0"]
    idle = {"nodeSelector": {"kubernetes.io/hostname": ({"n0", "n1", "n2"} - set(world.bound.values())).pop()}}
    world.add(job("h", 1, cpu=1, priority=HIGH, queue="a", pod_spec=idle), job("o", 1, cpu=1, priority=LOW, queue="a"))
    assert world.cycle().running() == {"k": 1, "h": 1}
    assert world.cycle().running() == {"k": 1, "h": 1, "o": 1}


def test_what_was_held_is_no_part_of_the_node_after_the_cycle():
    world = made_room(job("o", 3, 1, cpu=1, priority=LOW)).cycle(3)
    nodes = world.offline.cache.nodes
    assert nodes.unsettled == 0
    assert not nodes.pipelined.any()
    assert nodes.used[nodes.index["n0"], 0] == nodes.listed[nodes.index["n0"], 0] == 2000
