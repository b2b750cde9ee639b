"""The simulated monitoring of GPUs: how busy running pods would keep theirs, written on their nodes.

A pod keeps its GPUs as busy all its life: as `sim.basalt.dev/usage` says in percent, else as chance has it, and one in twenty
not at all. Nodes that are not ready are silent, so what they told grows old. Very large fleets are not measured.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from random import Random

from cluster import objects
from cluster.clock import Clock
from cluster.embedded.usage import LEAST, MOST, PERCENT, SIM_USAGE, is_ready
from cluster.errors import ApiError, NotFound
from cluster.gpu_facts import GpuFacts, gpu_facts
from cluster.gpu_usage import GpuUsage, text_of
from cluster.kinds import NODE, POD
from cluster.port import Cluster, Obj, Victim

logger = logging.getLogger(__name__)

INTERVAL = 60.0
"""Seconds of the cluster's time between two measurements."""
LARGEST = 250
"""Nodes up to which a fleet is measured."""
_BUSIEST_ROUND = 2.0
_IDLE = 0.05


class GpuMeter:
    """Measures every GPU that is given whole: load in percent, and MiB in use."""

    def __init__(self, cluster: Cluster, clock: Clock, *, seed: int = 0) -> None:
        self._cluster, self._clock, self._seed = cluster, clock, seed
        self._next = 0.0

    def run(self, stop: threading.Event) -> None:
        """Measure until `stop` is set."""
        while not stop.is_set():
            if self._clock.now() >= self._next:
                self.measure()
            stop.wait(max(_BUSIEST_ROUND, min(self._clock.real(INTERVAL) / 10, 10.0)))

    def measure(self) -> int:
        """Measure all nodes with GPUs now; how many were written."""
        now = self._clock.now()
        self._next = now + INTERVAL
        nodes = self._cluster.list(NODE).items
        if len(nodes) > LARGEST:
            return 0
        busy: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for pod in self._cluster.list(POD, fields="status.phase=Running").items:
            busy[pod["spec"].get("nodeName") or ""].update(self._load(pod))
        patches = [
            (Victim("", objects.name(node), objects.uid(node)), _patch(facts, busy[objects.name(node)], now))
            for node in nodes
            if is_ready(node) and (facts := _facts(node)).count
        ]
        outcomes = self._cluster.patch_many(NODE, patches) if patches else []
        for outcome in outcomes:
            if isinstance(outcome.error, ApiError) and not isinstance(outcome.error, NotFound):
                logger.warning("GPU usage of node %s: %s", outcome.name, outcome.error)
        return len(outcomes)

    def _load(self, pod: Obj) -> dict[int, float]:
        """How busy a pod keeps its GPUs, from 0 to 1."""
        notes = objects.annotations(pod)
        said = notes.get(SIM_USAGE, "")
        chance = Random(f"{self._seed}/gpu/{objects.uid(pod)}")  # noqa: S311 - a simulation, nothing secret
        usual = 0.0 if chance.random() < _IDLE else chance.uniform(LEAST, MOST)
        load = min(int(said), 100) / 100 if PERCENT.fullmatch(said) else usual
        return {int(gpu): load for gpu in notes.get(objects.GPU_INDICES, "").split(",") if gpu.strip().isdecimal()}


def _facts(node: Obj) -> GpuFacts:
    return gpu_facts(node, objects.resource_units((node.get("status") or {}).get("allocatable")))


def _patch(facts: GpuFacts, busy: dict[int, float], now: float) -> Obj:
    """Nobody's GPU does nothing; what a pod uses of one's memory goes with how busy it is."""
    loads = [busy.get(gpu) for gpu in range(facts.count)]
    usage = GpuUsage(
        now,
        tuple(round(100 * (load or 0)) for load in loads),
        tuple(round(facts.memory * (0.2 + 0.7 * load)) if load is not None else 0 for load in loads),
    )
    return {"metadata": {"annotations": {objects.GPU_USAGE: text_of(usage)}}}
