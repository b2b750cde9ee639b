"""Events (core/v1): what happened to an object, told to people."""

from __future__ import annotations

from typing import Literal

from cluster import objects
from cluster.kinds import EVENT
from cluster.port import Obj

Level = Literal["Normal", "Warning"]
LONGEST_MESSAGE = 1024


def event_about(
    target: Obj,
    level: Level,
    reason: str,
    message: str,
    *,
    stamp: str,
    component: str,
    name: str = "",
    host: str = "",
) -> Obj:
    """An Event about an object, first and last seen at `stamp`; without a name the cluster gives it one.

    Events about cluster-wide objects are kept in the namespace `default`.
    """
    named = {"name": name} if name else {"generateName": f"{objects.name(target)}."}
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {**named, "namespace": objects.namespace(target) or "default"},
        "involvedObject": {
            "apiVersion": target["apiVersion"],
            "kind": target["kind"],
            "namespace": objects.namespace(target),
            "name": objects.name(target),
            "uid": objects.uid(target),
        },
        "type": level,
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "count": 1,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "source": {"component": component, **({"host": host} if host else {})},
        "reportingComponent": component,
    }
