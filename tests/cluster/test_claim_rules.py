"""What is refused of volumes, claims and devices, with the place of the fault."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.admission import Admission
from cluster.claim_rules import ADMIN, RULES
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Invalid
from cluster.kinds import NAMESPACE, by_api
from cluster.port import Obj
from tests.scheduler.claims.make import (
    claim,
    csi_node,
    device,
    device_class,
    obj,
    request,
    resource_claim,
    slice_of,
    storage_class,
    template,
    volume,
)


def cluster() -> EmbeddedCluster:
    admission = Admission()
    for kind, rules in RULES.items():
        admission.register(kind, rules)
    return EmbeddedCluster(admission=admission)


def refused(found: Obj) -> dict[str, str]:
    kind = by_api(found["apiVersion"], found["kind"])
    assert kind is not None
    meta = {key: value for key, value in found["metadata"].items() if key != "uid"}
    with pytest.raises(Invalid) as caught:
        cluster().create(kind, {**found, "metadata": meta})
    return {fault.pointer: fault.message for fault in caught.value.fields}


@pytest.mark.parametrize(
    "found",
    [
        claim("c"), volume("v", on="n", driver="d"), storage_class("s"), csi_node("n", d=3), device_class(),
        slice_of("n", [device("a", model="x", index=1, fast=True, version="1.2.3", memory="40Gi")]),
        resource_claim("r", request("a"), constraints=[{"requests": ["a"], "matchAttribute": "d/x"}]), template("t"),
        obj("storage.k8s.io/v1", "CSIStorageCapacity", "s", "default", storageClassName="s", capacity="1Gi"),
    ],
    ids=lambda found: found["kind"],
)  # fmt: skip
def test_sound_objects_are_taken(found: Obj) -> None:
    kind = by_api(found["apiVersion"], found["kind"])
    assert kind is not None
    meta = {key: value for key, value in found["metadata"].items() if key != "uid"}
    assert cluster().create(kind, {**found, "metadata": meta})


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (claim("c", size="-1Gi"), "/spec/resources/requests/storage"),
        (claim("c", resources={"requests": {}}), "/spec/resources/requests"),
        (claim("c", mode="Sometimes"), "/spec/accessModes/0"),
        (claim("c", accessModes=["ReadWriteOncePod", "ReadWriteOnce"]), "/spec/accessModes"),
        (volume("v", size="much"), "/spec/capacity/storage"),
        (volume("v", capacity={}), "/spec/capacity"),
        (storage_class("s", provisioner=""), "/provisioner"),
        ({**storage_class("s"), "volumeBindingMode": "Later"}, "/volumeBindingMode"),
        (csi_node("n", d=-1), "/spec/drivers/0/allocatable/count"),
        (device_class(expression="device.driver =="), "/spec/selectors/0/cel/expression"),
        (resource_claim("r", request("a"), request("a")), "/spec/devices/requests/1/name"),
        (resource_claim("r", {"name": "a"}), "/spec/devices/requests/0"),
        (resource_claim("r", request(count=0)), "/spec/devices/requests/0/exactly/count"),
        (resource_claim("r", request("a", 1, "gpu", "1 +")), "/spec/devices/requests/0/exactly/selectors/0/cel/expression"),
        (resource_claim("r", constraints=[{"requests": ["b"], "matchAttribute": "d/x"}]), "/spec/devices/constraints/0/requests"),
        (resource_claim("r", constraints=[{"requests": ["req"]}]), "/spec/devices/constraints/0"),
        (resource_claim("r", request(adminAccess=True)), "/spec/devices/requests/0/exactly/adminAccess"),
        (template("t", request(adminAccess=True)), "/spec/spec/devices/requests/0/exactly/adminAccess"),
        (slice_of("n", allNodes=True), "/spec"),
        (slice_of("n", [device("a"), device("a")]), "/spec/devices/1/name"),
        (slice_of("n", [device("a", memory="lots")]), "/spec/devices/0/capacity/memory/value"),
        (slice_of("n", [device("a", version="new")]), "/spec/devices/0/attributes/version"),
    ],
)  # fmt: skip
def test_faults_are_told_with_their_place(found: Any, where: str) -> None:
    assert where in refused(found)


def test_looking_into_others_devices_takes_a_namespace_for_administrators() -> None:
    store = cluster()
    store.create(NAMESPACE, {"metadata": {"name": "default", "labels": {ADMIN: "true"}}})
    found = resource_claim("r", request(adminAccess=True))
    kind = by_api(found["apiVersion"], found["kind"])
    assert kind is not None
    del found["metadata"]["uid"]
    assert store.create(kind, found)
