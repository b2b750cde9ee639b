"""What each method does at each address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from cluster.documents import load
from cluster.embedded.http.answers import success
from cluster.embedded.http.gate import Gate
from cluster.embedded.http.paths import Target
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, BadRequest, NotFound
from cluster.kinds import POD
from cluster.port import Binding, Obj, PatchType, Propagation

_PATCHES: dict[str, PatchType] = {
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "merge",
    "application/json-patch+json": "json",
    "application/apply-patch+yaml": "apply",
    "application/json": "merge",
}
_PROPAGATIONS: tuple[Propagation, ...] = ("Background", "Foreground", "Orphan")


class MethodNotAllowed(ApiError):
    """The address is right, the method is not."""

    status, reason = 405, "MethodNotAllowed"


class UnsupportedMediaType(ApiError):
    """A patch of a kind that is not understood."""

    status, reason = 415, "UnsupportedMediaType"


@dataclass(frozen=True, slots=True)
class Body:
    """What came with a request."""

    content: bytes
    media: str

    def json(self) -> Any:
        """Read as JSON; an apply patch may be YAML. Raises BadRequest."""
        if not self.content:
            return {}
        if "yaml" in self.media:
            return load(self.content)[0].obj
        try:
            return orjson.loads(self.content)
        except ValueError as error:
            raise BadRequest(f"the body is no JSON: {error}") from None

    def obj(self) -> Obj:
        """Read as an object."""
        found = self.json()
        if not isinstance(found, dict):
            raise BadRequest("the body is to be an object")
        return found


@dataclass(frozen=True, slots=True)
class _Call:
    cluster: EmbeddedCluster
    gate: Gate
    user: Any
    at: Target
    query: dict[str, str]
    body: Body

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"

    @property
    def manager(self) -> str:
        return self.query.get("fieldManager") or str(self.user)


def answer(
    cluster: EmbeddedCluster, gate: Gate, user: Any, method: str, at: Target, query: dict[str, str], body: Body
) -> tuple[int, Obj | str]:
    """Carry out one request: the HTTP status, and the object or text that answers. Raises ApiError."""
    call = _Call(cluster, gate, user, at, query, body)
    match (method, at.part, bool(at.name)):
        case ("GET", "", False):
            return 200, _list(call)
        case ("GET", "log", True) if at.kind == POD:
            return 200, _log(call)
        case ("GET", "" | "status", True):
            return 200, cluster.get(at.kind, at.name, at.namespace)
        case ("POST", "", False):
            return 201, _create(call)
        case ("POST", "binding", True) if at.kind == POD:
            return 201, _bind(call)
        case ("POST", "eviction", True) if at.kind == POD:
            return 201, _evict(call)
        case ("PUT", "", True):
            return 200, _replace(call)
        case ("PUT", "status", True):
            return 200, _replace_status(call)
        case ("PATCH", "" | "status", True):
            return 200, _patch(call)
        case ("DELETE", "", True):
            return 200, _delete(call, at.name)
    raise MethodNotAllowed(f"{method} is not possible there")


def _list(call: _Call) -> Obj:
    at, query = call.at, call.query
    limit = query.get("limit", "0")
    if not (limit.isascii() and limit.isdigit()):
        raise BadRequest(f"limit={limit!r} is no whole number")
    page = call.cluster.list(
        at.kind,
        at.namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=int(limit),
        token=query.get("continue", ""),
    )
    meta = {"resourceVersion": page.resource_version, **({"continue": page.continue_token} if page.continue_token else {})}
    return {"kind": f"{at.kind.kind}List", "apiVersion": at.kind.api_version, "metadata": meta, "items": page.items}


def _create(call: _Call) -> Obj:
    at, obj = call.at, call.body.obj()
    _place(at, obj)
    call.gate.check_write(call.user, call.cluster, "create", at.kind, "", at.namespace, obj)
    return call.cluster.create(at.kind, obj, field_manager=call.manager, dry_run=call.dry_run)


def _replace(call: _Call) -> Obj:
    at, obj = call.at, call.body.obj()
    _place(at, obj)
    _check(call, "update")
    return call.cluster.replace(at.kind, obj, field_manager=call.manager, dry_run=call.dry_run)


def _replace_status(call: _Call) -> Obj:
    at, obj = call.at, call.body.obj()
    _check(call, "update")
    old = call.cluster.get(at.kind, at.name, at.namespace).get("status") or {}
    new = obj.get("status") or {}
    gone = {field: None for field in old if field not in new}
    return call.cluster.patch_status(at.kind, at.name, at.namespace, {**gone, **new}, **_preconditions(obj))


def _patch(call: _Call) -> Obj:
    at = call.at
    media = call.body.media.partition(";")[0].strip()
    if media not in _PATCHES:
        raise UnsupportedMediaType(f"{media!r} is no patch that is understood; send one of {', '.join(_PATCHES)}")
    body = call.body.json()
    if "strategic" in media and _has_directives(body):
        raise UnsupportedMediaType("strategic merge patches with directives are not understood: send a merge patch")
    _check(call, "update")
    if at.part == "status":
        if media == "application/json-patch+json" or not isinstance(body, dict):
            raise UnsupportedMediaType("a status is changed by a merge patch")
        return call.cluster.patch_status(at.kind, at.name, at.namespace, body.get("status") or {}, **_preconditions(body))
    return call.cluster.patch(
        at.kind, at.name, at.namespace, body, patch_type=_PATCHES[media], field_manager=call.manager, dry_run=call.dry_run
    )


def _delete(call: _Call, name: str) -> Obj:
    at, options = call.at, call.body.obj()
    _check(call, "delete")
    wanted = options.get("preconditions") or {}
    propagation = options.get("propagationPolicy") or call.query.get("propagationPolicy") or "Background"
    if propagation not in _PROPAGATIONS:
        raise BadRequest(f"propagationPolicy={propagation!r} is none of {', '.join(_PROPAGATIONS)}")
    grace = options.get("gracePeriodSeconds", call.query.get("gracePeriodSeconds"))
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise BadRequest(f"gracePeriodSeconds={grace!r} is no whole number") from None
    old = call.cluster.get(at.kind, name, at.namespace)
    call.cluster.delete(
        at.kind,
        name,
        at.namespace,
        uid=wanted.get("uid") or "",
        resource_version=wanted.get("resourceVersion") or "",
        propagation=propagation,
        grace_seconds=seconds,
        dry_run=call.dry_run or options.get("dryRun") == ["All"],
    )
    try:
        left = call.cluster.get(at.kind, name, at.namespace)
    except NotFound:
        return success(old)
    return left if left["metadata"]["uid"] == old["metadata"]["uid"] else success(old)


def _bind(call: _Call) -> Obj:
    at, obj = call.at, call.body.obj()
    _check(call, "update")
    meta, node = obj.get("metadata") or {}, (obj.get("target") or {}).get("name") or ""
    call.cluster.bind(Binding(at.namespace, at.name, meta.get("uid") or "", node, dict(meta.get("annotations") or {})))
    return success()


def _evict(call: _Call) -> Obj:
    at, obj = call.at, call.body.obj()
    _check(call, "delete")
    wanted = (obj.get("deleteOptions") or {}).get("preconditions") or {}
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    call.cluster.evict(
        at.namespace,
        at.name,
        uid=wanted.get("uid") or "",
        reason=notes.get("basalt.dev/reason", ""),
        message=notes.get("basalt.dev/message", ""),
    )
    return success()


def _log(call: _Call) -> str:
    tail = call.query.get("tailLines")
    if tail is not None and not (tail.isascii() and tail.isdigit()):
        raise BadRequest(f"tailLines={tail!r} is no whole number")
    lines = call.cluster.logs(call.at.namespace, call.at.name, call.query.get("container", ""), tail=int(tail) if tail else None)
    return "".join(f"{line}\n" for line in lines)


def _check(call: _Call, verb: Any) -> None:
    call.gate.check_write(call.user, call.cluster, verb, call.at.kind, call.at.name, call.at.namespace, None)


def _place(at: Target, obj: Obj) -> None:
    """The object's name and namespace are those of the address, where it gives them."""
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise BadRequest("metadata is to be a mapping")
    for field, said in (("namespace", at.namespace), ("name", at.name)):
        if said and meta.setdefault(field, said) != said:
            raise BadRequest(f"the object's {field} is {meta[field]!r}, the address says {said!r}")


def _preconditions(obj: Obj) -> dict[str, str]:
    meta = obj.get("metadata") or {}
    return {"resource_version": str(meta.get("resourceVersion") or ""), "uid": str(meta.get("uid") or "")}


def _has_directives(value: Any) -> bool:
    """`$patch`, `$setElementOrder` and their like, or a list, which a strategic merge would merge by its keys."""
    if isinstance(value, dict):
        return any(key.startswith("$") or _has_directives(inner) for key, inner in value.items())
    return isinstance(value, list)
