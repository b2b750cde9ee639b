"""What a job used: the time that its pods ran, times what each of them asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cluster.quantities import is_gpu
from jobs.models import Pod, Task

HOUR = 3600.0
HOURS = ("pod_hours", "cpu_hours", "gib_hours", "gpu_hours")


@dataclass(frozen=True, slots=True)
class Used:
    """One task (an empty name: all of them): pods, and hours of pods, CPUs, GiB and GPUs."""

    task: str
    pods: int
    pod_hours: float
    cpu_hours: float
    gib_hours: float
    gpu_hours: float

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        hours = {name: round(getattr(self, name), 6) for name in HOURS}
        return {"task": self.task, "pods": self.pods} | hours


def used(tasks: Sequence[Task], pods: Iterable[Pod], present: datetime) -> list[Used]:
    """A line a task, and the sum last. `pods` are lives, each of `alike` pods."""
    requests = {task.name: task.requests for task in tasks}
    counts: dict[str, int] = dict.fromkeys(requests, 0)
    seconds: dict[str, float] = dict.fromkeys(requests, 0.0)
    for pod in pods:
        alike = getattr(pod, "alike", 1)
        counts[pod.task] = counts.get(pod.task, 0) + alike
        if pod.started_at is not None:
            end = pod.finished_at or pod.deleted_at or present
            seconds[pod.task] = seconds.get(pod.task, 0.0) + alike * max(0.0, (end - pod.started_at).total_seconds())
    rows = [_line(task, counts[task], seconds.get(task, 0.0), requests.get(task, {})) for task in counts]
    sums = (sum(getattr(row, name) for row in rows) for name in ("pods", *HOURS))
    total = Used("", *sums)
    return [*rows, total]


def _line(task: str, pods: int, seconds: float, asked: dict[str, int]) -> Used:
    hours = seconds / HOUR
    gpus = sum(units for name, units in asked.items() if is_gpu(name)) / 1000
    return Used(task, pods, hours, hours * asked.get("cpu", 0) / 1000, hours * asked.get("memory", 0) / 2**30, hours * gpus)
