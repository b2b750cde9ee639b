"""Disruption budgets and cooldowns hold evictions back."""

from __future__ import annotations

import pytest

from tests.scheduler.eviction.world import HIGH, LOW, Busy, conf, job
from tests.scheduler.world import created, node

WITH_PDB = conf("enqueue, allocate, preempt", "priority -gang conformance pdb", "predicates proportion")
WITH_CDP = conf("enqueue, allocate, preempt", "priority -gang conformance cdp", "predicates proportion")


def labelled(parts, **labels):
    for pod in parts[1:]:
        pod["metadata"]["labels"] = labels
    return parts


def budget(selector=None, *, status=None, **spec):
    meta = {"name": "b", "namespace": "default", "uid": "budget"}
    body = {"selector": {"matchLabels": {"app": "x"}} if selector is None else selector, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": body, "status": status or {}}


@pytest.mark.parametrize(
    ("held_by", "count"),
    [
        (budget(maxUnavailable=1), 1),
        (budget(minAvailable=2), 2),
        (budget(minAvailable="75%"), 1),
        (budget(maxUnavailable=3, status={"disruptionsAllowed": 1}), 1),
        (budget(maxUnavailable=0), 0),
        (budget({}, maxUnavailable=0), 4),
        (budget({"matchLabels": {"app": "other"}}, maxUnavailable=0), 4),
        (budget(maxUnavailable=1, status={"disruptedPods": {"l-w-0": "", "l-w-1": ""}}), 3),
    ],
)
def test_a_budget_allows_so_many_evictions(held_by, count):
    world = Busy(node("n0", cpu=4), labelled(job("l", 4, 1, cpu=1, priority=LOW), app="x"), held_by, conf=WITH_PDB).cycle(4)
    world.add(*(job(f"h{i}", 1, cpu=1, priority=HIGH) for i in range(4))).cycle()
    assert len(world.evicted) == count


def test_pods_without_labels_stay_where_budgets_have_a_say():
    world = Busy(node("n0", cpu=1), job("l", 1, cpu=1, priority=LOW), conf=WITH_PDB).cycle()
    world.add(job("h", 1, cpu=1, priority=HIGH)).cycle(2)
    assert world.evicted == []


@pytest.mark.parametrize(
    ("marks", "gone"),
    [
        ({"labels": {"volcano.sh/cooldown-time": "1h"}}, []),
        ({"annotations": {"volcano.sh/cooldown-time": "1h"}}, []),
        ({"annotations": {"volcano.sh/cooldown-time": "1s"}}, ["l-w-0"]),
        ({"annotations": {"volcano.sh/cooldown-time": "soon"}}, ["l-w-0"]),
        ({"labels": {"volcano.sh/cooldown-time": "1s"}, "annotations": {"volcano.sh/cooldown-time": "1h"}}, ["l-w-0"]),
        ({}, ["l-w-0"]),
    ],
)
def test_a_pod_that_was_placed_less_than_its_cooldown_ago_stays(marks, gone):
    old = job("l", 1, cpu=1, priority=LOW)
    for key, values in marks.items():
        old[1]["metadata"][key] = {**old[1]["metadata"].get(key, {}), **values}
    old[1]["spec"]["nodeName"] = "n0"
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": created(0)}
    old[1]["status"] = {"phase": "Running", "conditions": [placed]}
    world = Busy(node("n0", cpu=1), old, job("h", 1, cpu=1, priority=HIGH), conf=WITH_CDP)
    world.offline.now = 1_893_456_000.0 + 600  # ten minutes after it was placed
    world.cycle(2)
    assert world.evicted == gone
