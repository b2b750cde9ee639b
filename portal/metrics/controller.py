"""What the controllers do: phases of jobs, flows and PodGroups, read from their local copy when somebody asks."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric

from cluster.informer import Informer
from cluster.kinds import JOB, JOB_FLOW, POD, POD_GROUP, QUEUE, Kind
from cluster.objects import key, name, namespace, owner, parse_time
from cluster.port import Cluster, Obj, Outcome
from jobs.roles import told_phase
from portal.metrics.base import MOST_OBJECTS, Collected, buckets, gauges, registry

GROUP_PHASES = ("inqueue", "pending", "running", "unknown", "completed")


class ControllerMetrics:
    """Counts over a controller's local copy; `due` says how many keys wait to be worked, None where nobody knows."""

    def __init__(
        self,
        informer: Callable[[], Informer | None],
        into: CollectorRegistry = registry,
        *,
        due: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._current, self._due = informer, due
        into.register(Collected(self._families))

    def _families(self) -> Iterator[Metric]:
        informer = self._current()
        if informer is None:
            return
        if (due := self._due()) is not None:
            yield gauges("basalt_work_queue", "Objects that wait for a controller's look", (), {(): float(due)})
        yield from _groups(informer)
        jobs = list(informer.all(JOB))
        phases = Tally(told_phase(job) for job in jobs)
        yield gauges("basalt_jobs", "Jobs by phase", ("phase",), {(phase,): float(count) for phase, count in phases.items()})
        for phase in ("Completed", "Failed"):
            yield _ended(jobs, phase)
        for phase, word in (("Succeed", "succeed"), ("Failed", "failed")):
            flows = Tally(namespace(flow) for flow in informer.all(JOB_FLOW) if told_phase(flow) == phase)
            counts = {(where,): float(count) for where, count in flows.items()}
            yield gauges(f"volcano_jobflow_{word}_phase_count", f"JobFlows that are {phase}", ("jobflow_namespace",), counts)


class Making:
    """See `cluster.port.Cluster`; every verb is the inner cluster's. Of each pod that is made it is told how long that took."""

    def __init__(
        self, inner: Cluster, informer: Callable[[], Informer | None] = lambda: None, into: CollectorRegistry = registry
    ) -> None:
        self._inner, self.informer = inner, informer
        self._waited = Histogram(
            "volcano_controller_job_to_pod_creation_latency_milliseconds",
            "From a job's creation to that of each of its pods",
            buckets=buckets(1, 60000, 20),
            registry=into,
        )

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._inner, attribute)

    def create_many(self, kind: Kind, objects: Sequence[Obj], **how: Any) -> list[Outcome]:
        """Create, and tell."""
        outcomes = self._inner.create_many(kind, objects, **how)
        for outcome in outcomes if kind == POD else ():
            if outcome.object is not None:
                self._made(outcome.object)
        return outcomes

    def _made(self, pod: Obj) -> None:
        informer, of = self.informer(), owner(pod)
        job = informer.get(JOB, f"{namespace(pod)}/{of['name']}") if informer is not None and of else None
        if job is not None and of is not None and job["metadata"]["uid"] == of["uid"]:
            waited = parse_time(pod["metadata"]["creationTimestamp"]) - parse_time(job["metadata"]["creationTimestamp"])
            self._waited.observe(max(waited, 0) * 1000)


def _groups(informer: Informer) -> Iterator[Metric]:
    queues = {name(queue): Tally[str]() for queue in informer.all(QUEUE)}
    for group in informer.all(POD_GROUP):
        queue = (group.get("spec") or {}).get("queue") or "default"
        phase = ((group.get("status") or {}).get("phase") or "Pending").lower()
        queues.setdefault(queue, Tally())[phase] += 1
    for phase in GROUP_PHASES:
        counts = {(queue,): float(tally[phase]) for queue, tally in queues.items()}
        yield gauges(f"volcano_queue_pod_group_{phase}_count", f"PodGroups {phase}", ("queue_name",), counts)


def _ended(jobs: Sequence[Obj], phase: str) -> Metric:
    """How often each job that is there came into a final phase, by its own history."""
    counts: dict[tuple[str, str], int] = {}
    for job in jobs:
        history = (job.get("status") or {}).get("conditions") or ()
        if times := sum(1 for step in history if step.get("status") == phase):
            counts[key(job), (job.get("spec") or {}).get("queue") or "default"] = times
    newest = dict(list(counts.items())[-MOST_OBJECTS:])
    what = f"How often jobs that are there became {phase}"
    return gauges(f"volcano_job_{phase.lower()}_phase_count", what, ("job_name", "queue_name"), newest)
