"""cdp: what has just been placed is left alone for a while, the cooldown that its pod asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from cluster import objects
from cluster.durations import parse_duration
from scheduler.framework.registry import plugin
from scheduler.model.tasks import TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

COOLDOWN = "volcano.sh/cooldown-time"


@plugin
class Cdp:
    """A running pod whose condition PodScheduled turned true less than its cooldown ago is no victim."""

    name: ClassVar[str] = "cdp"
    _now: float

    def __init__(self, arguments: Arguments) -> None:
        """cdp has no arguments."""

    def on_session_open(self, ssn: Session) -> None:
        self._now = ssn.now
        ssn.add_preemptable(self.name, self._victims)
        ssn.add_reclaimable(self.name, self._victims)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def _victims(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        return [task for task in candidates if not self._is_cooling(task)]

    def _is_cooling(self, task: TaskInfo) -> bool:
        wait = cooldown(task)
        if not wait or task.status is not TaskStatus.RUNNING:
            return False
        condition = objects.condition(task.pod, "PodScheduled")
        if condition is None or condition.get("status") != "True" or not condition.get("lastTransitionTime"):
            return False
        return objects.parse_time(condition["lastTransitionTime"]) + wait > self._now


def cooldown(task: TaskInfo) -> float:
    """Seconds that a pod asks for, by its label or else its annotation; 0 when it asks for none that makes sense."""
    meta = task.pod["metadata"]
    text = (meta.get("labels") or {}).get(COOLDOWN) or (meta.get("annotations") or {}).get(COOLDOWN)
    if not text:
        return 0.0
    try:
        return parse_duration(text)
    except ValueError:
        return 0.0
