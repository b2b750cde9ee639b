"""What nodes use, as a Prometheus server tells it."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

import orjson

from scheduler.measuring import Fetch, Source, Usage

_CPU = 'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)[10m:30s])'
_MEMORY = "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[10m:30s])"


def read(source: Source, fetch: Fetch, now: float) -> Usage:
    """Every instance that tells both; an instance is a node's name, a port apart. Raises as `meter.read`."""
    cpu, memory = (_ask(source, fetch, query) for query in (_CPU, _MEMORY))
    return {name: (cpu[name], memory[name], now) for name in cpu if name in memory}


def _ask(source: Source, fetch: Fetch, query: str) -> dict[str, float]:
    body = fetch(source.request(f"api/v1/query?{urllib.parse.urlencode({'query': query})}"))
    try:
        answer: Any = orjson.loads(body)
        rows = answer["data"]["result"]
        found = {_node(row["metric"]): float(row["value"][1]) for row in rows}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{source.address} does not answer as Prometheus does ({type(error).__name__}: {error})") from None
    return {name: value for name, value in found.items() if 0 <= value <= 1e6}


def _node(metric: Mapping[str, str]) -> str:
    name, _, port = metric["instance"].rpartition(":")
    return name if name and port.isdecimal() else metric["instance"]
