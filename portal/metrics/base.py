"""The registry of this process, and what families have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

disable_created_metrics()
registry = CollectorRegistry()
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)

MOST_OBJECTS = 1000
"""Series a family that has one for each job, card or flow: of more objects, the newest are told."""

_API_REQUESTS = Counter(
    "basalt_api_requests",
    "Requests to the API server, by method and status (0: no answer)",
    ["method", "code"],
    registry=registry,
)
_LEADS = Gauge("basalt_leads", "1 while this process holds its lease", registry=None)


def heard(method: str, status: int) -> None:
    """Count one request to the API server."""
    _API_REQUESTS.labels(method, str(status)).inc()


def watch_lead(leads: Callable[[], Any]) -> None:
    """Show whether this process leads, as `leads()` says. Who has no lease says nothing of one: a zero would be an alarm."""
    _LEADS.set_function(lambda: float(leads()))
    with contextlib.suppress(ValueError):  # it is shown already
        registry.register(_LEADS)


def text() -> bytes:
    """Everything, as Prometheus reads it."""
    return bytes(generate_latest(registry))


def buckets(least: float, most: float, count: int) -> tuple[float, ...]:
    """`count` bounds from `least` to `most`, each the same factor above the last: as Volcano's histograms have them."""
    return tuple(least * (most / least) ** (step / (count - 1)) for step in range(count))


class Collected(Collector):
    """Families that are made when somebody asks, so that what is gone from where they are read is gone from them."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return list(self._families())

    def describe(self) -> Iterable[Metric]:
        return ()


def gauges(name: str, what: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
    """A family of gauges by the values of its labels."""
    family = GaugeMetricFamily(name, what, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family


def amounts(name: str, what: str, queues: Mapping[str, Mapping[str, int]]) -> Iterator[Metric]:
    """Volcano's three families of an amount of queues: milli-CPUs, bytes of memory, thousandths of everything else."""
    yield gauges(f"{name}_milli_cpu", f"CPUs {what}", ("queue_name",), {(q,): units.get("cpu", 0) for q, units in queues.items()})
    memory = {(queue,): units.get("memory", 0) for queue, units in queues.items()}
    yield gauges(f"{name}_memory_bytes", f"Memory {what}", ("queue_name",), memory)
    others = {
        (queue, resource): amount * (1000 if resource in ("pods", "ephemeral-storage") else 1)
        for queue, units in queues.items()
        for resource, amount in units.items()
        if resource not in ("cpu", "memory")
    }
    yield gauges(f"{name}_scalar_resources", f"Other resources {what}", ("queue_name", "resource"), others)
