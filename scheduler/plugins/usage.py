"""usage: keep off nodes that are measured to be busy, and prefer those that are not.

What a node uses is told by a Prometheus server (the configuration's `metrics`), else by the node's annotation
`basalt.dev/usage`. Pods placed so lately that no measurement can show them yet
count by an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import orjson

from cluster import objects
from cluster.said import said
from scheduler.framework.plugin import MAX_NODE_SCORE, Event
from scheduler.framework.registry import plugin
from scheduler.model.nodes import Block, NodeTable
from scheduler.model.resources import CPU, MEMORY, Floats, Mask
from scheduler.model.tasks import TaskClass, TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

FRESH = 300.0
"""Seconds after which a measurement says nothing any more."""
_PLANNED = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
_ON_THE_WAY = frozenset({*_PLANNED, TaskStatus.BINDING, TaskStatus.BOUND})
_NAMED = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Estimator:
    """What a pod will use, from what it asks: a ratio of the request and of what its limit allows beyond, more under risk."""

    request_ratio: float
    burst_ratio: float
    risk_threshold: float
    risk_factor: float
    best_effort: tuple[float, float]

    def of(self, cls: TaskClass, limits: tuple[float, float], risk: float) -> Floats:
        """(milli-cpu, bytes) of one pod."""
        if cls.best_effort:
            return np.array(self.best_effort) * risk
        request = cls.request[[CPU, MEMORY]].astype(np.float64)
        limit = np.maximum(np.array(limits), request)
        estimate: Floats = np.minimum((request * self.request_ratio + (limit - request) * self.burst_ratio) * risk, limit)
        return estimate


@plugin
class Usage:
    """Arguments: `usage.weight` (5), `cpu.weight`, `memory.weight` (1), `thresholds` with `cpu` and `mem` (80 each, percent);
    `estimator` with `request_ratio` (0.7), `burst_ratio` (0), `risk_threshold` (0.6), `risk_factor` (1.2), `be_cpu` (250m),
    `be_mem` (200Mi). How long a pod counts as just placed is the configuration's `metrics.interval` (30s).
    """

    name: ClassVar[str] = "usage"
    _percent: Floats
    _fresh: Mask
    _capacity: Floats
    _shadow: Floats

    def __init__(self, arguments: Arguments) -> None:
        self._weight = _at_least_nothing(arguments, "usage.weight", 5)
        weights = [_at_least_nothing(arguments, f"{name}.weight", 1) for name in _NAMED]
        self._weights = np.array(weights, np.float64) / (sum(weights) or 1)
        thresholds = _Section(arguments, "thresholds", {"cpu", "mem"})
        self._thresholds = np.array([thresholds.number(name, 80, 0, 100) for name in ("cpu", "mem")])
        section = _Section(
            arguments, "estimator", {"request_ratio", "burst_ratio", "risk_threshold", "risk_factor", "be_cpu", "be_mem"}
        )
        self._estimator = Estimator(
            section.number("request_ratio", 0.7, 0, 1),
            section.number("burst_ratio", 0.0, 0, 1),
            section.number("risk_threshold", 0.6, 0, 1),
            section.number("risk_factor", 1.2, 1, 1e6),
            (section.amount("be_cpu", "cpu", "250m", 1), section.amount("be_mem", "memory", "200Mi", 1 << 20)),
        )
        self._snapshots: dict[str, tuple[int, Floats]] = {}
        self._limits: dict[TaskClass, tuple[float, float]] = {}

    def on_session_open(self, ssn: Session) -> None:
        nodes = ssn.nodes
        told = [(row, measured(ssn, row)) for row in nodes.live_rows()]
        self._percent, self._fresh = np.zeros((len(nodes.labels), 2)), np.zeros(len(nodes.labels), np.bool_)
        for row, percent in told:
            if percent is not None:
                self._percent[row], self._fresh[row] = percent, True
        if not self._fresh.any():
            return
        self._capacity = _capacity(nodes, ssn.memo)
        self._shadow = np.zeros_like(self._percent)
        self._count_recent(ssn)
        ssn.add_task_predicate(self.name, "usage", self.calm, lambda task: True, resolvable=False)
        if self._weight:
            ssn.add_task_score(self.name, self.score, lambda task: True)
        ssn.add_handlers(self._allocated, self._deallocated)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def calm(self, task: TaskInfo, at: Block) -> Mask:
        """Rows whose measured use is within the thresholds; those that nobody measured pass."""
        busy = (self._percent[at.rows] > self._thresholds).any(axis=1)
        mask: Mask = ~(busy & self._fresh[at.rows])
        return mask

    def score(self, task: TaskInfo, at: Block) -> Floats:
        """What is not in use, of cpu and memory by their weights; 0 for rows that nobody measured."""
        idle = (1 - self._load(at.rows)) @ self._weights
        scores: Floats = np.where(self._fresh[at.rows], idle, 0.0) * (MAX_NODE_SCORE * self._weight)
        return scores

    def _load(self, rows: Any) -> Floats:
        """What is used of cpu and memory, measured and estimated, as parts of the capacity."""
        capacity = self._capacity[rows]
        estimated = np.divide(self._shadow[rows], capacity, out=np.zeros_like(capacity), where=capacity > 0)
        load: Floats = np.clip(np.where(capacity > 0, self._percent[rows] / 100, 0.0) + estimated, 0.0, 1.0)
        return load

    # -- pods that no measurement shows ----------------------------------------------------------------------------------

    def _count_recent(self, ssn: Session) -> None:
        interval = ssn.conf.metrics_interval()
        for row in np.flatnonzero(self._fresh).tolist():
            for task in ssn.nodes.tasks[row].values():
                if task.status in _ON_THE_WAY or (task.status is TaskStatus.RUNNING and _age(task, ssn.now) < interval):
                    self._add(task, row)

    def _allocated(self, event: Event) -> None:
        for task in event.tasks:
            if task.status in _PLANNED:
                self._add(task, task.node)
            elif task.uid in self._snapshots:  # its eviction was taken back
                row, estimate = self._snapshots[task.uid]
                self._shadow[row] += estimate

    def _deallocated(self, event: Event) -> None:
        for task in event.tasks:
            known = self._snapshots.get(task.uid)
            if known is not None:
                self._shadow[known[0]] -= known[1]

    def _add(self, task: TaskInfo, row: int) -> None:
        """Count a pod's estimate, made by how loaded its node is without it."""
        estimator = self._estimator
        risky = float(self._load([row])[0] @ self._weights) >= estimator.risk_threshold
        estimate = estimator.of(task.cls, self._limits_of(task.cls), estimator.risk_factor if risky else 1.0)
        self._shadow[row] += estimate
        self._snapshots[task.uid] = (row, estimate)

    def _limits_of(self, cls: TaskClass) -> tuple[float, float]:
        """The sums of limits, 0 where there are none."""
        found = self._limits.get(cls)
        if found is None:
            units = objects.pod_requests(_limits_as_requests(cls.spec))
            found = self._limits[cls] = (float(units.get("cpu", 0)), float(units.get("memory", 0)))
        return found


def _limits_as_requests(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod spec that asks for its limits."""

    def asking(part: Mapping[str, Any]) -> dict[str, Any]:
        return {**part, "resources": {"requests": (part.get("resources") or {}).get("limits") or {}}}

    groups = {group: [asking(each) for each in spec.get(group) or ()] for group in ("containers", "initContainers")}
    return {**(asking(spec) if "resources" in spec else spec), **groups}


# -- measurements ----------------------------------------------------------------------------------------------------------


def measured(ssn: Session, row: int) -> tuple[float, float] | None:
    """(cpu, memory) in percent, when somebody tells it and it is fresh; a server that was asked goes before the annotation."""
    found = ssn.usage.get(ssn.nodes.names[row])
    if found is None:
        text = (ssn.nodes.objects[row]["metadata"].get("annotations") or {}).get(objects.NODE_USAGE)
        found = _parse(text) if text else None
    return found[:2] if found is not None and ssn.now - found[2] <= FRESH else None


@lru_cache(maxsize=65_536)
def _parse(text: str) -> tuple[float, float, float] | None:
    """cpu, memory and the time of `{"cpu": 41.5, "memory": 60, "time": "2030-01-01T00:00:00Z"}`; None for anything else."""
    try:
        found = orjson.loads(text)
        cpu, memory, at = float(found["cpu"]), float(found["memory"]), objects.parse_time(found["time"])
    except (ValueError, KeyError, TypeError):
        return None
    return (cpu, memory, at) if 0 <= cpu <= 1e6 and 0 <= memory <= 1e6 else None


def _capacity(nodes: NodeTable, memo: dict[Any, Any]) -> Floats:
    """(milli-cpu, bytes) of every row, as the nodes' capacity says."""
    known = memo.get("usage")
    if known is None or known[0] != nodes.static_version or len(known[1]) != len(nodes.labels):
        found = np.zeros((len(nodes.labels), 2))
        for row in nodes.live_rows():
            status = nodes.objects[row].get("status") or {}
            units = objects.resource_units(status.get("capacity") or status.get("allocatable"))
            found[row] = [units.get(name, 0) for name in _NAMED]
        known = memo["usage"] = (nodes.static_version, found)
    capacity: Floats = known[1]
    return capacity


def _age(task: TaskInfo, now: float) -> float:
    text = (task.pod.get("status") or {}).get("startTime")
    return now - (objects.parse_time(text) if text else task.creation)


# -- arguments -------------------------------------------------------------------------------------------------------------


def _at_least_nothing(arguments: Arguments, key: str, default: int) -> int:
    weight = arguments.integer(key, default)
    if weight < 0:
        raise arguments.error(key, said("%(weight)s must not be negative", weight=weight))
    return weight


class _Section:
    """A mapping among the arguments."""

    def __init__(self, arguments: Arguments, key: str, known: set[str]) -> None:
        self._arguments, self._key = arguments, key
        self._values = arguments.value(key, {})
        if not isinstance(self._values, Mapping) or not known >= set(self._values):
            raise arguments.error(key, said("it must be a mapping; known are %(known)s", known=", ".join(sorted(known))))

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """A number in a range."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise self._arguments.error(
                self._key,
                said(
                    "%(name)s %(value)r must be a number from %(least)s to %(most)s",
                    name=name,
                    value=value,
                    least=f"{least:g}",
                    most=f"{most:g}",
                ),
            )
        return float(value)

    def amount(self, name: str, resource: str, default: str, unit: int) -> float:
        """A quantity as a text, or a number of `unit` smallest units."""
        value = self._values.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return float(value * unit)
        try:
            return float(objects.to_units(resource, value if isinstance(value, str) else ""))
        except ValueError as error:
            raise self._arguments.error(self._key, said("%(name)s: %(error)s", name=name, error=error)) from None
