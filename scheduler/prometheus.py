"""What nodes use, asked from a Prometheus server. The caller hands in how a URL is fetched; nothing here opens a connection."""

from __future__ import annotations

import logging
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from math import inf
from typing import Any

import orjson

logger = logging.getLogger(__name__)

Fetch = Callable[[str, float], bytes]
"""(URL, seconds to wait at most) → body. Raises OSError."""
Usage = dict[str, tuple[float, float, float]]
"""Node → (cpu, memory) in percent, and when that was measured."""

PATIENCE = 5.0
"""Seconds for which one answer is waited for."""
_LARGEST = 64 << 20
_CPU = 'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)[10m:30s])'
_MEMORY = "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[10m:30s])"


def read(address: str, fetch: Fetch, now: float) -> Usage:
    """The mean use of the last ten minutes, of every instance that tells both; an instance is a node's name, a port apart.

    Raises OSError when the server cannot be asked and ValueError when it does not answer as Prometheus does.
    """
    cpu, memory = (_ask(address, fetch, query) for query in (_CPU, _MEMORY))
    return {name: (cpu[name], memory[name], now) for name in cpu if name in memory}


def _ask(address: str, fetch: Fetch, query: str) -> dict[str, float]:
    url = f"{address.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        answer: Any = orjson.loads(fetch(url, PATIENCE))
        rows = answer["data"]["result"]
        found = {_node(row["metric"]): float(row["value"][1]) for row in rows}
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{address} does not answer as Prometheus does ({type(error).__name__}: {error})") from None
    return {name: value for name, value in found.items() if 0 <= value <= 1e6}


def _node(metric: Mapping[str, str]) -> str:
    name, _, port = metric["instance"].rpartition(":")
    return name if name and port.isdecimal() else metric["instance"]


def fetch_url(url: str, seconds: float) -> bytes:
    """Fetch over HTTP. Raises OSError, also for an answer that is no success or too large."""
    with urllib.request.urlopen(url, timeout=seconds) as answer:  # noqa: S310 - the configuration admits http and https only
        body: bytes = answer.read(_LARGEST + 1)
    if len(body) > _LARGEST:
        raise OSError(f"the answer of {url[:100]} is larger than {_LARGEST} bytes")
    return body


class Meter:
    """Asks now and then, beside the cycles. `usage` is the last good answer; how old it may be is for its readers to say."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._asked = -inf
        self._pending: Future[Usage] | None = None
        self._trouble = ""
        self.usage: Usage = {}

    def tick(self, address: str, interval: float, now: float, pool: Executor | None) -> bool:
        """Take in an answer that came, ask again when it is time (without a pool: and wait); whether there is news."""
        news = False
        if self._pending is not None and self._pending.done():
            news, self._pending = self._take(self._pending.result), None
        if address and self._pending is None and now >= self._asked + interval:
            self._asked = now
            if pool is None:
                return self._take(lambda: read(address, self._fetch, now))
            self._pending = pool.submit(read, address, self._fetch, now)
        return news

    def _take(self, answer: Callable[[], Usage]) -> bool:
        try:
            self.usage, trouble = answer(), ""
        except (OSError, ValueError) as error:
            trouble = str(error)
        if trouble and trouble != self._trouble:
            logger.warning("what nodes use is not known: %s", trouble)
        self._trouble = trouble
        return not trouble
