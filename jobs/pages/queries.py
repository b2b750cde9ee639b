"""Questions that pages ask of the projected jobs. Each is a constant number of statements, however many rows there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cluster.models import Event
from cluster.runtime import now
from jobs.choices import ADMITTED, JobPhase, job_mark
from jobs.models import Job, PhaseChange, Pod, PodGroup, Task
from jobs.rows import JOB_FIELDS
from scheduler.framework.explain import Stage

PAGE_SIZE = 50
POD_PAGE = 200
TEXT_LIMIT = 200
ACTIVE = (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)

SORTS: dict[str, str] = {
    "created": "created_at",
    "name": "name",
    "queue": "queue",
    "gpus": "gpus",
    "pods": "replicas",
    "since": "phase_since",
    "state": "phase",
}
"""Names of orderings in a URL, `-` before one reverses it, and the columns that they sort by."""

ENDED = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7)}
"""Windows, up to now, in which a job may have ended."""
ENDED_WORDS = {
    "1h": gettext_lazy("in the last hour"),
    "24h": gettext_lazy("in the last 24 h"),
    "7d": gettext_lazy("in the last 7 d"),
}

STATES: dict[str, Q] = {"inqueue": Q(phase=JobPhase.PENDING, group_phase__in=ADMITTED)}
for _mark in ("pending", "running", "restarting", "terminating", "failed", "aborted", "completed"):
    STATES[_mark] = Q(phase__in=[phase for phase in JobPhase if phase.mark == _mark])
STATES["pending"] &= ~Q(group_phase__in=ADMITTED)
STATE_ORDER = ("pending", "inqueue", "running", "restarting", "terminating", "failed", "aborted", "completed")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a URL's query asks for. `problems` says, in words, what of it cannot be understood and was left out."""

    state: tuple[str, ...] = ()
    stage: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    ended: str = ""
    text: str = ""
    gone: bool = False
    sort: str = "-created"
    page: int = 1
    problems: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, query: QueryDict) -> Filter:
        """Read a query string."""
        problems: list[str] = []

        def known(name: str, values: Iterable[str]) -> tuple[str, ...]:
            asked, possible = query.getlist(name), tuple(values)
            problems.extend(
                _("%(name)s “%(value)s” is not known; use one of %(possible)s.")
                % {"name": name, "value": value[:60], "possible": ", ".join(possible)}
                for value in asked
                if value not in possible
            )
            return tuple(value for value in asked if value in possible)

        sort = query.get("sort", "-created")
        if sort.removeprefix("-") not in SORTS:
            known("sort", SORTS)
            sort = "-created"
        page = query.get("page", "1")
        if not (page.isascii() and page.isdigit() and int(page[:8]) > 0):
            problems.append(_("page “%(value)s” is not a whole number from 1.") % {"value": page[:20]})
            page = "1"
        return cls(
            state=known("state", STATE_ORDER),
            stage=known("stage", [stage.value for stage in Stage]),
            queue=tuple(query.getlist("queue")),
            owner=tuple(query.getlist("owner")),
            namespace=tuple(query.getlist("namespace")),
            model=tuple(query.getlist("model")),
            ended=next(iter(known("ended", ENDED)), "") if query.get("ended") else "",
            text=query.get("q", "").strip().replace("\x00", "")[:TEXT_LIMIT],
            gone=query.get("gone") == "1",
            sort=sort,
            page=int(page[:8]),
            problems=tuple(problems),
        )

    @property
    def is_empty(self) -> bool:
        """Nothing is filtered out."""
        return not (self.text or self.ended or any(getattr(self, name) for name in DIMENSIONS))

    @property
    def chosen(self) -> list[str | Promise]:
        """What is asked for, value by value."""
        values = [value for name in DIMENSIONS for value in getattr(self, name)]
        return [*values, *filter(None, (ENDED_WORDS.get(self.ended), self.text))]

    def base(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """The set that facets count in: everything but the facets' own choices."""
        if not self.gone:
            jobs = jobs.filter(deleted_at=None)
        if self.ended:
            jobs = jobs.filter(finished_at__gt=now() - ENDED[self.ended])
        for word in self.text.split():
            jobs = jobs.filter(
                Q(name__icontains=word) | Q(owner__icontains=word) | Q(queue__icontains=word) | Q(namespace__icontains=word)
            )
        return jobs

    def narrow(self, jobs: QuerySet[Job], without: str = "") -> QuerySet[Job]:
        """The jobs that match; `without` names a dimension whose choices are left aside."""
        jobs = self.base(jobs)
        if self.state and without != "state":
            wanted = Q()
            for state in self.state:
                wanted |= STATES[state]
            jobs = jobs.filter(wanted)
        for name, column in COLUMNS.items():
            if name != without and (chosen := getattr(self, name)):
                jobs = jobs.filter(**{f"{column}__in": chosen})
        return jobs

    def apply(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs that match, in order."""
        sign = "-" if self.sort.startswith("-") else ""
        return self.narrow(jobs).order_by(f"{sign}{SORTS[self.sort.removeprefix('-')]}", "uid")


COLUMNS = {"stage": "verdict_stage", "queue": "queue", "owner": "owner", "namespace": "namespace", "model": "gpu_model"}
DIMENSIONS = ("state", *COLUMNS)
_CUBE = tuple(name for name in DIMENSIONS if name != "owner")
"""What is counted in one statement; owners are many, and would multiply its groups."""


@dataclass(frozen=True, slots=True)
class Facets:
    """How many jobs each choice of each dimension has, given the choices in the other dimensions.

    `total` is the number of all jobs where none matches, else of those that do.
    """

    total: int
    matching: int
    counts: dict[str, Counter[str]]


def facets(jobs: QuerySet[Job], asked: Filter) -> Facets:
    """Count every facet in two statements: the owners, and all other dimensions at once, whose groups are summed here."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in DIMENSIONS}
    owners = asked.narrow(jobs, without="owner").order_by().values_list("owner").annotate(jobs=Count("*"))
    counts["owner"].update(dict(owners))
    chosen = [(at, frozenset(getattr(asked, name))) for at, name in enumerate(_CUBE) if getattr(asked, name)]
    tallies = [counts[name] for name in _CUBE]
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
    found = asked.base(jobs)
    if asked.owner:
        found = found.filter(owner__in=asked.owner)
    columns = [COLUMNS[name] for name in _CUBE[1:]]
    return found.order_by().values_list("phase", "group_phase", *columns).annotate(jobs=Count("*"))


def listed(jobs: QuerySet[Job], asked: Filter) -> list[Job]:
    """One page of jobs, without their manifests."""
    start = (asked.page - 1) * PAGE_SIZE
    return list(asked.apply(jobs).only(*JOB_FIELDS, "deleted_at")[start : start + PAGE_SIZE])


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
