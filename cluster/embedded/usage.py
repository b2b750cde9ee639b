"""The simulated monitoring of nodes: what running pods would use, written on their nodes every half minute.

A pod uses a part of what it asks for, the same part all its life; `sim.basalt.dev/usage: "80"` says which, in percent.
Written are percents of a node's capacity, as the scheduler's plugins read them.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from random import Random

import orjson

from cluster import objects
from cluster.clock import Clock
from cluster.errors import ApiError, NotFound
from cluster.kinds import NODE, POD
from cluster.port import Cluster, Obj, Victim

logger = logging.getLogger(__name__)

SIM_USAGE = "sim.basalt.dev/usage"

INTERVAL = 30.0
"""Seconds of the cluster's time between two measurements."""

_BUSIEST_ROUND = 1.0
LEAST, MOST = 0.3, 0.95
"""The parts of what they ask for that pods use, as chance has it."""
PERCENT = re.compile(r"[0-9]{1,3}", re.ASCII)
_ASKS_NOTHING = {"cpu": 100, "memory": 200 << 20}
"""What a pod uses that asks for nothing, at most: milli-cpu and bytes."""


class UsageMeter:
    """Measures while somebody wants it. Nodes that are not ready are silent, so what they told grows old."""

    def __init__(self, cluster: Cluster, clock: Clock, *, seed: int = 0, wanted: Callable[[], bool] = lambda: True) -> None:
        self._cluster, self._clock, self._seed, self._wanted = cluster, clock, seed, wanted
        self._next = 0.0

    def run(self, stop: threading.Event) -> None:
        """Measure until `stop` is set."""
        while not stop.is_set():
            if self._wanted() and self._clock.now() >= self._next:
                self.measure()
            stop.wait(max(_BUSIEST_ROUND, min(self._clock.real(INTERVAL) / 10, 10.0)))

    def measure(self) -> int:
        """Measure all nodes now; how many were written."""
        now = self._clock.now()
        self._next = now + INTERVAL
        used: defaultdict[str, dict[str, float]] = defaultdict(lambda: {"cpu": 0.0, "memory": 0.0})
        for pod in self._cluster.list(POD, fields="status.phase=Running").items:
            self._add(pod, used[pod["spec"].get("nodeName") or ""])
        nodes = [node for node in self._cluster.list(NODE).items if is_ready(node)]
        patches = [
            (Victim("", objects.name(node), objects.uid(node)), _patch(node, used[objects.name(node)], now)) for node in nodes
        ]
        outcomes = self._cluster.patch_many(NODE, patches) if patches else []
        for outcome in outcomes:
            if isinstance(outcome.error, ApiError) and not isinstance(outcome.error, NotFound):
                logger.warning("usage of node %s: %s", outcome.name, outcome.error)
        return len(outcomes)

    def _add(self, pod: Obj, total: dict[str, float]) -> None:
        asked = objects.pod_requests(pod["spec"])
        said = objects.annotations(pod).get(SIM_USAGE, "")
        chance = Random(f"{self._seed}/{objects.uid(pod)}")  # noqa: S311 - a simulation, nothing secret
        for resource, least in _ASKS_NOTHING.items():
            part = int(said) / 100 if PERCENT.fullmatch(said) else chance.uniform(LEAST, MOST)
            total[resource] += part * (asked.get(resource) or least)


def _patch(node: Obj, used: Mapping[str, float], now: float) -> Obj:
    status = node.get("status") or {}
    there = objects.resource_units(status.get("capacity") or status.get("allocatable"))
    told: dict[str, float | str] = {
        resource: round(min(100 * amount / there[resource], 100.0), 1) if there.get(resource) else 0.0
        for resource, amount in used.items()
    }
    told["time"] = objects.stamp(now)
    return {"metadata": {"annotations": {objects.NODE_USAGE: orjson.dumps(told).decode()}}}


def is_ready(node: Obj) -> bool:
    """Whether a node is there to tell anything."""
    found = objects.condition(node, "Ready")
    return found is None or found.get("status") == "True"
