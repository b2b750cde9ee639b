"""What people may not write into objects that they may create, since controllers and the scheduler believe it.

A reference to an owner would put a pod into somebody else's job, a finalizer would keep an object for ever, a node or GPUs
named by hand would be taken without asking the scheduler, a group named on a pod would let it into somebody else's gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cluster import objects
from cluster.errors import FieldError, NotFound
from cluster.kinds import CLAIM, JOB, POD, POD_GROUP, Kind
from cluster.pointers import pointer
from cluster.port import Cluster, Obj
from cluster.volumes import SELECTED_NODE
from jobs.keys import GROUP_NAME, OWNER, owning_job

Owns = Callable[[str], bool]
"""Whether the user may act on a job whose owner has this name."""


def reserved(kind: Kind, obj: Obj, cluster: Cluster, owns: Owns) -> list[FieldError]:
    """Every field of a new object that is not for its author to say."""
    return [FieldError(where, why, "forbidden") for where, why in _reserved(kind, obj, cluster, owns)]


def _reserved(kind: Kind, obj: Obj, cluster: Cluster, owns: Owns) -> Iterator[tuple[str, str]]:
    meta = obj["metadata"]
    for field in ("ownerReferences", "finalizers"):
        if meta.get(field):
            yield f"/metadata/{field}", "is set by controllers: leave it out"
    if kind == CLAIM:
        for note in _mapping(meta.get("annotations")):
            if str(note).startswith("pv.kubernetes.io/") or note == SELECTED_NODE:
                yield pointer("metadata", "annotations", str(note)), "is set by controllers: leave it out"
    if kind != POD:
        return
    spec, notes = _mapping(obj.get("spec")), _mapping(meta.get("annotations"))
    if spec.get("nodeName"):
        yield "/spec/nodeName", "is the scheduler's to say: narrow its choice by nodeSelector or affinity"
    if objects.GPU_INDICES in notes:
        yield pointer("metadata", "annotations", objects.GPU_INDICES), "is the scheduler's to say: leave it out"
    group = notes.get(GROUP_NAME)
    owner = _owner_of_group(cluster, group, meta.get("namespace") or "default") if isinstance(group, str) else None
    if owner is not None and not owns(owner):
        yield pointer("metadata", "annotations", GROUP_NAME), f"{group!r} is the gang of a job that is not yours"


def _owner_of_group(cluster: Cluster, name: str, namespace: str) -> str | None:
    """Who owns the job that a PodGroup was made for; None when there is no such group, or no job made it."""
    try:
        made_by = owning_job(cluster.get(POD_GROUP, name, namespace))
        if made_by is None:
            return None
        return objects.annotations(cluster.get(JOB, made_by["name"], namespace)).get(OWNER, "")
    except NotFound:
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
