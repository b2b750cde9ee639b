"""Monitoring servers that tell what nodes use: where they are, and how they are asked."""

from __future__ import annotations

import base64
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 5.0
"""Seconds for which one answer is waited for."""

PROMETHEUS, ELASTICSEARCH = "prometheus", "elasticsearch"
_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A monitoring server, as the configuration's `metrics` names it. `index` and `host_field` are Elasticsearch's."""

    address: str
    kind: str = PROMETHEUS
    verify: bool = True
    user: str = ""
    password: str = field(default="", repr=False)
    index: str = "metricbeat-*"
    host_field: str = "host.hostname"

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Source | None:
        """From the section `metrics`; None without an address."""
        if not metrics.get("address"):
            return None
        return cls(
            str(metrics["address"]).rstrip("/"),
            str(metrics.get("type") or PROMETHEUS),
            str(metrics.get("tls.insecureSkipVerify", "")).lower() != "true",
            str(metrics.get("elasticsearch.username") or ""),
            str(metrics.get("elasticsearch.password") or ""),
            str(metrics.get("elasticsearch.index") or "metricbeat-*"),
            str(metrics.get("elasticsearch.hostnameFieldName") or "host.hostname"),
        )

    def request(self, path: str, body: bytes | None = None) -> Request:
        """A request to the server: a GET, or a POST of JSON."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self.user:
            secret = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            headers["Authorization"] = f"Basic {secret}"
        return Request(f"{self.address}/{path}", body, headers, self.verify)


@dataclass(frozen=True, slots=True)
class Request:
    """What is fetched. `verify`: whether the certificate of the other side must be known."""

    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify: bool = True
    seconds: float = PATIENCE


Fetch = Callable[[Request], bytes]
"""Request → body of the answer. Raises OSError."""
Usage = dict[str, tuple[float, float, float]]
"""Node → (cpu, memory) in percent, and when that was measured."""


def fetch_url(request: Request) -> bytes:
    """Fetch over HTTP. Raises OSError, also for an answer that is no success or too large."""
    context = None
    if not request.verify and request.url.startswith("https://"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    asked = urllib.request.Request(request.url, request.body, dict(request.headers))  # noqa: S310 - http and https only
    with urllib.request.urlopen(asked, timeout=request.seconds, context=context) as answer:  # noqa: S310 - as above
        body: bytes = answer.read(_LARGEST + 1)
    if len(body) > _LARGEST:
        raise OSError(f"the answer of {request.url[:100]} is larger than {_LARGEST} bytes")
    return body
