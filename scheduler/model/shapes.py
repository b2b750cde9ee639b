"""Types of the fields that the scheduler reads, as the Kubernetes API has them.

Whoever hands objects in may not have asked an API server. What is read long after an object was taken in must not be of
another type than it should be: it would stop every cycle instead of being set aside alone. A shape is `str`, `int` or
`bool`, a list of one shape, a dict of shapes by field, or a `Map`. Fields that it does not name may be anything, and what
is null is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster import objects
from cluster.kinds import (
    CLAIM,
    CSI_CAPACITY,
    CSI_DRIVER,
    CSI_NODE,
    DISRUPTION_BUDGET,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    VOLUME,
    Kind,
)

__all__ = ["POD_SPEC", "check", "check_part", "reason"]

Shape = Any


@dataclass(frozen=True, slots=True)
class Map:
    """A mapping of texts to values of one shape; None: to anything."""

    of: Shape = None


class Time:
    """A text that is an instant."""


TEXTS, ANYTHING = Map(str), Map()
_EXPRESSION = {"key": str, "operator": str, "values": [str]}
_SELECTOR = {"matchLabels": TEXTS, "matchExpressions": [_EXPRESSION]}
_TERM = {"matchExpressions": [_EXPRESSION], "matchFields": [_EXPRESSION]}
_NODE_SELECTOR = {"nodeSelectorTerms": [_TERM]}
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_POD_TERM = {
    "topologyKey": str, "labelSelector": _SELECTOR, "namespaceSelector": _SELECTOR,
    "namespaces": [str], "matchLabelKeys": [str], "mismatchLabelKeys": [str],
}  # fmt: skip
_POD_TERMS = {_REQUIRED: [_POD_TERM], _PREFERRED: [{"weight": int, "podAffinityTerm": _POD_TERM}]}
_AFFINITY = {
    "nodeAffinity": {_REQUIRED: _NODE_SELECTOR, _PREFERRED: [{"weight": int, "preference": _TERM}]},
    "podAffinity": _POD_TERMS,
    "podAntiAffinity": _POD_TERMS,
}
_RESOURCES = {"requests": ANYTHING, "limits": ANYTHING, "claims": [{"name": str, "request": str}]}
_CONTAINER = {
    "name": str, "image": str, "restartPolicy": str, "resources": _RESOURCES,
    "ports": [{"hostPort": int, "containerPort": int, "protocol": str, "hostIP": str}],
}  # fmt: skip
_SPREAD = {
    "maxSkew": int, "minDomains": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": _SELECTOR,
    "matchLabelKeys": [str], "nodeAffinityPolicy": str, "nodeTaintsPolicy": str,
}  # fmt: skip
_CLAIM_SPEC = {
    "storageClassName": str, "volumeName": str, "volumeMode": str, "accessModes": [str],
    "selector": _SELECTOR, "resources": _RESOURCES,
}  # fmt: skip
_OWN = {
    "nodeName": str, "schedulerName": str, "priorityClassName": str, "preemptionPolicy": str, "schedulingGates": [{"name": str}],
    "volumes": [{
        "name": str, "persistentVolumeClaim": {"claimName": str, "readOnly": bool},
        "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": TEXTS, "annotations": TEXTS}, "spec": _CLAIM_SPEC}},
    }],
    "resourceClaims": [{"name": str, "resourceClaimName": str, "resourceClaimTemplateName": str}],
}  # fmt: skip
POD_SPEC = {
    **_OWN, "containers": [_CONTAINER], "initContainers": [_CONTAINER], "overhead": ANYTHING, "resources": _RESOURCES,
    "nodeSelector": TEXTS, "affinity": _AFFINITY, "topologySpreadConstraints": [_SPREAD], "hostNetwork": bool,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
}  # fmt: skip
"""A pod's spec whole. Pods of one class share most of it, so it is looked at once a class."""

_META = {
    "name": str, "namespace": str, "uid": str, "labels": TEXTS, "annotations": TEXTS,
    "creationTimestamp": Time, "deletionTimestamp": Time,
    "ownerReferences": [{"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool}],
}  # fmt: skip
_CONDITIONS = [{"type": str, "status": str, "reason": str, "message": str}]
_WORKLOAD = {"spec": {"selector": _SELECTOR}}
_SHAPES: dict[Kind, Shape] = {
    POD: {
        "spec": _OWN,
        "status": {
            "phase": str, "nominatedNodeName": str, "startTime": Time, "conditions": _CONDITIONS,
            "resourceClaimStatuses": [{"name": str, "resourceClaimName": str}],
        },
    },
    NODE: {
        "spec": {"unschedulable": bool, "taints": [{"key": str, "value": str, "effect": str}]},
        "status": {
            "allocatable": ANYTHING, "capacity": ANYTHING, "conditions": _CONDITIONS,
            "images": [{"names": [str], "sizeBytes": int}],
        },
    },
    QUEUE: {"spec": {"parent": str}, "status": {"state": str}},  # nodegroup itself names an affinity that it cannot read
    POD_GROUP: {"spec": {"queue": str, "priorityClassName": str}, "status": {"phase": str, "conditions": _CONDITIONS}},
    PRIORITY_CLASS: {"preemptionPolicy": str, "globalDefault": bool},
    NAMESPACE: {},
    DISRUPTION_BUDGET: {"spec": {"selector": _SELECTOR}},
    SERVICE: {"spec": {"selector": TEXTS}},
    REPLICA_SET: _WORKLOAD,
    STATEFUL_SET: _WORKLOAD,
    STORAGE_CLASS: {
        "provisioner": str, "volumeBindingMode": str,
        "allowedTopologies": [{"matchLabelExpressions": [{"key": str, "values": [str]}]}],
    },
    CSI_DRIVER: {"spec": {"storageCapacity": bool}},
    CSI_NODE: {"spec": {"drivers": [{"name": str, "nodeID": str, "allocatable": {"count": int}, "topologyKeys": [str]}]}},
    CSI_CAPACITY: {"storageClassName": str, "nodeTopology": _SELECTOR},
    CLAIM: {"spec": _CLAIM_SPEC, "status": {"phase": str, "capacity": ANYTHING}},
    VOLUME: {
        "spec": {
            "storageClassName": str, "volumeMode": str, "accessModes": [str], "capacity": ANYTHING,
            "claimRef": {"name": str, "namespace": str, "uid": str}, "csi": {"driver": str, "volumeHandle": str},
            "nodeAffinity": {"required": _NODE_SELECTOR},
        },
        "status": {"phase": str},
    },
}  # fmt: skip


def check(kind: Kind, obj: Mapping[str, Any]) -> None:
    """Raise ValueError for the first field of an object that is of another type than it should be. Of a pod's spec only
    what is its own: the rest is looked at with its class."""
    check_part(obj.get("metadata"), _META, "metadata")
    for name, shape in _SHAPES.get(kind, {}).items():
        check_part(obj.get(name), shape, name)


def reason(kind: Kind, obj: Mapping[str, Any], error: Exception) -> str:
    """Why an object makes no sense, by the error that it caused: by its place where the type of a field is at fault."""
    if not isinstance(error, ValueError):
        try:
            check_part(obj.get("spec"), POD_SPEC if kind == POD else None, "spec")
        except ValueError as fault:
            return str(fault)
        return f"malformed ({type(error).__name__}: {error})"
    return str(error)


def check_part(value: Any, shape: Shape, where: str) -> None:
    """The same for one part of an object; `where` it is."""
    if value is None or shape is None:
        return
    if isinstance(shape, dict):
        _must(isinstance(value, Mapping), where, "a mapping", value)
        for name, inner in shape.items():
            if name in value:
                check_part(value[name], inner, f"{where}.{name}")
    elif isinstance(shape, list):
        _must(isinstance(value, list | tuple), where, "a list", value)
        for place, item in enumerate(value):
            _must(item is not None, f"{where}[{place}]", "given", item)
            check_part(item, shape[0], f"{where}[{place}]")
    elif isinstance(shape, Map):
        _must(isinstance(value, Mapping), where, "a mapping", value)
        for name, item in value.items():
            _must(isinstance(name, str), where, "a mapping of texts", name)
            if shape.of is not None:
                _must(isinstance(item, shape.of), f"{where}[{name!r}]", "a text", item)
    elif shape is Time:
        _must(isinstance(value, str), where, "an instant", value)
        if value:
            objects.parse_time(value)
    elif shape is int:
        _must(isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63, where, "a whole number", value)
    else:
        _must(isinstance(value, shape), where, "a text" if shape is str else "true or false", value)


def _must(holds: bool, where: str, what: str, value: Any) -> None:
    if not holds:
        raise ValueError(f"{where} must be {what}, not {repr(value)[:60]}")
