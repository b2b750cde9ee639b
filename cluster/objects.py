"""Small helpers over Kubernetes-shaped dicts. Pure: no I/O, no Django, nothing is changed in place unless it says so.

The larger ideas live in files of their own and are offered here too: quantities, pod requests, selectors, affinity
and durations.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

import orjson

from cluster.affinity import matches_node, matches_term, preferred_weight, tolerates, untolerated
from cluster.clock import Clock
from cluster.durations import format_duration, parse_duration
from cluster.port import Obj
from cluster.quantities import format_units, gpu_count, is_counted, is_gpu, parse_quantity, resource_units, to_units
from cluster.requests import container_requests, pod_requests
from cluster.said import said
from cluster.selectors import (
    FieldSelector,
    Selector,
    field_value,
    is_label_key,
    is_label_value,
    matches_expressions,
    matches_selector,
    parse_field_selector,
    parse_selector,
)

QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
"""Annotation (`"true"`) and scheduling gate of pods that wait for their queue to have room before they are looked at."""
GPU_INDICES = "basalt.dev/gpu-indices"
GPU_SHARE_INDEX = "volcano.sh/gpu-index"
"""Annotation of pods on cards that are shared by memory: which they are on."""
GPU_TOPOLOGY = "basalt.dev/gpu-topology"
GPU_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"
GPU_COUNT_LABEL = "nvidia.com/gpu.count"
RACK_LABEL = "topology.basalt.dev/rack"
SPINE_LABEL = "topology.basalt.dev/spine"
HOSTNAME_LABEL = "kubernetes.io/hostname"
NODE_USAGE = "basalt.dev/usage"
"""Annotation of nodes: what they are measured to use, and when (JSON)."""
GPU_USAGE = "basalt.dev/gpu-usage"
"""The same of their GPUs, by index: `{"time": …, "load": [percent or null, …], "memory": [MiB or null, …]}`."""
CLAIM_PROTECTION = "resource.kubernetes.io/delete-protection"
"""Finalizer of resource claims that hold devices."""
SIM_DURATION = "sim.basalt.dev/duration"
SIM_EXIT_CODE = "sim.basalt.dev/exit-code"
SIM_START_DELAY = "sim.basalt.dev/start-delay"


def name(obj: Mapping[str, Any]) -> str:
    """`metadata.name`."""
    return cast(str, (obj.get("metadata") or {}).get("name") or "")


def namespace(obj: Mapping[str, Any]) -> str:
    """`metadata.namespace`, empty for cluster-wide objects."""
    return cast(str, (obj.get("metadata") or {}).get("namespace") or "")


def uid(obj: Mapping[str, Any]) -> str:
    """`metadata.uid`."""
    return cast(str, (obj.get("metadata") or {}).get("uid") or "")


def key(obj: Mapping[str, Any]) -> str:
    """`namespace/name`; a cluster-wide object's key begins with the slash."""
    return f"{namespace(obj)}/{name(obj)}"


def resource_version(obj: Mapping[str, Any]) -> int:
    """`metadata.resourceVersion` as a number, 0 when it is missing."""
    return int((obj.get("metadata") or {}).get("resourceVersion") or 0)


def labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """`metadata.labels`; only to read."""
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """`metadata.annotations`; only to read."""
    return (obj.get("metadata") or {}).get("annotations") or {}


def owner(obj: Mapping[str, Any]) -> Obj | None:
    """The controller among the owner references, or None."""
    for reference in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if reference.get("controller"):
            return cast(Obj, reference)
    return None


def owner_reference(obj: Obj, *, controller: bool = True) -> Obj:
    """The reference that makes `obj` the owner of another object."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": name(obj),
        "uid": uid(obj),
        "controller": controller,
        "blockOwnerDeletion": True,
    }


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Whether deletion was asked for and the object is still there."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def clone(obj: Obj) -> Obj:
    """A deep copy of what JSON can say (faster than copy.deepcopy)."""
    return cast(Obj, orjson.loads(orjson.dumps(obj)))


def now_stamp(clock: Clock) -> str:
    """The present as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return stamp(clock.now())


def stamp(seconds: float) -> str:
    """An instant (seconds since the epoch) as RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 instant. Raises ValueError; an instant without an offset is refused."""
    try:
        instant = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(said("%(text)r is not an instant such as '2030-01-31T12:00:00Z'", text=text)) from None
    if instant.tzinfo is None:
        raise ValueError(said("%(text)r has no offset: write it with Z or +hh:mm at the end", text=text))
    return instant.timestamp()


def condition(obj: Mapping[str, Any], kind: str) -> Obj | None:
    """The status condition of a type, or None."""
    for found in (obj.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            return cast(Obj, found)
    return None


def with_condition(conditions: Iterable[Obj] | None, new: Obj) -> list[Obj]:
    """The conditions with `new` in the place of the one of its type; the transition time stays while the status does."""
    kept = []
    for old in conditions or ():
        if old.get("type") != new["type"]:
            kept.append(old)
        elif old.get("status") == new.get("status") and "lastTransitionTime" in old:
            new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*kept, new]


__all__ = [
    "CLAIM_PROTECTION", "GPU_COUNT_LABEL", "GPU_INDICES", "GPU_MEMORY_LABEL", "GPU_PRODUCT_LABEL", "GPU_SHARE_INDEX",
    "GPU_TOPOLOGY", "GPU_UNHEALTHY", "GPU_USAGE", "HOSTNAME_LABEL", "NODE_USAGE", "QUEUE_GATE", "RACK_LABEL",
    "SIM_DURATION", "SIM_EXIT_CODE", "SIM_START_DELAY", "SPINE_LABEL",
    "FieldSelector", "Selector", "annotations", "clone", "condition", "container_requests", "field_value",
    "format_duration", "format_units", "gpu_count", "is_counted", "is_deleting", "is_gpu", "is_label_key",
    "is_label_value", "key", "labels", "matches_expressions", "matches_node", "matches_selector", "matches_term",
    "name", "namespace", "now_stamp", "owner", "owner_reference", "parse_duration",
    "parse_field_selector", "parse_quantity", "parse_selector", "parse_time", "pod_requests", "preferred_weight",
    "resource_units", "resource_version", "stamp", "to_units", "tolerates", "uid", "untolerated", "with_condition",
]  # fmt: skip
