"""The headline numbers. Each comes from one function here, wherever a page, the API or the live channel shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import median, quantiles
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When

from cluster import queries as fleet_queries
from cluster import runtime
from cluster.access import policy
from cluster.models import Node
from jobs.choices import GroupPhase, JobPhase
from jobs.models import Job

DAY, HOUR = timedelta(hours=24), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Health:
    """How the machines are. `faults` counts GPUs that their node reports as unhealthy."""

    nodes: int
    ready: int
    faults: int


def health() -> Health:
    """Nodes that exist, those that are ready, and the GPU faults among them; one query."""
    nodes = ready = faults = 0
    for is_ready, unhealthy in Node.objects.filter(deleted_at=None).values_list("ready", "gpu_unhealthy").iterator():
        nodes += 1
        ready += is_ready
        faults += len(unhealthy)
    return Health(nodes, ready, faults)


@dataclass(frozen=True, slots=True)
class Headline:
    """The overview's first line. Waits are seconds, None when no job started in the last day; `…_hour` count the last hour."""

    gpus_total: int
    gpus_used: int
    gpus_free: int
    jobs_running: int
    pods_running: int
    jobs_waiting: int
    gpus_waiting: int
    jobs_failed: int
    jobs_ended: int
    started_hour: int
    finished_hour: int
    wait_median: float | None
    wait_p90: float | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, as the live topic `overview` carries it."""
        return asdict(self)


def headline(user: Any, fleet: fleet_queries.Fleet | None = None, waiting: list[Wait] | None = None) -> Headline:
    """Every figure for one user; a fleet, and who waits, are not read again where they were."""
    fleet = fleet or fleet_queries.fleet(user)
    waiting = waits(user) if waiting is None else waiting
    present = runtime.now()
    jobs = policy().visible(user, Job.objects.all())
    spans = waited(jobs, present)
    counts = jobs.aggregate(
        jobs_running=Count("uid", filter=RUNNING),
        pods_running=Sum("running", filter=RUNNING, default=0),
        jobs_failed=Count("uid", filter=Q(phase=JobPhase.FAILED, finished_at__gt=present - DAY)),
        jobs_ended=Count("uid", filter=Q(finished_at__gt=present - DAY)),
        started_hour=Count("uid", filter=Q(started_at__gt=present - HOUR)),
        finished_hour=Count("uid", filter=Q(finished_at__gt=present - HOUR)),
    )
    return Headline(
        gpus_total=fleet.total,
        gpus_used=fleet.used,
        gpus_free=fleet.counts["free"],
        jobs_waiting=sum(each.jobs for each in waiting),
        gpus_waiting=sum(each.gpus for each in waiting),
        wait_median=median(spans) if spans else None,
        wait_p90=quantiles(spans, n=10)[-1] if len(spans) > 1 else spans[0] if spans else None,
        **counts,
    )


RUNNING = Q(phase=JobPhase.RUNNING, deleted_at=None)
WAITING = Q(phase=JobPhase.PENDING, deleted_at=None)


def waiting(user: Any) -> tuple[int, int]:
    """Jobs that wait, and the GPUs that they ask."""
    found = policy().visible(user, Job.objects.filter(WAITING)).aggregate(jobs=Count("uid"), asked=Sum("gpus", default=0))
    return found["jobs"], found["asked"]


def waited(jobs: QuerySet[Job], present: datetime) -> list[float]:
    """Seconds from submission to first start, of the jobs that started in the last day."""
    started = jobs.filter(started_at__gt=present - DAY, started_at__gte=F("created_at"))
    return [(start - made).total_seconds() for made, start in started.values_list("created_at", "started_at")]


STARTING = "starting"
"""In the place of a stage: nothing holds the gang any more, its pods have nodes and begin."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Waiting jobs of one queue at one stage (empty: not judged yet), and the GPUs that they ask."""

    queue: str
    stage: str
    jobs: int
    gpus: int


def waits(user: Any) -> list[Wait]:
    """Every waiting job that the user may see, counted once, in one query."""
    stage = Case(When(group_phase=GroupPhase.RUNNING, then=Value(STARTING)), default=F("verdict_stage"))
    found = policy().visible(user, Job.objects.filter(WAITING)).order_by().values_list("queue", stage)
    return [Wait(*row) for row in found.annotate(jobs=Count("uid"), asked=Sum("gpus", default=0))]


def held_at(waiting: list[Wait]) -> list[tuple[str, int, int]]:
    """Waiting jobs by what they wait for: (stage, jobs, GPUs asked), most first."""
    jobs: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for each in waiting:
        jobs[each.stage] += each.jobs
        gpus[each.stage] += each.gpus
    return [(stage, count, gpus[stage]) for stage, count in jobs.most_common()]
