"""Events (core/v1): what happened to an object, told to people."""

from __future__ import annotations

from typing import Literal

from cluster import objects
from cluster.kinds import EVENT
from cluster.port import Obj
from cluster.said import packed

Level = Literal["Normal", "Warning"]
LONGEST_MESSAGE = 1024
SAID = "basalt.dev/said"
"""Annotation of our events: the template and the values of the message, from which pages say it in their reader's language."""


def saying(message: str) -> dict[str, str | None]:
    """The annotation beside a message; null, which takes away an earlier one, where the message has no template."""
    return {SAID: packed(message) or None}


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
    notes = {key: value for key, value in saying(message).items() if value}
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {
            **named,
            "namespace": objects.namespace(target) or "default",
            **({"annotations": notes} if notes else {}),
        },
        "involvedObject": {
            "apiVersion": target["apiVersion"],
            "kind": target["kind"],
            "namespace": objects.namespace(target),
            "name": objects.name(target),
            "uid": objects.uid(target),
        },
        "type": level,
        "reason": reason,
        "message": str(message)[:LONGEST_MESSAGE],
        "count": 1,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "source": {"component": component, **({"host": host} if host else {})},
        "reportingComponent": component,
    }
