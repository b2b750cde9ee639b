"""Claims, volumes, classes and devices in a few words."""

from __future__ import annotations

from typing import Any

from cluster.port import Obj

ZONE = "topology.kubernetes.io/zone"


def obj(api_version: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Obj:
    meta = {"name": name, "uid": f"{kind.lower()}-{name}", **({"namespace": namespace} if namespace else {})}
    for key in ("labels", "annotations", "ownerReferences", "deletionTimestamp"):
        if key in parts:
            meta[key] = parts.pop(key)
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def storage_class(name: str, provisioner: str = "disk.example.com", *, delayed: bool = True, **more: Any) -> Obj:
    mode = "WaitForFirstConsumer" if delayed else "Immediate"
    return obj("storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, volumeBindingMode=mode, **more)


def claim(name: str, size: str = "1Gi", of: str = "fast", mode: str = "ReadWriteOnce", **more: Any) -> Obj:
    meta = {key: more.pop(key) for key in ("annotations", "ownerReferences", "deletionTimestamp") if key in more}
    status = more.pop("status", {"phase": "Pending"})
    spec = {"storageClassName": of, "accessModes": [mode], "resources": {"requests": {"storage": size}}, **more}
    return obj("v1", "PersistentVolumeClaim", name, "default", spec=spec, status=status, **meta)


def bound(name: str, volume: str, **more: Any) -> Obj:
    return claim(name, volumeName=volume, status={"phase": "Bound"}, **more)


def volume(name: str, size: str = "1Gi", of: str = "fast", *, on: str = "", driver: str = "", **more: Any) -> Obj:
    meta = {key: more.pop(key) for key in ("labels", "annotations") if key in more}
    spec = {"storageClassName": of, "accessModes": more.pop("modes", ["ReadWriteOnce"]), "capacity": {"storage": size}, **more}
    if on:
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": on.split(",")}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if driver:
        spec["csi"] = {"driver": driver, "volumeHandle": name}
    return obj("v1", "PersistentVolume", name, spec=spec, status={"phase": "Available"}, **meta)


def mounting(*claims: str) -> dict[str, Any]:
    """The part of a pod's spec that mounts claims."""
    return {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]}


def csi_node(name: str, **limits: int) -> Obj:
    drivers = [{"name": driver.replace("_", "."), "nodeID": name, "allocatable": {"count": n}} for driver, n in limits.items()]
    return obj("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})


# -- devices ---------------------------------------------------------------------------------------------------------------

DRIVER = "gpu.example.com"


def device_class(name: str = "gpu", expression: str = f'device.driver == "{DRIVER}"', **more: Any) -> Obj:
    spec = {"selectors": [{"cel": {"expression": expression}}] if expression else [], **more}
    return obj("resource.k8s.io/v1", "DeviceClass", name, spec=spec)


def device(name: str, **more: Any) -> Obj:
    """A device; words are attributes by their type, `memory=` is a capacity, `taints=` its taints."""
    found: Obj = {"name": name}
    if "taints" in more:
        found["taints"] = more.pop("taints")
    if "memory" in more:
        found["capacity"] = {"memory": {"value": more.pop("memory")}}
    found["attributes"] = {
        key: {"bool" if isinstance(v, bool) else "int" if isinstance(v, int) else "version" if key == "version" else "string": v}
        for key, v in more.items()
    }
    return found


def slice_of(node: str, devices: int | list[Obj] = 2, *, pool: str = "", **more: Any) -> Obj:
    listed = [device(f"gpu-{i}") for i in range(devices)] if isinstance(devices, int) else devices
    where = more.pop("where", {"nodeName": node})
    generation = more.pop("generation", 1)
    return obj(
        "resource.k8s.io/v1", "ResourceSlice", more.pop("name", f"{node}-slice"),
        spec={
            "driver": DRIVER, "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": 1},
            "devices": listed, **where, **more,
        },
    )  # fmt: skip


def request(name: str = "req", count: int = 1, of: str = "gpu", *selectors: str, **more: Any) -> Obj:
    exactly: Obj = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, **more}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": exactly}


def everything(name: str = "req", of: str = "gpu", **more: Any) -> Obj:
    return {"name": name, "exactly": {"deviceClassName": of, "allocationMode": "All", **more}}


def resource_claim(name: str, *requests: Obj, status: Any = None, owner: str = "", **more: Any) -> Obj:
    meta: Obj = {}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"pod-{owner}", "controller": True}]
    devices = {"requests": list(requests) or [request()], **more}
    return obj("resource.k8s.io/v1", "ResourceClaim", name, "default", spec={"devices": devices}, status=status or {}, **meta)


def template(name: str, *requests: Obj) -> Obj:
    spec = {"spec": {"devices": {"requests": list(requests) or [request()]}}}
    return obj("resource.k8s.io/v1", "ResourceClaimTemplate", name, "default", spec=spec)


def using(*claims: str) -> dict[str, Any]:
    """The part of a pod's spec that uses resource claims."""
    return {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims]}


def allocated(node: str, *devices: str, users: tuple[str, ...] = (), pool: str = "") -> Obj:
    results = [{"request": "req", "driver": DRIVER, "pool": pool or node, "device": name} for name in devices]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    return {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}},
        "reservedFor": [{"resource": "pods", "name": user, "uid": f"pod-{user}"} for user in users],
    }
