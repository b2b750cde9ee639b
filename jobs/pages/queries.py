"""Questions that pages ask of the projected jobs. Each is a constant number of statements, however many rows there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from cluster.models import Event
from jobs.choices import job_mark
from jobs.models import Job, PhaseChange, Pod, PodGroup, Task
from jobs.pages.asked import DIMENSIONS, FACETS, Filter
from jobs.rows import JOB_FIELDS

PAGE_SIZE = 50
POD_PAGE = 200


@dataclass(frozen=True, slots=True)
class Facets:
    """How many jobs each choice of each dimension has, given the choices in the other dimensions.

    `total` is the number of all jobs where none matches, else of those that do.
    """

    total: int
    matching: int
    counts: dict[str, Counter[str]]


def facets(jobs: QuerySet[Job], asked: Filter) -> Facets:
    """Count every facet in one statement, whose groups are summed here."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in DIMENSIONS}
    chosen = [(at, frozenset(getattr(asked, name))) for at, name in enumerate(DIMENSIONS) if getattr(asked, name)]
    tallies = [counts[name] for name in DIMENSIONS]
    matching = 0
    for phase, group_phase, *values, number in _cube(jobs, asked):
        place = (job_mark(phase, group_phase), *values)
        missed = [at for at, wanted in chosen if place[at] not in wanted]
        if not missed:
            matching += number
            for tally, value in zip(tallies, place, strict=True):
                tally[value] += number
        elif len(missed) == 1:  # a dimension counts all its choices, whichever of them are taken
            tallies[missed[0]][place[missed[0]]] += number
    for tally in counts.values():
        tally.pop("", None)
    total = matching or jobs.filter(deleted_at=None).count()  # an empty answer says of how many
    return Facets(total, matching, counts)


def _cube(jobs: QuerySet[Job], asked: Filter) -> QuerySet[Job, tuple[Any, ...]]:
    """Jobs by all that is counted, in the order of the index `job_counts`, which holds nothing else."""
    counted = asked.base(jobs).order_by()
    return counted.values_list("phase", "group_phase", *FACETS.values()).annotate(jobs=Count("*"))


def listed(jobs: QuerySet[Job], asked: Filter) -> list[Job]:
    """One page of jobs, without their manifests."""
    start = (asked.page - 1) * PAGE_SIZE
    return list(asked.apply(jobs).only(*JOB_FIELDS, "deleted_at")[start : start + PAGE_SIZE])


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs that share a value: how many, their pods (up: running or succeeded) and GPUs (held: by those that run)."""

    value: str
    jobs: int
    up: int
    pods: int
    gpus: int
    held: int
    states: list[tuple[str, int]]
    """Jobs by state mark, in the order of the facets."""


def groups(jobs: QuerySet[Job], asked: Filter, order: tuple[str, ...]) -> list[Group]:
    """The groups of the jobs that match, in the list's order, in one statement; `order` is that of the states."""
    columns = ("phase", "group_phase") if asked.group == "state" else ("phase", "group_phase", FACETS[asked.group])
    sums = {"jobs": Count("*"), "up": Sum("running") + Sum("succeeded"), "pods": Sum("replicas"), "asked": Sum("gpus")}
    found: dict[str, list[Any]] = {}
    for row in asked.narrow(jobs).order_by().values(*columns).annotate(**sums):
        mark = job_mark(row["phase"], row["group_phase"])
        value = mark if asked.group == "state" else row[columns[-1]]
        made = found.setdefault(value, [0, 0, 0, 0, 0, Counter()])
        held = row["asked"] if mark == "running" else 0
        for at, amount in enumerate((row["jobs"], row["up"], row["pods"], row["asked"], held)):
            made[at] += amount
        made[-1][mark] += row["jobs"]
    rows = [
        Group(value, *numbers, [(mark, states[mark]) for mark in order if states[mark]])
        for value, (*numbers, states) in found.items()
    ]
    keys: dict[str, Callable[[Group], Any]] = {
        "name": lambda group: group.value,
        "jobs": lambda group: group.jobs,
        "pods": lambda group: group.pods,
        "gpus": lambda group: group.gpus,
    }
    rows.sort(key=lambda group: group.value)
    return sorted(rows, key=keys[asked.sort.removeprefix("-")], reverse=asked.sort.startswith("-"))


@dataclass(frozen=True, slots=True)
class JobDetail:
    """A job with all that its page shows."""

    job: Job
    tasks: list[Task]
    pods: QuerySet[Pod]
    """By task, index, and the newest first within a place; not read yet."""
    pods_total: int
    runs: int
    """How often the job's pods were made."""
    changes: list[PhaseChange]
    events: list[Event]
    group: PodGroup | None


POD_FIELDS = (
    "uid", "namespace", "name", "job_uid", "task", "index", "job_version", "phase", "node", "gpus", "scheduled_at", "started_at",
    "finished_at", "exit_code", "reason", "message", "restarts", "restarted_at", "containers", "ready", "word", "created_at",
    "deleted_at",
)  # fmt: skip
EVENT_LIMIT = 200


def events_of(uid: str) -> QuerySet[Event]:
    """The events about a job, its pods and its gang."""
    pods = Pod.objects.filter(job_uid=uid).values("uid")
    groups = PodGroup.objects.filter(job_uid=uid).values("uid")
    return Event.objects.filter(Q(about_uid=uid) | Q(about_uid__in=pods) | Q(about_uid__in=groups))


def detail(job: Job, narrow: Callable[[Any, QuerySet[Any]], QuerySet[Any]], user: Any) -> JobDetail:
    """Everything about one job; `narrow(user, queryset)` is the policy's view of rows."""
    groups = list(narrow(user, PodGroup.objects.filter(job_uid=job.uid)).order_by("-created_at")[:1])
    pods = narrow(user, Pod.objects.filter(job_uid=job.uid))
    told = pods.aggregate(total=Count("pk"), runs=Count("job_version", distinct=True))
    events = narrow(user, events_of(job.uid))
    return JobDetail(
        job=job,
        tasks=list(job.tasks.all()),
        pods=pods.only(*POD_FIELDS).order_by("task", "index", "-created_at"),
        pods_total=told["total"],
        runs=told["runs"],
        changes=list(PhaseChange.objects.filter(job_uid=job.uid)),
        events=list(events[:EVENT_LIMIT]),
        group=groups[0] if groups else None,
    )
