"""What random clusters brought to light, each in its smallest form."""

from __future__ import annotations

from random import Random

import pytest

from cluster.kinds import QUEUE
from cluster.port import WatchEvent
from scheduler import conf as configuration
from scheduler.framework.explain import Code
from scheduler.framework.statement import Cause, Statement
from tests.scheduler.eviction.world import LOW, Busy, conf, job
from tests.scheduler.plugins.test_deviceshare import asks, box, group
from tests.scheduler.plugins.test_deviceshare import conf as sharing
from tests.scheduler.world import World, gang, node, queue


@pytest.mark.parametrize("plugins", ["gang", "gang predicates"])
def test_a_node_takes_no_more_pods_than_it_may_though_they_ask_for_nothing(plugins):
    world = World(node("n0", pods=2), gang("idle", 3, 1), conf=conf("allocate, backfill", plugins)).cycle(2)
    assert sorted(world.bound) == ["idle-w-0", "idle-w-1"]
    late = World(node("n0", pods=1), gang("a", 1, at=0), gang("b", 1, at=1), conf=conf("allocate, backfill", plugins)).cycle(2)
    refused = "insufficient:pods" if plugins == "gang" else "pod_count"
    assert late.verdicts["b"].rejected == {refused: 1}


def test_taking_an_eviction_back_gives_a_pod_no_cards_that_it_did_not_say():
    pod = asks({"number": 1, "memory": 100})
    pod["spec"]["nodeName"], pod["status"]["phase"] = "n0", "Running"
    world = World(box("n0"), group("a", 1), pod, conf=sharing())
    ssn = world.offline.cache.open_session("s", configuration.load(sharing()), now=0.0, random=Random(0))
    (task,) = ssn.jobs["default/a"].tasks.values()
    statement = Statement(ssn)
    statement.evict(task, Cause("test"))
    statement.discard()
    assert task.cards == ()


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim", "preempt", "reclaim"])
def test_pods_of_a_queue_that_is_gone_stop_nobody(action):
    text = conf(f"enqueue, allocate, {action}", "priority gang conformance", "predicates proportion")
    world = Busy(node("n0", cpu=2), queue("old"), queue("new"), job("a", 2, 0, cpu=1, queue="old", priority=LOW), conf=text)
    world.cycle()
    assert world.running() == {"a": 2}
    world.offline.cache.apply(WatchEvent("DELETED", QUEUE, queue("old")))
    world.add(job("b", 1, cpu=1, queue="new")).cycle(3)
    assert world.running() in ({"a": 2}, {"a": 1, "b": 1})
    assert "b" in world.running() or world.verdicts["b"].code is not None


@pytest.mark.parametrize("plugins", ["priority predicates", "priority gang predicates"])
def test_a_job_that_needs_nothing_to_be_ready_is_told_why_it_does_not_run(plugins):
    least = 0 if "gang" in plugins else 1
    world = World(node("n0", cpu=1), gang("a", 1, least, cpu=2), conf=conf("enqueue, allocate", plugins)).cycle()
    verdict = world.verdicts["a"]
    assert (verdict.code, verdict.asked) == (Code.POD_TOO_LARGE if "gang" not in plugins else Code.NODES_INSUFFICIENT, 2000)
    full = World(node("n0", cpu=2), gang("b", 1, cpu=2, at=0), gang("a", 1, least, cpu=1, at=1), conf=conf("allocate", plugins))
    assert full.cycle().verdicts["a"].code is Code.NODES_INSUFFICIENT
