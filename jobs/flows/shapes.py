"""The shapes of a JobFlow and a JobTemplate: which type each known field has."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cluster.validation import Meta, Shape

Port = Annotated[int, Field(ge=1, le=65535)]
Role = Annotated[str, Field(max_length=253)]


class Header(Shape):
    name: str = ""
    value: str = ""


class HttpGet(Shape):
    taskName: Role = ""
    path: str = "/"
    port: Port
    httpHeader: Header | None = None


class TcpSocket(Shape):
    taskName: Role = ""
    port: Port


class TaskStatus(Shape):
    taskName: Role = ""
    phase: Literal["Pending", "Running", "Succeeded", "Failed"]


class Probe(Shape):
    httpGetList: list[HttpGet] = []
    tcpSocketList: list[TcpSocket] = []
    taskStatusList: list[TaskStatus] = []


class DependsOn(Shape):
    targets: list[str] = []
    probe: Probe | None = None


class Patch(Shape):
    """`spec` as Volcano's guide writes it, `jobSpec` as its API has it."""

    spec: dict[str, Any] | None = None
    jobSpec: dict[str, Any] | None = None


class Flow(Shape):
    name: Annotated[str, Field(min_length=1)]
    dependsOn: DependsOn | None = None
    patch: Patch | None = None


class FlowSpec(Shape):
    flows: list[Flow] = []
    jobRetainPolicy: Literal["retain", "delete"] = "retain"


class FlowShape(Shape):
    metadata: Meta = Meta()
    spec: FlowSpec


class TemplateShape(Shape):
    metadata: Meta = Meta()
    spec: dict[str, Any]


class HistoryStep(Shape):
    state: str = ""
    startTimestamp: str = ""
    endTimestamp: str = ""


class EntryShape(Shape):
    """An entry of a flow's `status.jobStatusList`."""

    name: Annotated[str, Field(min_length=1)]
    state: str = ""
    startTimestamp: str = ""
    runningHistories: list[HistoryStep] = []
