"""What the scheduler does: each cycle's record counted, and what its model holds, read when somebody asks."""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from cluster.clock import Clock, SystemClock
from portal.metrics.base import MOST_OBJECTS, Collected, amounts, buckets, gauges, registry
from portal.metrics.cards import families as cards
from scheduler.cache import SchedulerCache
from scheduler.framework.explain import Verdict
from scheduler.framework.record import CycleRecord, QueueShare
from scheduler.model.jobs import JobInfo

JOB = ("job_name", "queue", "job_namespace")
MOST_PLACED = 50_000
"""Pods that are given a node and not bound yet, of which the creation is remembered."""
AMOUNTS = ("allocated", "request", "deserved", "inqueue")


@dataclass(frozen=True, slots=True)
class _Served:
    """When a job was last given a node, and how many milliseconds after its creation that was."""

    queue: str
    created: float
    last: float


class SchedulerMetrics:
    """A sink of cycles. `cache` is the scheduler's model, for what is told of jobs, queues and cards.

    It is read in the thread that owns it, after a cycle, but not more often than each `every` seconds.
    """

    def __init__(
        self,
        into: CollectorRegistry = registry,
        cache: Callable[[], SchedulerCache | None] = lambda: None,
        clock: Clock | None = None,
        every: float = 5.0,
    ) -> None:
        self._cache, self._clock, self._every = cache, clock or SystemClock(), every
        self._read_at = float("-inf")
        self._model: list[Metric] = []
        self._histograms(into)
        self._counters(into)
        self._lock = threading.Lock()
        self._waiting: dict[str, Verdict] = {}
        self._retries: Tally[str] = Tally()
        self._queues: dict[str, QueueShare] = {}
        self._placed: dict[str, float] = {}
        self._served: dict[str, _Served] = {}
        into.register(Collected(self._families))

    def _histograms(self, into: CollectorRegistry) -> None:
        def histogram(name: str, what: str, bounds: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"volcano_{name}", what, labels, buckets=bounds, registry=into)

        self._cycle = histogram("e2e_scheduling_latency_milliseconds", "A whole session", buckets(1, 5000, 20))
        self._open = histogram("open_session_duration_milliseconds", "The opening of a session", buckets(1, 5000, 20))
        self._job = histogram(
            "e2e_job_scheduling_latency_milliseconds", "From a job's creation to its last pod's node", buckets(100, 120000, 30)
        )
        self._plugin = histogram(
            "plugin_scheduling_latency_milliseconds", "A plugin at a session's opening or closing", buckets(0.1, 100, 15),
            "plugin", "OnSession",
        )  # fmt: skip
        self._action = histogram("action_scheduling_latency_milliseconds", "One action", buckets(1, 2000, 20), "action")
        self._task = histogram(
            "task_scheduling_latency_milliseconds", "From a pod's creation to a stage of it", buckets(50, 60000, 30), "stage"
        )
        self._stage = histogram(
            "scheduling_stage_duration_milliseconds", "Time spent in a stage: a session's checks and scores, a batch's binds",
            buckets(0.1, 500, 20), "stage",
        )  # fmt: skip

    def _counters(self, into: CollectorRegistry) -> None:
        # Volcano's counters whose names do not end in _total: the client would append it to a counter's.
        self._attempts = Gauge("volcano_total_preemption_attempts", "Sessions that evicted for a preemptor", registry=into)
        self._victims = Gauge("volcano_pod_preemption_victims", "Pods that the newest such session evicted", registry=into)
        self._results = Counter("volcano_schedule_attempts", "Jobs that sessions looked at, by result", ["result"], registry=into)
        self._transactions = Counter(
            "volcano_eviction_transactions", "Preemptors for whom an action evicted", ["action"], registry=into
        )
        self._bound = Counter("basalt_pods_bound", "Pods that sessions gave a node", registry=into)
        self._evicted = Counter("basalt_pods_evicted", "Pods that sessions evicted", registry=into)
        self._considered = Counter("basalt_pods_considered", "Pods that sessions looked at", registry=into)
        self._failed = Counter("basalt_binds_failed", "Binds that the API server did not take", registry=into)

    def __call__(self, record: CycleRecord) -> None:
        """Take a cycle's record."""
        self._cycle.observe(record.milliseconds)
        self._open.observe(record.opening)
        for action, milliseconds in record.actions.items():
            self._action.labels(action).observe(milliseconds)
        for plugin, (opening, closing) in record.plugins.items():
            self._plugin.labels(plugin, "OnSessionOpen").observe(opening)
            self._plugin.labels(plugin, "OnSessionClose").observe(closing)
        self._stage.labels("Predicate").observe(record.checking)
        self._stage.labels("Scoring").observe(record.scoring)
        self._bound.inc(record.bound)
        self._evicted.inc(record.evicted)
        self._considered.inc(record.considered)
        self._count_evictions(record)
        end = record.at + record.milliseconds / 1000
        for created in record.placed.values():
            self._task.labels("Assumed").observe(max(end - created, 0) * 1000)
        if len(self._placed) > MOST_PLACED:  # pods that were never bound
            self._placed.clear()
        self._placed.update(record.placed)
        cache = self._cache()
        with self._lock:
            self._take_over(record, end)
            if cache is not None and monotonic() >= self._read_at + self._every:
                self._read_at = monotonic()
                self._forget(cache.jobs)
                self._model = list(_of_model(cache))

    def watched(self, created: float) -> None:
        """A pod of ours was seen for the first time."""
        self._reached("Watched", [created])

    def prepared(self, uids: Sequence[str], milliseconds: float) -> None:
        """Pods are about to be bound; what they need besides (claims, locks) took so long to write."""
        self._stage.labels("PreBind").observe(milliseconds)
        self._reached("PreBound", [self._placed[uid] for uid in uids if uid in self._placed])

    def bound(self, outcomes: Mapping[str, bool], milliseconds: float) -> None:
        """What became of a batch of binds, by the pods' uids."""
        self._stage.labels("Bind").observe(milliseconds)
        self._failed.inc(sum(not done for done in outcomes.values()))
        created = {uid: self._placed.pop(uid, None) for uid in outcomes}
        self._reached("Bound", [at for uid, at in created.items() if at is not None and outcomes[uid]])

    def _reached(self, stage: str, created: Iterable[float]) -> None:
        now = self._clock.now()
        for each in created:
            self._task.labels(stage).observe(max(now - each, 0) * 1000)

    def _count_evictions(self, record: CycleRecord) -> None:
        if record.evictions:
            self._attempts.inc()
            self._victims.set(len(record.evictions))
            for action, _ in {(each.action, each.preemptor) for each in record.evictions}:
                self._transactions.labels(action).inc()

    def _take_over(self, record: CycleRecord, end: float) -> None:
        if record.queues:
            self._queues = record.queues
        for key, verdict in record.verdicts.items():
            if verdict is None:
                self._waiting.pop(key, None)
            else:
                self._waiting[key] = verdict
                self._retries[key] += 1
                self._results.labels("unschedulable").inc()
        for uid, job in record.served.items():
            self._results.labels("scheduled").inc()
            self._job.observe(max(end - job.created, 0) * 1000)
            self._served.pop(uid, None)  # the newest come last
            self._served[uid] = _Served(job.queue, job.created, end)

    def _families(self) -> Iterator[Metric]:
        with self._lock:
            queues, waiting, served, retries = self._queues, dict(self._waiting), dict(self._served), dict(self._retries)
            model = self._model
        yield GaugeMetricFamily("volcano_unschedule_job_count", "Gangs that wait for room", len(waiting))
        yield from _of_waiting(waiting, retries)
        yield from _of_served(dict(list(served.items())[-MOST_OBJECTS:]))
        yield from _of_shares(queues)
        yield from model

    def _forget(self, jobs: Mapping[str, Any]) -> None:
        """Drop what is told of jobs that are gone."""
        for kept in (self._waiting, self._served, self._retries):
            for uid in [uid for uid in kept if uid not in jobs]:
                del kept[uid]


def _of_waiting(waiting: Mapping[str, Verdict], retries: Mapping[str, int]) -> Iterator[Metric]:
    """Volcano names a job by its PodGroup alone: those of one name in several namespaces are told together."""
    lacks: Tally[str] = Tally()
    for key, verdict in list(waiting.items())[-MOST_OBJECTS:]:
        lacks[key.partition("/")[2]] += max(verdict.needed - verdict.placeable, 0)
    tasks = {(name,): float(count) for name, count in lacks.items()}
    yield gauges("volcano_unschedule_task_count", "Pods that a waiting gang lacks", ("job_id",), tasks)
    again: Tally[str] = Tally()
    for key, count in list(retries.items())[-MOST_OBJECTS:]:
        again[key.partition("/")[2]] += count
    counts = {(name,): float(count) for name, count in again.items()}
    yield gauges("volcano_job_retry_counts", "How often a gang was found waiting anew", ("job_id",), counts)


def _of_served(served: Mapping[str, _Served]) -> Iterator[Metric]:
    def by_job(value: Callable[[_Served], float]) -> dict[tuple[str, ...], float]:
        return {(uid.partition("/")[2], job.queue, uid.partition("/")[0]): value(job) for uid, job in served.items()}

    of = "volcano_e2e_job_scheduling"
    took = by_job(lambda job: (job.last - job.created) * 1000)
    yield gauges(f"{of}_duration", "Milliseconds from creation to the last pod's node", JOB, took)
    yield gauges(f"{of}_start_time", "When the job was created (Unix time)", JOB, by_job(lambda job: job.created))
    yield gauges(f"{of}_last_time", "When a pod of it was last given a node (Unix time)", JOB, by_job(lambda job: job.last))


def _of_shares(queues: Mapping[str, QueueShare]) -> Iterator[Metric]:
    label = ("queue_name",)
    yield gauges("volcano_queue_share", "Share of a queue", label, {(name,): queue.share for name, queue in queues.items()})
    over = {(name,): float(queue.share >= 1) for name, queue in queues.items()}
    yield gauges("volcano_queue_overused", "1 when a queue has what it deserves", label, over)
    for amount in AMOUNTS:
        yield from amounts(f"volcano_queue_{amount}", amount, {name: getattr(queue, amount) for name, queue in queues.items()})
    yield from amounts("volcano_queue_real_capacity", "at most", {name: queue.limit for name, queue in queues.items()})


def _of_model(cache: SchedulerCache) -> Iterator[Metric]:
    """What the model holds now."""
    queues = list(cache.queues.values())
    weights = {(queue.name,): float(queue.weight) for queue in queues}
    yield gauges("volcano_queue_weight", "Weight of a queue", ("queue_name",), weights)
    capability = {queue.name: cache.dims.units(queue.capability.values) for queue in queues if queue.capability.present.any()}
    yield from amounts("volcano_queue_capacity", "of the capability", capability)
    jobs = list(cache.jobs.values())
    shares = dict(islice(_shares(cache, jobs), MOST_OBJECTS))
    yield gauges("volcano_job_share", "Dominant share of a job", ("job_ns", "job_id"), shares)
    aside = GaugeMetricFamily("basalt_objects_set_aside", "Objects that make no sense to the scheduler", len(cache.doubts()))
    yield aside
    phases = {(phase,): float(count) for phase, count in Tally(job.phase for job in jobs).items()}
    yield gauges("basalt_podgroups", "PodGroups by phase", ("phase",), phases)
    yield from cards(cache.nodes)


def _shares(cache: SchedulerCache, jobs: Sequence[JobInfo]) -> Iterator[tuple[tuple[str, str], float]]:
    """The largest part of a cluster's total that each job holds (drf's figure), the newest first; none of those without."""
    total = cache.nodes.total().values
    owned = total > 0
    for job in reversed(jobs):
        held = job.allocated
        width = min(len(held), len(total))
        if held.any() and owned[:width].any():
            yield (job.namespace, job.name), float((held[:width][owned[:width]] / total[:width][owned[:width]]).max())
