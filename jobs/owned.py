"""What people do with the objects that make jobs (flows, templates, cron jobs): create, change, delete; shown at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster import objects, runtime
from cluster.errors import FieldError, Forbidden, NotFound
from cluster.kinds import Kind
from cluster.pointers import pointer
from cluster.port import Cluster, Obj
from cluster.projection import Batch
from cluster.said import said
from jobs import keys
from jobs.operations import MANAGER, submit_kind

Project = Callable[[Batch], None]

_CHANGEABLE = frozenset({"labels", "annotations", "resourceVersion"})


def create(kind: Kind, manifest: Any, owner: str, project: Project) -> Obj:
    """Create an object for a user. Raises what `operations.submit_kind` does."""
    obj = submit_kind(runtime.current(), kind, manifest, owner=owner)
    project(Batch(upserts=[obj]))
    return obj


def change(kind: Kind, namespace: str, name: str, uid: str, body: Obj, project: Project, *, dry_run: bool = False) -> Obj:
    """Change an object by a merge patch of its spec, labels and annotations; `metadata.resourceVersion` guards against others.

    Raises Forbidden for what is not people's to change, NotFound, Conflict, Invalid.
    """
    patch = _patch(body)
    patch.setdefault("metadata", {})["uid"] = uid
    obj = runtime.current().patch(kind, name, namespace, patch, field_manager=MANAGER, dry_run=dry_run)
    if not dry_run:
        project(Batch(upserts=[obj]))
    return obj


def _patch(body: Obj) -> Obj:
    meta = body.get("metadata")
    meta = dict(meta) if isinstance(meta, dict) else {}
    for field in ("name", "namespace", "uid"):
        meta.pop(field, None)
    others = sorted(meta.keys() - _CHANGEABLE)
    faults = [FieldError(pointer("metadata", field), said("cannot be changed here"), "forbidden") for field in others]
    if isinstance(meta.get("annotations"), dict) and keys.OWNER in meta["annotations"]:
        faults.append(
            FieldError(pointer("metadata", "annotations", keys.OWNER), said("is ours to say: leave it out"), "forbidden")
        )
    if faults:
        raise Forbidden("; ".join(f"{fault.pointer} {fault.message}" for fault in faults), faults)
    return {**({"metadata": meta} if meta else {}), **({"spec": body["spec"]} if "spec" in body else {})}


def delete(kind: Kind, namespace: str, name: str, uid: str, project: Project) -> None:
    """Delete exactly this object; the jobs that it made go with it. Raises NotFound, Conflict, Forbidden."""
    cluster = runtime.current()
    cluster.delete(kind, name, namespace, uid=uid)
    renew(cluster, kind, namespace, name, uid, project)


def renew(cluster: Cluster, kind: Kind, namespace: str, name: str, uid: str, project: Project) -> None:
    """Show the object as the cluster has it now."""
    try:
        obj = cluster.get(kind, name, namespace)
    except NotFound:
        obj = None
    is_same = obj is not None and objects.uid(obj) == uid
    project(Batch(upserts=[obj]) if obj is not None and is_same else Batch(gone=[uid]))
