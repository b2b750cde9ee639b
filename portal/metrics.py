"""What a process measures of itself, for Prometheus: Volcano's names where Volcano has one, ours beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.informer import Informer
from cluster.kinds import JOB, POD_GROUP
from scheduler.framework.explain import Verdict
from scheduler.framework.record import CycleRecord, QueueShare

disable_created_metrics()
registry = CollectorRegistry()
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)

_BUCKETS = tuple(5.0 * 2**step for step in range(12))
_API_REQUESTS = Counter(
    "basalt_api_requests",
    "Requests to the API server, by method and status (0: no answer)",
    ["method", "code"],
    registry=registry,
)
_LEADS = Gauge("basalt_leads", "1 while this process holds its lease", registry=registry)


def heard(method: str, status: int) -> None:
    """Count one request to the API server."""
    _API_REQUESTS.labels(method, str(status)).inc()


def watch_lead(leads: Any) -> None:
    """Show whether this process leads, as `leads()` says."""
    _LEADS.set_function(lambda: float(leads()))


def text() -> bytes:
    """Everything, as Prometheus reads it."""
    return bytes(generate_latest(registry))


class SchedulerMetrics:
    """A sink of cycles that counts them. Queues' standings are shown as the newest cycle saw them."""

    def __init__(self, into: CollectorRegistry = registry) -> None:
        self._cycle = Histogram("volcano_e2e_scheduling_latency_milliseconds", "A whole session", buckets=_BUCKETS, registry=into)
        self._action = Histogram(
            "volcano_action_scheduling_latency_milliseconds",
            "One action of a session",
            ["action"],
            buckets=_BUCKETS,
            registry=into,
        )
        # Volcano's counters whose names do not end in _total: the client would append it to a counter's.
        self._attempts = Gauge("volcano_total_preemption_attempts", "Sessions that evicted for a preemptor", registry=into)
        self._retries = Gauge("volcano_job_retry_counts", "How often a gang was found waiting anew", ["job_id"], registry=into)
        self._victims = Gauge("volcano_pod_preemption_victims", "Pods that the newest such session evicted", registry=into)
        self._transactions = Counter(
            "volcano_eviction_transactions", "Preemptors for whom an action evicted", ["action"], registry=into
        )
        self._bound = Counter("basalt_pods_bound", "Pods that sessions gave a node", registry=into)
        self._evicted = Counter("basalt_pods_evicted", "Pods that sessions evicted", registry=into)
        self._considered = Counter("basalt_pods_considered", "Pods that sessions looked at", registry=into)
        self._lock = threading.Lock()
        self._waiting: dict[str, Verdict] = {}
        self._queues: dict[str, QueueShare] = {}
        into.register(_Collected(self._families))

    def __call__(self, record: CycleRecord) -> None:
        """Take a cycle's record."""
        self._cycle.observe(record.milliseconds)
        for action, milliseconds in record.actions.items():
            self._action.labels(action).observe(milliseconds)
        self._bound.inc(record.bound)
        self._evicted.inc(record.evicted)
        self._considered.inc(record.considered)
        if record.evictions:
            self._attempts.inc()
            self._victims.set(len(record.evictions))
            for action, _ in {(each.action, each.preemptor) for each in record.evictions}:
                self._transactions.labels(action).inc()
        with self._lock:
            if record.queues:
                self._queues = record.queues
            for key, verdict in record.verdicts.items():
                name = key.partition("/")[2]
                if verdict is None:
                    if self._waiting.pop(key, None) is not None:
                        self._retries.remove(name)
                else:
                    self._waiting[key] = verdict
                    self._retries.labels(name).inc()

    def _families(self) -> Iterator[Metric]:
        with self._lock:
            queues, waiting = dict(self._queues), dict(self._waiting)
        yield GaugeMetricFamily("volcano_unschedule_job_count", "Gangs that wait for room", len(waiting))
        tasks = GaugeMetricFamily("volcano_unschedule_task_count", "Pods that a waiting gang lacks", labels=["job_id"])
        for key, verdict in waiting.items():
            tasks.add_metric([key.partition("/")[2]], max(verdict.needed - verdict.placeable, 0))
        yield tasks
        share = GaugeMetricFamily("volcano_queue_share", "Share of a queue", labels=["queue_name"])
        over = GaugeMetricFamily("volcano_queue_overused", "1 when a queue has what it deserves", labels=["queue_name"])
        for name, queue in queues.items():
            share.add_metric([name], queue.share)
            over.add_metric([name], float(queue.share >= 1))
        yield from (share, over)
        for label in ("allocated", "request", "deserved", "inqueue"):
            yield from _amounts(label, {name: getattr(queue, label) for name, queue in queues.items()})
        yield from _amounts("real_capacity", {name: queue.limit for name, queue in queues.items()})


class ControllerMetrics:
    """Counts over a controller's local copy, taken when somebody asks."""

    def __init__(self, informer: Callable[[], Informer | None], into: CollectorRegistry = registry) -> None:
        self._current = informer
        into.register(_Collected(self._families))

    def _families(self) -> Iterator[Metric]:
        informer = self._current()
        if informer is None:
            return
        queues: dict[str, dict[str, int]] = {}
        for group in informer.all(POD_GROUP):
            name = (group.get("spec") or {}).get("queue") or "default"
            phase = ((group.get("status") or {}).get("phase") or "Pending").lower()
            counts = queues.setdefault(name, {})
            counts[phase] = counts.get(phase, 0) + 1
        for phase in ("inqueue", "pending", "running", "unknown", "completed"):
            family = GaugeMetricFamily(f"volcano_queue_pod_group_{phase}_count", f"PodGroups {phase}", labels=["queue_name"])
            for name, counts in queues.items():
                family.add_metric([name], counts.get(phase, 0))
            yield family
        phases: dict[str, int] = {}
        for job in informer.all(JOB):
            phase = ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"
            phases[phase] = phases.get(phase, 0) + 1
        jobs = GaugeMetricFamily("basalt_jobs", "Jobs by phase", labels=["phase"])
        for phase, count in phases.items():
            jobs.add_metric([phase], count)
        yield jobs


class _Collected(Collector):
    def __init__(self, families: Any) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return list(self._families())

    def describe(self) -> Iterable[Metric]:
        return ()


def _amounts(label: str, queues: dict[str, dict[str, int]]) -> Iterator[Metric]:
    """Volcano's three families of an amount: milli-CPUs, bytes of memory, thousandths of everything else."""
    cpu = GaugeMetricFamily(f"volcano_queue_{label}_milli_cpu", f"CPUs {label}", labels=["queue_name"])
    memory = GaugeMetricFamily(f"volcano_queue_{label}_memory_bytes", f"Memory {label}", labels=["queue_name"])
    others = GaugeMetricFamily(
        f"volcano_queue_{label}_scalar_resources", f"Other resources {label}", labels=["queue_name", "resource"]
    )
    for name, amounts in queues.items():
        cpu.add_metric([name], amounts.get("cpu", 0))
        memory.add_metric([name], amounts.get("memory", 0))
        for resource, amount in amounts.items():
            if resource not in ("cpu", "memory"):
                others.add_metric([name, resource], amount * (1000 if resource in ("pods", "ephemeral-storage") else 1))
    yield from (cpu, memory, others)
