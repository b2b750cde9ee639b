"""What claims ask and volumes have, and how they are bound to each other as Kubernetes writes it: pure, over objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cluster import objects
from cluster.kinds import CLAIM, VOLUME
from cluster.port import Obj
from cluster.quantities import to_units
from cluster.said import said

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
DELAYED = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_SIZE = "memory"  # sizes of volumes are counted in bytes, as memory is


def reference(claim: Obj) -> Obj:
    """How a volume names the claim that it belongs to."""
    return {
        "apiVersion": CLAIM.api_version,
        "kind": CLAIM.kind,
        "namespace": objects.namespace(claim),
        "name": objects.name(claim),
        "uid": objects.uid(claim),
    }


def reserving(claim: Obj) -> Obj:
    """A merge patch of a volume that reserves it for a claim."""
    return {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}, "spec": {"claimRef": reference(claim)}}


def binding(volume: Obj) -> Obj:
    """A merge patch of a claim that is met by a volume."""
    marks = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    return {"metadata": {"annotations": marks}, "spec": {"volumeName": objects.name(volume)}}


def bound_status(volume: Obj) -> Obj:
    """The status of a claim that is met by a volume."""
    spec = volume.get("spec") or {}
    return {"phase": "Bound", "accessModes": list(spec.get("accessModes") or ()), "capacity": dict(spec.get("capacity") or {})}


def provisioned(claim: Obj, storage_class: Mapping[str, Any], labels: Mapping[str, str], topology: Sequence[str]) -> Obj:
    """The volume that a provisioner makes for a claim on a node with these labels, reachable from where `topology` says.

    `topology` are label keys: the volume can be used on nodes with the same values.
    """
    spec, provisioner = claim.get("spec") or {}, str(storage_class.get("provisioner"))
    name = f"pvc-{objects.uid(claim)}"
    terms = [{"key": key, "operator": "In", "values": [labels[key]]} for key in topology if key in labels]
    return {
        "apiVersion": VOLUME.api_version,
        "kind": VOLUME.kind,
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {
            "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")},
            "accessModes": list(spec.get("accessModes") or ()),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "storageClassName": objects.name(storage_class),
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "claimRef": reference(claim),
            "csi": {"driver": provisioner, "volumeHandle": name},
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}} if terms else {}),
        },
        "status": {"phase": "Bound"},
    }


def is_bound(claim: Obj) -> bool:
    """Whether a claim has its volume, and both sides say so."""
    if not (claim.get("spec") or {}).get("volumeName"):
        return False
    return BIND_COMPLETED in objects.annotations(claim) or (claim.get("status") or {}).get("phase") == "Bound"


def claim_class(claim: Obj) -> str:
    """The name of a claim's StorageClass; empty for none."""
    return objects.annotations(claim).get(_OLD_CLASS) or (claim.get("spec") or {}).get("storageClassName") or ""


def volume_class(volume: Obj) -> str:
    """The name of a volume's StorageClass; empty for none."""
    return objects.annotations(volume).get(_OLD_CLASS) or (volume.get("spec") or {}).get("storageClassName") or ""


def size_of(claim: Obj) -> int:
    """How many bytes a claim asks for."""
    return _bytes(((claim.get("spec") or {}).get("resources") or {}).get("requests"))


def capacity_of(volume: Obj) -> int:
    """How many bytes a volume has."""
    return _bytes((volume.get("spec") or {}).get("capacity"))


def _bytes(amounts: Any) -> int:
    if amounts is not None and not isinstance(amounts, Mapping):
        raise ValueError(said("amounts of storage must be a mapping"))
    text = (amounts or {}).get("storage")
    return to_units(_SIZE, text) if text is not None else 0


def modes(spec: Mapping[str, Any]) -> frozenset[str]:
    """The access modes of a claim or volume."""
    return frozenset(spec.get("accessModes") or ())


def would_do(volume: Obj, claim: Obj, key: str) -> bool:
    """Whether a volume fits a claim, the node apart; one that is reserved for this very claim, whatever its phase."""
    spec, asked = volume.get("spec") or {}, claim.get("spec") or {}
    if objects.is_deleting(volume) or (spec.get("volumeMode") or "Filesystem") != (asked.get("volumeMode") or "Filesystem"):
        return False
    if capacity_of(volume) < size_of(claim) or not modes(asked) <= modes(spec):
        return False
    owner = spec.get("claimRef")
    if owner:
        return f"{owner.get('namespace')}/{owner.get('name')}" == key and owner.get("uid") in (None, "", objects.uid(claim))
    if ((volume.get("status") or {}).get("phase") or "Available") != "Available":
        return False
    return asked.get("selector") is None or objects.matches_selector(asked["selector"], objects.labels(volume))
