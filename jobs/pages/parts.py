"""The parts of a job's page that come whole over the live channel: drawn on the server, once a language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from jobs.choices import JobPhase
from jobs.models import Job, PhaseChange, Pod, PodGroup
from jobs.pages import timeline
from jobs.pages.facts import Facts
from jobs.pages.podgrid import is_large, overview
from jobs.pages.podmap import Map
from jobs.pages.rendered import parts_in_all_languages
from jobs.pages.taskgraph import graph

TEMPLATES = {
    "age": "jobs/age.html",
    "asks": "jobs/asks.html",
    "legend": "jobs/legend.html",
    "timeline": "jobs/timeline.html",
    "conditions": "jobs/all_conditions.html",
    "taskgraph": "jobs/taskgraph.html",
}
LARGE = {"grid": "jobs/grid.html"}
"""What is drawn of a large job alone: the marks of a small one follow its pods one by one."""


def rendered(
    job: Job,
    changes: Sequence[PhaseChange],
    pods: Sequence[Pod],
    group: PodGroup | None,
    facts: Facts | None = None,
    drawn_maps: Sequence[Map] = (),
) -> list[dict[str, Any]]:
    """Each part as `{"uid": its name, "html": {language: text}}`. Equal facts give equal text, whatever the time is."""
    tasks = list(job.tasks.all())
    templates = TEMPLATES | (LARGE if is_large(tasks) else {})
    rows = overview(tasks) if is_large(tasks) else []

    def shown() -> dict[str, Any]:
        drawn = timeline.build(job, changes, pods, max(_instants(job, changes, pods, facts)), facts)
        return {
            "job": job,
            "timeline": drawn,
            "group": group,
            "is_over": is_over(job),
            "grid": rows,
            "maps": drawn_maps,
            "graph": graph(job, tasks),
        }

    return list(parts_in_all_languages(templates, shown).values())


def is_over(job: Job) -> bool:
    """Whether the job has ended for good, and when is known."""
    return JobPhase(job.phase).is_final and job.finished_at is not None


def _instants(job: Job, changes: Sequence[PhaseChange], pods: Sequence[Pod], facts: Facts | None) -> Iterator[datetime]:
    yield job.created_at
    yield from (change.at for change in changes)
    if facts is not None:
        yield from (moment.at for moment in facts.moments)
        yield from (hold.since for hold in facts.holds)
        yield from facts.queue.times[-1:] if facts.queue else ()
    for pod in pods:
        yield from filter(None, (pod.created_at, pod.started_at, pod.finished_at, pod.deleted_at))
