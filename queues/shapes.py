"""The shape of a Queue: which type each known field has."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cluster.validation import Count, Meta, Resources, Shape


class Guarantee(Shape):
    resource: Resources = {}


class QueueSpec(Shape):
    weight: Annotated[int, Field(ge=1, le=65535)] = 1
    capability: Resources = {}
    deserved: Resources = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool = True
    parent: str = ""
    priority: Count = 0
    affinity: dict[str, Any] = {}
    type: str = ""
    extendClusters: list[dict[str, Any]] = []
    dequeueStrategy: Literal["traverse", "fifo", ""] = ""


class QueueShape(Shape):
    metadata: Meta = Meta()
    spec: QueueSpec = QueueSpec()
