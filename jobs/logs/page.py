"""The tab with a job's logs: its form, and the last lines as the page is served. What comes then is fetched by its script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from cluster.logs.records import Record, seconds
from jobs.logs import sources
from jobs.logs.api import may_read_job
from jobs.logs.asked import Asked
from jobs.logs.reading import Reading
from jobs.models import Job, Pod

FIRST_LINES = 300
LINES = (300, 1000, 10_000, 100_000)
_USUAL = 10_000
COLOURS = 6
_MOST_OFFERED = 500


@dataclass(frozen=True, slots=True)
class Shown:
    """A line of the page as it is served; `time` in the reader's zone."""

    time: str
    pod: str
    container: str
    colour: int
    is_error: bool
    is_piece: bool
    text: str


def context(user: Any, job: Job, pods: QuerySet[Pod], given: QueryDict) -> dict[str, Any]:
    """What the tab's template needs; `pods` are those that the user may see. Choices that do not exist count as none."""
    tasks = list(pods.exclude(task="").order_by("task").values_list("task", flat=True).distinct())
    task = given.get("task", "") if given.get("task", "") in tasks else ""
    wanted = pods.filter(task=task) if task else pods
    most = sources.most_pods()
    offered = list(wanted[: max(most, _MOST_OFFERED) + 1])  # of very many it is enough to know that they are
    pod = wanted.filter(uid=given["pod"]).first() if given.get("pod") else None
    if len(offered) > most:
        pod = pod or offered[0]
    names = sources.containers(pod or offered[0], job) if offered else []
    container = given.get("container", "") if given.get("container", "") in names else ""
    lines = int(given["lines"]) if given.get("lines") in map(str, LINES) else _USUAL
    previous = given.get("previous") == "true"
    asked = Asked(container=container, task=task, previous=previous, tail=FIRST_LINES)
    followed = {"format": "json", "follow": "true", "tailLines": lines}
    may_read = may_read_job(user, job)
    address = _address(job, task, pod, container, previous=previous)
    return {
        "log_tasks": tasks if len(tasks) > 1 else [],
        "log_pods": offered[:_MOST_OFFERED],
        "log_containers": names,
        "log_choice": {"task": task, "pod": pod, "container": container, "lines": lines, "previous": previous},
        "log_lines": _lines(job, [pod] if pod else offered, asked) if may_read else [],
        "log_counts": LINES,
        "log_denied": not may_read,
        "log_stream": f"{address}&{urlencode(followed)}",
        "log_file": f"{address}&{urlencode({'download': 'true', 'timestamps': 'true'})}",
        "is_simulated": sources.are_simulated(),
        "is_remote": sources.are_remote(),
        "is_unmasked": may_read and not sources.are_masked([pod] if pod else offered[:most]),
    }


def _address(job: Job, task: str, pod: Pod | None, container: str, *, previous: bool) -> str:
    """Where the REST API gives what was chosen."""
    parameters = {"container": container} | ({"previous": "true"} if previous else {})
    if pod is not None:
        parameters |= {"pod": pod.name}
    parameters |= {"uid": job.uid, "task": task}
    chosen = {key: value for key, value in parameters.items() if value}
    return f"{reverse('api:job-logs', args=[job.namespace, job.name])}?{urlencode(chosen)}"


def _lines(job: Job, pods: list[Pod], asked: Asked) -> list[Shown]:
    reading = Reading(asked)
    found = reading.add(sources.of_pods(pods, job, asked))
    numbers = {source.key: number for number, source in enumerate(found)}
    try:
        return [
            _shown(record, source.pod, source.container, numbers[source.key])
            for piece in reading.begin()
            for source, record in piece
        ]
    finally:
        reading.close()


def _shown(record: Record, pod: str, container: str, number: int) -> Shown:
    colour = number % COLOURS + 1
    at = timezone.localtime(datetime.fromtimestamp(seconds(record.at), UTC))
    return Shown(at.strftime("%H:%M:%S.%f")[:-3], pod, container, colour, record.stream == "e", not record.full, record.shown())
