"""Admission of what claims are met with: volumes and their classes, devices and theirs.

The shapes are as far as Basalt reads these kinds; everything else in them passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from cluster.admission import PlainRules, Request, Rules
from cluster.device_selectors import Version, compile_selector
from cluster.errors import FieldError, NotFound
from cluster.kinds import (
    CLAIM,
    CSI_CAPACITY,
    CSI_NODE,
    DEVICE_CLASS,
    NAMESPACE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    STORAGE_CLASS,
    VOLUME,
    Kind,
)
from cluster.pointers import pointer
from cluster.port import Obj
from cluster.quantities import parse_quantity
from cluster.validation import Count, Meta, Positive, Resources, Shape, check_shape

ADMIN = "resource.kubernetes.io/admin-access"
"""The label (`"true"`) of namespaces whose claims may look into devices that others hold."""

Mode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
Name = Annotated[str, Field(min_length=1, max_length=253)]
_VOLUME_MODE = Literal["Filesystem", "Block"]


class _Requests(Shape):
    requests: Resources


class _ClaimSpec(Shape):
    accessModes: Annotated[list[Mode], Field(min_length=1)]
    storageClassName: str | None = None
    volumeName: str = ""
    volumeMode: _VOLUME_MODE = "Filesystem"
    resources: _Requests
    selector: dict[str, Any] | None = None


class _Claim(Shape):
    metadata: Meta
    spec: _ClaimSpec


class _ClaimRef(Shape):
    namespace: Name
    name: Name
    uid: str = ""


class _NodeSelector(Shape):
    nodeSelectorTerms: Annotated[list[dict[str, Any]], Field(min_length=1)]


class _VolumeAffinity(Shape):
    required: _NodeSelector | None = None


class _VolumeSpec(Shape):
    capacity: Resources
    accessModes: Annotated[list[Mode], Field(min_length=1)]
    storageClassName: str = ""
    volumeMode: _VOLUME_MODE = "Filesystem"
    persistentVolumeReclaimPolicy: Literal["Retain", "Delete", "Recycle"] = "Retain"
    claimRef: _ClaimRef | None = None
    nodeAffinity: _VolumeAffinity | None = None


class _Volume(Shape):
    metadata: Meta
    spec: _VolumeSpec


class _TopologyKey(Shape):
    key: Name
    values: list[str]


class _Topology(Shape):
    matchLabelExpressions: list[_TopologyKey] | None = None


class _StorageClass(Shape):
    metadata: Meta
    provisioner: Name
    reclaimPolicy: Literal["Retain", "Delete"] = "Delete"
    volumeBindingMode: Literal["Immediate", "WaitForFirstConsumer"] = "Immediate"
    allowedTopologies: list[_Topology] | None = None


class _Allocatable(Shape):
    count: Count | None = None


class _Driver(Shape):
    name: Name
    allocatable: _Allocatable | None = None


class _Drivers(Shape):
    drivers: list[_Driver] | None = None


class _CsiNode(Shape):
    metadata: Meta
    spec: _Drivers


class _Capacity(Shape):
    metadata: Meta
    storageClassName: Name
    capacity: str | int | None = None
    maximumVolumeSize: str | int | None = None
    nodeTopology: dict[str, Any] | None = None


class _Cel(Shape):
    expression: Name


class _Selector(Shape):
    cel: _Cel


class _SubRequest(Shape):
    deviceClassName: Name
    selectors: list[_Selector] | None = None
    allocationMode: Literal["ExactCount", "All"] = "ExactCount"
    count: Positive | None = None
    tolerations: list[dict[str, Any]] | None = None


class _Exactly(_SubRequest):
    adminAccess: bool = False


class _Alternative(_SubRequest):
    name: Name


class _Request(Shape):
    name: Name
    exactly: _Exactly | None = None
    firstAvailable: Annotated[list[_Alternative], Field(max_length=8)] | None = None


class _Constraint(Shape):
    requests: list[str] | None = None
    matchAttribute: str | None = None
    distinctAttribute: str | None = None


class _Devices(Shape):
    requests: Annotated[list[_Request], Field(max_length=32)] | None = None
    constraints: Annotated[list[_Constraint], Field(max_length=32)] | None = None


class _ResourceClaimSpec(Shape):
    devices: _Devices = _Devices()


class _ResourceClaim(Shape):
    metadata: Meta
    spec: _ResourceClaimSpec


class _Inner(Shape):
    spec: _ResourceClaimSpec


class _Template(Shape):
    metadata: Meta
    spec: _Inner


class _ClassSpec(Shape):
    selectors: list[_Selector] | None = None


class _DeviceClass(Shape):
    metadata: Meta
    spec: _ClassSpec = _ClassSpec()


class _Amount(Shape):
    value: str | int


class _Device(Shape):
    name: Name
    attributes: dict[str, dict[str, Any]] | None = None
    capacity: dict[str, _Amount] | None = None
    taints: list[dict[str, Any]] | None = None


class _Pool(Shape):
    name: Name
    generation: Annotated[int, Field(ge=0)] = 0
    resourceSliceCount: Positive = 1


class _SliceSpec(Shape):
    driver: Name
    pool: _Pool
    nodeName: str | None = None
    nodeSelector: _NodeSelector | None = None
    allNodes: bool | None = None
    perDeviceNodeSelection: bool | None = None
    devices: Annotated[list[_Device], Field(max_length=128)] | None = None


class _Slice(Shape):
    metadata: Meta
    spec: _SliceSpec


class ShapeRules(PlainRules):
    """The shape of a kind, and what more `beyond` finds."""

    def __init__(self, shape: type[Shape]) -> None:
        self._shape = shape

    def check(self, request: Request) -> list[FieldError]:
        """The shape, and once it is right the rest."""
        faults = check_shape(self._shape, request.obj)
        return faults or [FieldError(where, why, "invalid") for where, why in self.beyond(request)]

    def beyond(self, request: Request) -> Iterator[tuple[str, str]]:
        """Place and reason of every fault beyond the shape."""
        return iter(())


class SizedRules(ShapeRules):
    """Claims and volumes have a size."""

    def beyond(self, request: Request) -> Iterator[tuple[str, str]]:
        """A size."""
        spec = request.obj["spec"]
        where = ("resources", "requests") if request.kind == CLAIM else ("capacity",)
        found: Any = spec
        for step in where:
            found = found[step]
        if "storage" not in found:
            yield pointer("spec", *where), "must say how much storage"
        if request.kind == CLAIM and "ReadWriteOncePod" in spec["accessModes"] and len(spec["accessModes"]) > 1:
            yield "/spec/accessModes", "ReadWriteOncePod stands alone"


class RequestRules(ShapeRules):
    """Claims of devices: each request of one form, selectors that are expressions, looking into others' only where allowed."""

    def beyond(self, request: Request) -> Iterator[tuple[str, str]]:
        """Requests and constraints."""
        base = ("spec", "spec") if request.kind == RESOURCE_CLAIM_TEMPLATE else ("spec",)
        spec = request.obj["spec"]["spec"] if len(base) > 1 else request.obj["spec"]
        devices, names = spec.get("devices") or {}, set[str]()
        for i, each in enumerate(devices.get("requests") or ()):
            where = (*base, "devices", "requests", i)
            if each["name"] in names:
                yield pointer(*where, "name"), f"{each['name']!r} is named twice"
            names.add(each["name"])
            if bool(each.get("exactly")) == bool(each.get("firstAvailable")):
                yield pointer(*where), "must have either exactly or firstAvailable"
            forms = [("exactly", each["exactly"])] if each.get("exactly") else []
            forms += [(f"firstAvailable/{n}", form) for n, form in enumerate(each.get("firstAvailable") or ())]
            for name, form in forms:
                yield from _expressions(f"{pointer(*where)}/{name}", form)
                if form.get("adminAccess") and not _is_admins(request):
                    yield f"{pointer(*where)}/{name}/adminAccess", f'takes a namespace with the label {ADMIN}: "true"'
        for i, each in enumerate(devices.get("constraints") or ()):
            where = (*base, "devices", "constraints", i)
            if bool(each.get("matchAttribute")) == bool(each.get("distinctAttribute")):
                yield pointer(*where), "must have either matchAttribute or distinctAttribute"
            for name in each.get("requests") or ():
                if str(name).partition("/")[0] not in names:
                    yield pointer(*where, "requests"), f"there is no request {name!r}"


class DeviceClassRules(ShapeRules):
    """Classes of devices: selectors that are expressions."""

    def beyond(self, request: Request) -> Iterator[tuple[str, str]]:
        """Selectors."""
        yield from _expressions("/spec", request.obj.get("spec") or {})


class SliceRules(ShapeRules):
    """Devices that a driver publishes: from one place each, with values that can be read."""

    def beyond(self, request: Request) -> Iterator[tuple[str, str]]:
        """Where they are reached from, and what they are."""
        spec = request.obj["spec"]
        places = [name for name in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(name)]
        if len(places) != 1:
            yield "/spec", "must have exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
        seen = set[str]()
        for i, device in enumerate(spec.get("devices") or ()):
            where = ("spec", "devices", i)
            if device["name"] in seen:
                yield pointer(*where, "name"), f"{device['name']!r} is named twice"
            seen.add(device["name"])
            for name, value in (device.get("attributes") or {}).items():
                if why := _bad_attribute(value):
                    yield pointer(*where, "attributes", name), why
            for name, amount in (device.get("capacity") or {}).items():
                try:
                    parse_quantity(amount["value"])
                except ValueError as error:
                    yield pointer(*where, "capacity", name, "value"), str(error)


def _expressions(where: str, holder: Obj) -> Iterator[tuple[str, str]]:
    for i, each in enumerate(holder.get("selectors") or ()):
        try:
            compile_selector(each["cel"]["expression"])
        except ValueError as error:
            yield f"{where}/selectors/{i}/cel/expression", str(error)


def _bad_attribute(value: Obj) -> str:
    kinds = {"string": str, "int": int, "bool": bool, "version": str}
    if len(value) != 1 or next(iter(value)) not in kinds:
        return "must be one of string, int, bool and version"
    ((name, found),) = value.items()
    if not isinstance(found, kinds[name]) or (name == "int" and isinstance(found, bool)):
        return f"{found!r} is no {name}"
    if name == "version":
        try:
            Version(str(found))
        except ValueError as error:
            return str(error)
    return ""


def _is_admins(request: Request) -> bool:
    try:
        space = request.reader.get(NAMESPACE, str(request.obj["metadata"].get("namespace") or "default"))
    except NotFound:
        return False
    return (space["metadata"].get("labels") or {}).get(ADMIN) == "true"


RULES: dict[Kind, Rules] = {
    CLAIM: SizedRules(_Claim),
    VOLUME: SizedRules(_Volume),
    STORAGE_CLASS: ShapeRules(_StorageClass),
    CSI_NODE: ShapeRules(_CsiNode),
    CSI_CAPACITY: ShapeRules(_Capacity),
    RESOURCE_CLAIM: RequestRules(_ResourceClaim),
    RESOURCE_CLAIM_TEMPLATE: RequestRules(_Template),
    DEVICE_CLASS: DeviceClassRules(_DeviceClass),
    RESOURCE_SLICE: SliceRules(_Slice),
}
