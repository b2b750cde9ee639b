"""Queues and jobs by their amounts, for tables of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.port import Obj
from tests.scheduler.world import World


def world(*parts: Any, conf: str) -> World:
    """Cycles over objects, however deep in lists."""
    return World(*_flat(parts), conf=conf)


def _flat(parts: Any) -> Iterator[Obj]:
    for part in parts:
        yield from [part] if isinstance(part, dict) else _flat(part)


def amounts(cpu: object = None, gi: object = None, gpu: object = None) -> dict[str, str]:
    named = {"cpu": cpu, "memory": None if gi is None else f"{gi}Gi", "nvidia.com/gpu": gpu}
    return {name: str(value) for name, value in named.items() if value is not None}


def running(objs: list[Obj], on: str) -> list[Obj]:
    """The same gang, its pods running on a node."""
    for obj in objs:
        obj["status"] = {"phase": "Running"}
        if obj["kind"] == "Pod":
            obj["spec"]["nodeName"] = on
    return objs
