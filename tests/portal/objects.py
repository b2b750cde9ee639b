"""Cluster objects for tests: small, valid, and with a resourceVersion of one's choice."""

from __future__ import annotations

from typing import Any

STAMP = "2026-01-02T03:04:{:02d}Z"
Obj = dict[str, Any]


def meta(name: str, version: int = 1, namespace: str = "default", uid: str = "", **more: Any) -> Obj:
    """Metadata as a cluster gives it."""
    found = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version), "creationTimestamp": STAMP.format(0)}
    return found | ({"namespace": namespace} if namespace else {}) | more


def job(name: str = "train", version: int = 1, phase: str = "Pending", seconds: int = 0, **more: Any) -> Obj:
    """A Volcano Job of two roles that has been in `phase` since `seconds` after its creation."""
    template = {
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}}}
            ]
        }
    }
    conditions = [{"status": phase, "lastTransitionTime": STAMP.format(seconds)}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": meta(name, version, **more),
        "spec": {
            "queue": "default",
            "minAvailable": 3,
            "maxRetry": 3,
            "tasks": [
                {"name": "ps", "replicas": 1, "template": template},
                {"name": "worker", "replicas": 2, "minAvailable": 2, "template": template},
            ],
        },
        "status": {"state": {"phase": phase, "lastTransitionTime": STAMP.format(seconds)}, "conditions": conditions},
    }


def pod(name: str, version: int = 1, owner: str = "uid-train", task: str = "worker", phase: str = "Pending", **spec: Any) -> Obj:
    """A pod of a job's role."""
    references = [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": owner, "controller": True}]
    notes = {"volcano.sh/task-spec": task, "volcano.sh/task-index": "0"}
    if "nodeName" in spec:
        notes["basalt.dev/gpu-indices"] = "0,3"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(name, version, ownerReferences=references, annotations=notes),
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
        "status": {"phase": phase},
    }


def pod_group(name: str = "train-uid-train", version: int = 1, owner: str = "uid-train", phase: str = "Pending") -> Obj:
    """The gang of a job."""
    references = [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": owner, "controller": True}]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta(name, version, ownerReferences=references),
        "spec": {"minMember": 3, "queue": "default"},
        "status": {"phase": phase},
    }


def queue(name: str = "default", version: int = 1, **spec: Any) -> Obj:
    """A queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": meta(name, version, namespace=""),
        "spec": {"weight": 1, **spec},
    }


def node(name: str = "gpu-01", version: int = 1, gpus: int = 8, ready: bool = True) -> Obj:
    """A machine with GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta(name, version, namespace="", labels={"nvidia.com/gpu.product": "A100"}),
        "status": {
            "allocatable": {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def event(about: str, kind: str = "Job", name: str = "train", reason: str = "Scheduled", version: int = 1) -> Obj:
    """An event about the object of a uid."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": meta(f"{name}.{version}", version),
        "involvedObject": {"kind": kind, "name": name, "namespace": "default", "uid": about},
        "type": "Normal",
        "reason": reason,
        "message": "something happened",
        "count": 1,
        "firstTimestamp": STAMP.format(1),
        "lastTimestamp": STAMP.format(1),
    }
