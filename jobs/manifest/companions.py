"""The shapes of what goes with a job: PodGroup, Command, PriorityClass."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cluster.validation import Count, Meta, Positive, Resources, Shape
from jobs.manifest.shapes import NetworkTopology


class SubGroup(Shape):
    name: str = ""
    subGroupSize: Positive = 1
    minSubGroups: Count = 0
    labelSelector: dict[str, Any] = {}
    matchLabelKeys: list[str] = []
    networkTopology: NetworkTopology = NetworkTopology()


class GroupSpec(Shape):
    minMember: Annotated[int, Field(le=2**31 - 1)] = 0
    minTaskMember: dict[str, Count] = {}
    queue: str = ""
    priorityClassName: str = ""
    minResources: Resources = {}
    networkTopology: NetworkTopology = NetworkTopology()
    subGroupPolicy: list[SubGroup] = []


class GroupShape(Shape):
    metadata: Meta = Meta()
    spec: GroupSpec = GroupSpec()


class Target(Shape):
    apiVersion: str
    kind: Literal["Job", "Queue"]
    name: Annotated[str, Field(min_length=1)]
    uid: str = ""


class CommandShape(Shape):
    metadata: Meta = Meta()
    action: str
    target: Target
    reason: str = ""
    message: str = ""


class PriorityClassShape(Shape):
    metadata: Meta = Meta()
    value: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
    globalDefault: bool = False
    preemptionPolicy: Literal["Never", "PreemptLowerPriority"] = "PreemptLowerPriority"
    description: str = ""
