"""What a web process does: requests by view, live channels, and how the cluster answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric

from portal.live.hub import Hub
from portal.metrics.base import Collected, buckets, gauges, registry
from portal.reach import reach

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_VIEW = "none"
"""Files, and addresses that are no page: what strangers make up must not make series."""

_REQUESTS = Counter("basalt_http_requests", "Requests by view, method and status", ["view", "method", "code"], registry=registry)
_SECONDS = Histogram(
    "basalt_http_request_seconds",
    "From a request to the head of its answer",
    ["view"],
    buckets=buckets(0.005, 30, 12),
    registry=registry,
)


def measure(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, outside of all others but the probes: each request counts, whoever answers it."""

    def respond(request: HttpRequest) -> HttpResponse:
        begin = perf_counter()
        response = get_response(request)
        found = request.resolver_match
        view = (found.view_name if found is not None else "") or NO_VIEW
        _REQUESTS.labels(view, request.method if request.method in METHODS else "other", str(response.status_code)).inc()
        _SECONDS.labels(view).observe(perf_counter() - begin)
        return response

    return respond


def watch(channels: Hub, into: CollectorRegistry = registry) -> None:
    """Show from now on what this process has open, and whether the cluster answers it."""

    def families() -> Iterator[Metric]:
        yield gauges("basalt_live_sockets", "Pages that listen to the live channel", (), {(): float(channels.sockets)})
        yield gauges("basalt_live_topics", "Topics that pages listen to", (), {(): float(channels.topics)})
        if reach.looked:
            answers = float(reach.away_since is None)
            yield gauges("basalt_cluster_answers", "1 while the API server answers this process", (), {(): answers})

    into.register(Collected(families))
