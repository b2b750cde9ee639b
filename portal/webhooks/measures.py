"""What the webhook process measures of itself."""

from __future__ import annotations

from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from portal.metrics import registry
from portal.webhooks.server import Certificates

_REVIEWS = Counter("basalt_admission_reviews", "Reviews by webhook and outcome", ["webhook", "outcome"], registry=registry)
_SECONDS = Histogram(
    "basalt_admission_review_seconds",
    "From a review's last byte to its answer",
    ["webhook"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
    registry=registry,
)
_ENDS = Gauge("basalt_webhook_certificate_ends_seconds", "When the certificate in force ends (Unix time)", registry=registry)


def heard(path: str, answer: dict[str, Any] | None, seconds: float) -> None:
    """One review; without an answer it failed."""
    webhook = path.lstrip("/")
    outcome = "failed" if answer is None else "allowed" if answer["response"]["allowed"] else "refused"
    _REVIEWS.labels(webhook, outcome).inc()
    _SECONDS.labels(webhook).observe(seconds)


def watch(certificates: Certificates) -> None:
    """Show the end of the certificate in force; 0 while there is none."""
    _ENDS.set_function(lambda: certificates.ends.timestamp() if certificates.ends else 0.0)
