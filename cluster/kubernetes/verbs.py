"""The port's verbs as requests: where each goes and what it carries, pure."""

from __future__ import annotations

from typing import Any

from cluster.errors import BadRequest
from cluster.kinds import POD, Kind
from cluster.kubernetes.transport import Request, path_of
from cluster.port import Binding, Eviction, Obj, PatchType, Propagation
from cluster.said import said

_MEDIA = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


def get(kind: Kind, name: str, namespace: str) -> Request:
    """Read one object."""
    return Request("GET", _path(kind, namespace, name))


def create(kind: Kind, obj: Obj, manager: str = "", dry_run: bool = False) -> Request:
    """Create. Raises BadRequest for what a server would not tell plainly."""
    if not isinstance(obj, dict):
        raise BadRequest(said("an object is a mapping, not %(type)s", type=type(obj).__name__))
    meta = obj.get("metadata") or {}
    if meta.get("namespace") and not kind.namespaced:  # a server would drop it without a word
        raise BadRequest(said("a %(kind)s belongs to no namespace", kind=kind.kind))
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    where = path_of(kind, (meta.get("namespace") or "default") if kind.namespaced else "")
    return Request("POST", where, _options(manager, dry_run), body)


def replace(kind: Kind, obj: Obj, manager: str = "", dry_run: bool = False) -> Request:
    """Replace the whole."""
    meta = obj.get("metadata") or {}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    where = _path(kind, meta.get("namespace") or "", meta.get("name") or "")
    return Request("PUT", where, _options(manager, dry_run), body)


def patch(
    kind: Kind, name: str, namespace: str, body: Any, patch_type: PatchType = "merge", manager: str = "", dry_run: bool = False
) -> Request:
    """Patch; what is applied says what it is, and takes over fields that another manager set."""
    if patch_type not in _MEDIA:
        raise BadRequest(said("%(type)r is no patch type: merge, json or apply", type=patch_type))
    if patch_type == "apply" and isinstance(body, dict):
        meta = {"name": name, **(body.get("metadata") or {})}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": meta}
    query = _options(manager or ("apply" if patch_type == "apply" else ""), dry_run)
    if patch_type == "apply":
        query["force"] = "true"
    return Request("PATCH", _path(kind, namespace, name), query, body, _MEDIA[patch_type])


def patch_one(kind: Kind, name: str, namespace: str, uid: str, body: Obj, manager: str = "") -> Request:
    """A merge patch of the object of this uid alone."""
    return patch(kind, name, namespace, {**body, "metadata": {**(body.get("metadata") or {}), "uid": uid}}, manager=manager)


def patch_status(kind: Kind, name: str, namespace: str, status: Obj, resource_version: str = "", uid: str = "") -> Request:
    """Merge into a status, by its subresource where there is one."""
    meta = {key: value for key, value in (("resourceVersion", resource_version), ("uid", uid)) if value}
    body = {"status": status, **({"metadata": meta} if meta else {})}
    return Request("PATCH", _path(kind, namespace, name, "status" if kind.has_status else ""), None, body, _MEDIA["merge"])


def delete(
    kind: Kind,
    name: str,
    namespace: str,
    uid: str = "",
    resource_version: str = "",
    propagation: Propagation = "Background",
    grace_seconds: int | None = None,
    dry_run: bool = False,
) -> Request:
    """Delete, with preconditions."""
    wanted = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
    options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    if wanted:
        options["preconditions"] = wanted
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if dry_run:
        options["dryRun"] = ["All"]  # beside a body a server does not look at the query
    return Request("DELETE", _path(kind, namespace, name), None, options)


def bind(binding: Binding) -> Request:
    """Bind; the API server merges the annotations of a Binding into the pod's."""
    meta: Obj = {"name": binding.name, "namespace": binding.namespace, "annotations": binding.annotations}
    if binding.uid:
        meta["uid"] = binding.uid
    target = {"apiVersion": "v1", "kind": "Node", "name": binding.node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
    return Request("POST", _path(POD, binding.namespace, binding.name, "binding"), None, body)


def evict(eviction: Eviction) -> Request:
    """Ask for an eviction, with what it is for; a budget may refuse it."""
    notes = {"basalt.dev/reason": eviction.reason, "basalt.dev/message": eviction.message}
    meta: Obj = {"name": eviction.name, "namespace": eviction.namespace}
    meta["annotations"] = {key: text for key, text in notes.items() if text}
    body: Obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    if eviction.uid:
        body["deleteOptions"] = {"preconditions": {"uid": eviction.uid}}
    return Request("POST", _path(POD, eviction.namespace, eviction.name, "eviction"), None, body)


def log(namespace: str, name: str) -> str:
    """Where a pod's log is read."""
    return _path(POD, namespace, name, "log")


def _path(kind: Kind, namespace: str, name: str, part: str = "") -> str:
    if not name:
        raise BadRequest(said("an object has a name"))
    return path_of(kind, (namespace or "default") if kind.namespaced else "", name, part)


def _options(manager: str, dry_run: bool) -> dict[str, str]:
    return {**({"fieldManager": manager} if manager else {}), **({"dryRun": "All"} if dry_run else {})}
