"""rescheduling with shuffle: busy nodes are relieved while others stand idle."""

from __future__ import annotations

import json

import pytest

from scheduler.conf import ConfError, load
from tests.scheduler.eviction.world import HIGH, LOW, Busy, conf, job
from tests.scheduler.world import node

NOW = 1_893_456_000.0
LIMITS = [
    "arguments:", "  interval: 5m", "  strategies:", "  - name: lowNodeUtilization",
    "    params: {thresholds: {cpu: 30, memory: 30}, targetThresholds: {cpu: 60, memory: 80}}",
]  # fmt: skip
TEXT = conf("enqueue, allocate, shuffle", "priority gang rescheduling predicates", rescheduling=LIMITS)


def measured(name, cpu, memory=10, **more):
    found = node(name, cpu=10, **more)
    said = {"cpu": cpu, "memory": memory, "time": "2030-01-01T00:00:00Z"}
    found["metadata"]["annotations"] = {"basalt.dev/usage": json.dumps(said)}
    return found


def world(*nodes, pods=8):
    at = {"nodeSelector": {"kubernetes.io/hostname": "busy"}}
    old = [job(f"l{i}", 1, cpu=1, priority=LOW, pod_spec={**at, "priority": i}) for i in range(pods)]
    found = Busy(measured("busy", 90), *nodes, *old, conf=TEXT)
    found.offline.now = NOW - 400
    found.cycle()
    found.offline.now = NOW
    return found.cycle()


def test_a_busy_node_is_relieved_down_to_its_target_lowest_priority_first():
    found = world(measured("idle", 10))
    assert found.evicted == ["l0-w-0", "l1-w-0", "l2-w-0"]
    assert {record.rule for record in found.records} == {"rescheduling"}


def test_no_more_goes_than_idle_nodes_have_room_for_under_their_target():
    assert len(world(measured("idle", 29, 79)).evicted) == 0  # memory is above the threshold
    assert len(world(measured("idle", 29, 20)).evicted) == 3
    assert len(world(measured("idle", 29.9, 20), pods=8).evicted) == 3


@pytest.mark.parametrize("other", [measured("idle", 40), node("idle", cpu=10)])
def test_nothing_moves_without_an_idle_node_that_was_measured(other):
    assert world(other).evicted == []


def test_a_cordoned_node_is_no_place_to_go():
    idle = measured("idle", 10)
    idle["spec"]["unschedulable"] = True
    assert world(idle).evicted == []


def test_it_looks_again_only_after_its_interval():
    found = world(measured("idle", 10))
    found.add(job("h", 1, cpu=1, priority=HIGH)).cycle(3)
    assert len(found.evicted) == 3
    found.offline.now = NOW + 299
    assert len(found.cycle().evicted) == 3
    found.offline.now = NOW + 300
    assert len(found.cycle().evicted) == 6  # measured as busy as before


@pytest.mark.parametrize(
    "wrong",
    ["strategies: [{name: other}]", "strategies: 3", "interval: soon",
     "strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 200}}}]",
     "strategies: [{name: lowNodeUtilization, params: {thresholds: {gpu: 2}}}]"],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfError, match="rescheduling: argument"):
        load(conf("allocate", "gang rescheduling", rescheduling=["arguments:", f"  {wrong}"]))
