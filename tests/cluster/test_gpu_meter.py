"""The simulated monitoring of GPUs: what it writes, on which nodes, and that nothing is scheduled anew for it."""

from __future__ import annotations

import json
from typing import Any

from cluster.clock import ManualClock
from cluster.embedded.gpu_meter import GpuMeter
from cluster.embedded.store import EmbeddedCluster
from cluster.gpu_usage import read
from cluster.kinds import NODE
from cluster.objects import stamp, with_condition
from scheduler.model.build import node_static
from tests.scheduler.test_loop import cluster_with
from tests.scheduler.world import gang, node, pod

NOW = 1_900_000_000.0


def running(name: str, where: str, gpus: str, percent: str = "") -> Any:
    found = pod(name, "w", 0, {"nvidia.com/gpu": 2}, nodeName=where)
    found["metadata"]["annotations"] |= {"basalt.dev/gpu-indices": gpus} | ({"sim.basalt.dev/usage": percent} if percent else {})
    found["status"] = {"phase": "Running"}
    return found


def told(cluster: EmbeddedCluster, name: str) -> Any:
    text = cluster.get(NODE, name)["metadata"].get("annotations", {}).get("basalt.dev/gpu-usage")
    return text and json.loads(text)


def fleet(*more: Any) -> EmbeddedCluster:
    return cluster_with(node("n0", gpu=4), node("n1", gpu=2), node("n2"), gang("other", 1), *more)


def test_gpus_are_as_busy_as_their_pods_say_and_those_of_nobody_do_nothing() -> None:
    cluster = fleet(running("a", "n0", "1,3", "70"))
    assert GpuMeter(cluster, ManualClock(NOW)).measure() == 2
    assert told(cluster, "n0") == {"time": stamp(NOW), "load": [0, 70, 0, 70], "memory": [0, 0, 0, 0]}
    assert told(cluster, "n1")["load"] == [0, 0]
    assert told(cluster, "n2") is None
    assert read(json.dumps(told(cluster, "n0"))).load == (0, 70, 0, 70)


def test_a_pod_keeps_its_gpus_as_busy_all_its_life() -> None:
    clock = ManualClock(NOW)
    cluster = fleet(running("a", "n0", "0,1"))
    meter = GpuMeter(cluster, clock, seed=3)
    meter.measure()
    first = told(cluster, "n0")
    clock.advance(60)
    meter.measure()
    assert told(cluster, "n0") == {**first, "time": stamp(NOW + 60)}


def test_a_node_that_is_not_ready_tells_nothing() -> None:
    cluster = fleet()
    cluster.patch_status(NODE, "n0", "", {"conditions": with_condition([], {"type": "Ready", "status": "Unknown"})})
    assert GpuMeter(cluster, ManualClock(NOW)).measure() == 1
    assert told(cluster, "n0") is None


def test_a_measurement_is_no_change_of_a_node_for_the_scheduler() -> None:
    cluster = fleet()
    before = node_static(cluster.get(NODE, "n0"))
    GpuMeter(cluster, ManualClock(NOW)).measure()
    assert node_static(cluster.get(NODE, "n0")) == before
