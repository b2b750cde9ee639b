"""The tasks of a job that wait for each other (`dependsOn`), drawn as a flow's jobs are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import number
from jobs.choices import PodPhase
from jobs.flows.graph import Box, Graph, arrange, label_of, line
from jobs.models import Job, Task

ORDER = (
    PodPhase.FAILED, PodPhase.UNKNOWN, PodPhase.TERMINATING, PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED,
)  # fmt: skip
"""The phase of a task is the first of these that any of its pods has."""


def graph(job: Job, tasks: Sequence[Task]) -> Graph | None:
    """The drawing; None when no task waits for another."""
    waits = {name: [each for each in names if each in _named(job)] for name, names in _named(job).items()}
    if not any(waits.values()):
        return None
    rows = {task.name: task for task in tasks}
    layout = arrange(waits)
    boxes = {name: _box(name, rows.get(name), x, y, job) for name, (x, y) in layout.places.items()}
    lines = [
        line(boxes[target], boxes[name], is_met=bool(boxes[name].phase)) for name, targets in waits.items() for target in targets
    ]
    return Graph(layout.width, layout.height, list(boxes.values()), lines)


def _named(job: Job) -> dict[str, list[str]]:
    """What each task of the manifest waits for, by name."""
    spec: dict[str, Any] = job.manifest.get("spec") or {}
    return {
        str(task.get("name") or f"default{index}"): list((task.get("dependsOn") or {}).get("name") or ())
        for index, task in enumerate(spec.get("tasks") or ())
    }


def _box(name: str, task: Task | None, x: int, y: int, job: Job) -> Box:
    counts: Counter[str] = Counter(task.counts if task else {})
    phase = next((phase for phase in ORDER if counts[phase]), None)
    word = (
        " · ".join(f"{number(counts[each])} {each.label}" for each in ORDER if counts[each])
        if phase
        else _("waits for the others")
    )
    pods = task.replicas if task else 0
    title = ngettext("%(name)s, %(n)s pod", "%(name)s, %(n)s pods", pods) % {"name": name, "n": number(pods)}
    url = f"?tab=pods&task={name}" if phase else ""
    return Box(name, title, label_of(name), str(phase or ""), phase.mark if phase else "unknown", word, x, y, url)
