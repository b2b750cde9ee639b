"""The simulated monitoring: what it writes, how often, and that the plugin usage places by it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.embedded.usage import UsageMeter
from cluster.kinds import NODE, POD
from cluster.objects import stamp, with_condition
from scheduler import conf
from scheduler.loop import SchedulerLoop
from tests.scheduler.test_loop import cluster_with
from tests.scheduler.world import gang, node, pod

NOW = 1_900_000_000.0


def running(name: str, where: str, requests: dict[str, Any], percent: str = "") -> Any:
    found = pod(name, "w", 0, requests, nodeName=where)
    if percent:
        found["metadata"]["annotations"]["sim.basalt.dev/usage"] = percent
    found["status"] = {"phase": "Running"}
    return found


def told(cluster: EmbeddedCluster, name: str) -> Any:
    text = cluster.get(NODE, name)["metadata"].get("annotations", {}).get("basalt.dev/usage")
    return text and json.loads(text)


def test_pods_use_the_part_that_they_are_said_to() -> None:
    cluster = cluster_with(
        node("n0", cpu=8, memory="16Gi"),
        node("n1", cpu=8, memory="16Gi"),
        running("a", "n0", {"cpu": 4, "memory": "8Gi"}, "50"),
        running("b", "n0", {"cpu": 2, "memory": "2Gi"}, "100"),
        gang("c", 1, cpu=8),
    )
    assert UsageMeter(cluster, ManualClock(NOW)).measure() == 2
    assert told(cluster, "n0") == {"cpu": 50.0, "memory": 37.5, "time": stamp(NOW)}
    assert told(cluster, "n1") == {"cpu": 0.0, "memory": 0.0, "time": stamp(NOW)}


def test_others_use_the_same_part_all_their_life_and_never_more_than_the_node_has() -> None:
    clock = ManualClock(NOW)
    cluster = cluster_with(node("n0"), running("a", "n0", {"cpu": 4}), running("b", "n0", {"cpu": 8}, "999"), node("n1"))
    meter = UsageMeter(cluster, clock, seed=7)
    meter.measure()
    first = told(cluster, "n0")
    clock.advance(30)
    meter.measure()
    assert told(cluster, "n0") == {**first, "time": stamp(NOW + 30)}
    assert first["cpu"] == 100.0


def test_a_node_that_is_lost_says_nothing_more() -> None:
    cluster = cluster_with(node("n0"))
    status = {"conditions": with_condition([], {"type": "Ready", "status": "Unknown"})}
    cluster.patch_status(NODE, "n0", "", status)
    assert UsageMeter(cluster, ManualClock(NOW)).measure() == 0
    assert told(cluster, "n0") is None


@pytest.mark.parametrize(("wanted", "written"), [(True, True), (False, False)])
def test_it_measures_only_while_it_is_wanted(wanted: bool, written: bool) -> None:
    class Once:
        def __init__(self) -> None:
            self.asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 2

        def wait(self, seconds: float) -> bool:
            return False

    cluster = cluster_with(node("n0"))
    UsageMeter(cluster, ManualClock(NOW), wanted=lambda: wanted).run(Once())  # type: ignore[arg-type]
    assert bool(told(cluster, "n0")) is written


def test_the_plugin_usage_places_by_it() -> None:
    clock = ManualClock(NOW)
    busy = running("a", "n0", {"cpu": 7, "memory": "1Gi"}, "100")
    cluster = cluster_with(node("n0", cpu=8), node("n1", cpu=8), busy, gang("g", 1, cpu=1))
    UsageMeter(cluster, clock).measure()
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: usage\n'
    SchedulerLoop(cluster, conf.load(text), clock).step()
    assert cluster.get(POD, "g-w-0", "default")["spec"]["nodeName"] == "n1"
