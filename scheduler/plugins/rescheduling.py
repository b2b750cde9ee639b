"""rescheduling: take pods off nodes that are measured to be busy, as long as other nodes stand nearly idle.

Works with the action shuffle and with what nodes say they use (see `usage`). Each `interval` once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cluster.durations import parse_duration
from cluster.said import said, told
from scheduler.framework.registry import plugin
from scheduler.model.resources import CPU, MEMORY, Floats
from scheduler.model.tasks import TaskInfo
from scheduler.plugins import usage

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_METRICS = ("cpu", "memory")
_COLUMNS = [CPU, MEMORY]
_STRATEGY = "lowNodeUtilization"
_SAME = 1e-9
"""Parts of a node that differ by less are equal: they are sums of decimal percents."""
_LAST = ("rescheduling", "ran")


@plugin
class Rescheduling:
    """Arguments: `interval` (5m), `metricsPeriod` (5m), `strategies`: a list of `{name: lowNodeUtilization, params}`.

    The parameters `thresholds` and `targetThresholds` map cpu and memory to percents, 100 unless said. A node is low when
    it uses less than the threshold of everything, and high when it uses more than the target of something.
    """

    name: ClassVar[str] = "rescheduling"
    _ssn: Session

    def __init__(self, arguments: Arguments) -> None:
        self._interval = _seconds(arguments, "interval")
        _seconds(arguments, "metricsPeriod")  # nodes measure by themselves, at their own pace
        self._strategies = [_Strategy(arguments, given) for given in _listed(arguments)]

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        ssn.add_victim_tasks(self.name, self._victims)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def _victims(self, running: Sequence[TaskInfo]) -> list[TaskInfo]:
        now, last = self._ssn.now, self._ssn.memo.get(_LAST)
        if isinstance(last, float) and last <= now < last + self._interval:
            return []
        self._ssn.memo[_LAST] = now
        found = {task.uid: task for strategy in self._strategies for task in strategy.victims(self._ssn, running)}
        return list(found.values())


class _Strategy:
    """lowNodeUtilization with its limits, each (cpu, memory) as a part of 1."""

    def __init__(self, arguments: Arguments, given: Any) -> None:
        if not isinstance(given, Mapping) or given.get("name") != _STRATEGY or not {"name", "params"} >= set(given):
            raise arguments.error(
                "strategies", said("each must have the name %(strategy)s, and may have params", strategy=_STRATEGY)
            )
        params = given.get("params") or {}
        if not isinstance(params, Mapping) or not {"thresholds", "targetThresholds"} >= set(params):
            raise arguments.error("strategies", said("params are thresholds and targetThresholds"))
        self.low = _limits(arguments, params, "thresholds")
        self.target = _limits(arguments, params, "targetThresholds")

    def victims(self, ssn: Session, running: Sequence[TaskInfo]) -> list[TaskInfo]:
        """From the busiest nodes down: tasks of low priority and modest claims first, while low nodes have room for them."""
        nodes = ssn.nodes
        told = {row: usage.measured(ssn, row) for row in nodes.live_rows().tolist()}
        used = {row: np.array(percent) / 100 for row, percent in told.items() if percent is not None}
        low = [row for row, part in used.items() if (part < self.low).all() and not nodes.cordoned[row]]
        high = [row for row, part in used.items() if (part > self.target).any()]
        if not low or not high or len(low) == len(used):
            return []
        room = {row: nodes.allocatable[row][_COLUMNS].astype(np.float64) for row in used}
        spare: Floats = np.sum([(self.target - used[row]) * room[row] for row in low], axis=0)
        on: dict[int, list[TaskInfo]] = {}
        for task in running:
            if task.preemptable:
                on.setdefault(task.node, []).append(task)
        found = []
        for row in sorted(high, key=lambda row: (-float(used[row].sum()), row)):
            part, size = used[row], np.maximum(room[row], 1)
            for task in sorted(on.get(row, ()), key=lambda task: (task.priority, _claim(task), task.uid)):
                asked = task.request[_COLUMNS]
                if (part <= self.target + _SAME).all():
                    break
                if (spare + 1 < asked).any():  # less than a milli-cpu or byte is rounding
                    continue
                spare, part = spare - asked, part - asked / size
                found.append(task)
        return found


def _claim(task: TaskInfo) -> int:
    """Kubernetes's classes of service: 0 BestEffort, 1 Burstable, 2 Guaranteed."""
    containers = task.cls.spec.get("containers") or ()
    parts = [container.get("resources") or {} for container in containers]
    if not any((part.get("requests") or {}) or (part.get("limits") or {}) for part in parts):
        return 0
    for part in parts:
        limits, requests = part.get("limits") or {}, part.get("requests") or {}
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in _METRICS):
            return 1
    return 2


def _listed(arguments: Arguments) -> list[Any]:
    found = arguments.value("strategies", [])
    if not isinstance(found, list):
        raise arguments.error("strategies", said("must be a list"))
    return found


def _limits(arguments: Arguments, params: Mapping[str, Any], key: str) -> Floats:
    given = params.get(key) or {}
    if not isinstance(given, Mapping) or not set(_METRICS) >= set(given):
        raise arguments.error("strategies", said("%(key)s maps cpu and memory to percents", key=key))
    values = [given.get(name, 100) for name in _METRICS]
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100 for value in values):
        raise arguments.error("strategies", said("%(key)s must be numbers from 0 to 100", key=key))
    return np.array(values, np.float64) / 100


def _seconds(arguments: Arguments, key: str) -> float:
    try:
        return parse_duration(arguments.text(key, "5m"))
    except ValueError as error:
        raise arguments.error(key, told(error)) from None
