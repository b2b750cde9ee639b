"""What nodes use, as Metricbeat writes it into Elasticsearch: one search tells of all nodes."""

from __future__ import annotations

import urllib.parse
from typing import Any

import orjson

from scheduler.measuring import Fetch, Source, Usage

_CPU, _MEMORY = "host.cpu.usage", "system.memory.actual.used.pct"
_MOST_NODES = 65_535


def read(source: Source, fetch: Fetch, now: float) -> Usage:
    """Every host of which both are known; parts of one there, percent here. Raises as `meter.read`."""
    search = {
        "size": 0,
        "query": {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}},
        "aggs": {
            "nodes": {
                "terms": {"field": source.host_field, "size": _MOST_NODES},
                "aggs": {"cpu": {"avg": {"field": _CPU}}, "mem": {"avg": {"field": _MEMORY}}},
            }
        },
    }
    body = fetch(source.request(f"{urllib.parse.quote(source.index, safe='*,-')}/_search", orjson.dumps(search)))
    try:
        answer: Any = orjson.loads(body)
        rows = answer["aggregations"]["nodes"]["buckets"]
        told = {str(row["key"]): (row["cpu"]["value"], row["mem"]["value"]) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{source.address} does not answer as Elasticsearch does ({type(error).__name__}: {error})") from None
    return {
        name: (float(cpu) * 100, float(memory) * 100, now)
        for name, (cpu, memory) in told.items()
        if isinstance(cpu, (int, float)) and isinstance(memory, (int, float)) and 0 <= cpu <= 1e4 and 0 <= memory <= 1e4
    }
