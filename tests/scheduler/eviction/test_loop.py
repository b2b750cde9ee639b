"""Evictions through the cluster: asked for with a reason, taken back when refused, and counted once."""

from __future__ import annotations

import pytest

from cluster.clock import ManualClock
from cluster.errors import TooManyRequests
from cluster.kinds import EVENT, POD, PRIORITY_CLASS
from cluster.port import Outcome
from scheduler import conf as configuration
from scheduler.loop import SchedulerLoop
from tests.scheduler.eviction.world import HIGH, LOW, PREEMPT, PRIORITIES, job
from tests.scheduler.test_loop import add, cluster_with, nodes_of
from tests.scheduler.world import node


def run_all(cluster):
    for pod in cluster.list(POD).items:
        if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            cluster.patch_status(POD, pod["metadata"]["name"], "default", {"phase": "Running"})


@pytest.fixture
def busy():
    """A node full of a low job, and a high one that waits; the pods end only when somebody lets them."""
    clock = ManualClock(1_900_000_000.0)
    cluster = cluster_with(node("n0", cpu=2), job("l", 2, 1, cpu=1, priority=LOW))
    for each in PRIORITIES:
        cluster.create(PRIORITY_CLASS, each)
    records = []
    loop = SchedulerLoop(cluster, configuration.load(PREEMPT), clock, records.append)
    for _ in range(3):
        loop.step()
        run_all(cluster)
    add(cluster, job("h", 1, cpu=1, priority=HIGH))
    return cluster, loop, records


def pod_of(cluster, name):
    return cluster.get(POD, name, "default")


def outcomes(evictions, error=None):
    return [Outcome(each.namespace, each.name, error) for each in evictions]


def test_a_victim_is_told_why_and_its_place_is_kept_until_it_has_gone(busy, monkeypatch):
    cluster, loop, records = busy
    asked = []

    def hear(evictions):
        asked.extend((each.name, each.reason, each.message) for each in evictions)
        return outcomes(evictions)

    monkeypatch.setattr(cluster, "evict_many", hear)
    for _ in range(4):
        loop.step()
    assert asked == [("l-w-1", "PreemptionByScheduler", "preempted: default/h-w-0 needs its room")]
    assert [record.evicted for record in records][-4:] in ([1, 0, 0, 0], [0, 1, 0, 0])
    assert pod_of(cluster, "h-w-0")["status"]["nominatedNodeName"] == "n0"
    assert "Evict" in {event["reason"] for event in cluster.list(EVENT).items}
    cluster.delete(POD, "l-w-1", "default", grace_seconds=0)
    loop.step()
    assert nodes_of(cluster)["h-w-0"] == "n0"


def test_news_of_a_pod_that_is_being_evicted_do_not_bring_it_back(busy, monkeypatch):
    cluster, loop, records = busy
    monkeypatch.setattr(cluster, "evict_many", outcomes)
    loop.step()
    loop.step()
    before = sum(record.evicted for record in records)
    for phase_message in ("a", "b"):
        cluster.patch_status(POD, "l-w-1", "default", {"message": phase_message})
        loop.step()
    assert sum(record.evicted for record in records) == before == 1


def test_an_eviction_that_is_refused_is_taken_back_and_tried_again(busy, monkeypatch):
    cluster, loop, _ = busy

    refused = []

    def refuse(evictions):
        refused.extend(each.name for each in evictions)
        return outcomes(evictions, TooManyRequests("a budget forbids it"))

    monkeypatch.setattr(cluster, "evict_many", refuse)
    loop.step()
    loop.step()
    assert nodes_of(cluster)["h-w-0"] == ""
    assert set(refused) == {"l-w-1"}
    assert not pod_of(cluster, "l-w-1")["metadata"].get("deletionTimestamp")
    assert loop.cache.nodes.used[0, 0] == 2000
    monkeypatch.undo()
    loop.step()
    victim = pod_of(cluster, "l-w-1")
    assert victim["metadata"]["deletionTimestamp"]
    assert victim["status"]["conditions"][-1]["type"] == "DisruptionTarget"


def test_a_nominated_node_is_kept_to_though_another_scores_higher(busy, monkeypatch):
    cluster, loop, _ = busy
    monkeypatch.setattr(cluster, "evict_many", outcomes)
    loop.step()
    loop.step()
    cluster.delete(POD, "l-w-1", "default", grace_seconds=0)
    add(cluster, node("a0", cpu=64))
    loop.step()
    assert nodes_of(cluster)["h-w-0"] == "n0"
