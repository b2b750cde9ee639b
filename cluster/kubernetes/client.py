"""The port's verbs as requests to an API server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from cluster.clock import SystemClock
from cluster.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from cluster.kinds import POD, Kind
from cluster.kubernetes.pace import Pace
from cluster.kubernetes.transport import Transport, path_of
from cluster.kubernetes.watch import KubernetesWatch
from cluster.objects import now_stamp
from cluster.port import Binding, Obj, Outcome, Page, PatchType, Propagation, Victim

AT_ONCE = 8
"""Requests that one batch has under way, each in a thread. A bind costs 0.5 to 0.8 ms of processor time so, and 0.4 to 0.5 by
aiohttp, which is not worth a second client: 5,000 binds and all that goes with them take 8 s, and the server is what limits."""

TARGET = "DisruptionTarget"
"""The pod condition by which Kubernetes says that a pod is being evicted."""

log = logging.getLogger(__name__)

_MEDIA = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}

# The verb `list` hides the type inside the class.
Outcomes = list[Outcome]
Job = tuple[str, str, Callable[[], Any]]


def connect(
    url: str = "", token: str = "", authority: str = "", *, at_once: int = AT_ONCE, answer_seconds: float = 0.0, rate: float = 0.0
) -> KubernetesCluster:
    """The cluster behind a URL, or the one that the surroundings name. Raises Unavailable when nothing is configured.

    `at_once` bounds the requests that a batch has under way, `answer_seconds` the wait for an answer (0: a minute), `rate`
    the writes a second (0: as fast as answers come).
    """
    transport = Transport.to(url, token, authority)
    transport.answer_seconds = answer_seconds or transport.answer_seconds
    transport.pace = Pace(rate)
    return KubernetesCluster(transport, at_once)


class KubernetesCluster:
    """See `cluster.port.Cluster`. Its time is the wall's."""

    def __init__(self, transport: Transport, at_once: int = AT_ONCE) -> None:
        self.clock = SystemClock()
        self._transport = transport
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="cluster-writes")

    def guard(self, check: Callable[[], None]) -> None:
        """Have `check` asked before every write, also within a batch; what it raises (an ApiError) is the write's outcome."""
        self._transport.guard = check

    def on_answer(self, heard: Callable[[str, int], None]) -> None:
        """Tell of each request its method and the status of its answer (0: none came)."""
        self._transport.heard = heard

    def version(self) -> Obj:
        """What the server says that it is: `major`, `minor`, `gitVersion` and so on."""
        return self._transport.call("GET", "/version")

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object."""
        return self._transport.call("GET", self._path(kind, namespace, name))

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """One page of objects, or all."""
        asked = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit or ""), "continue": token}
        found = self._transport.call("GET", path_of(kind, namespace), {key: value for key, value in asked.items() if value})
        meta, items = found.get("metadata") or {}, found.get("items") or []
        for obj in items:
            obj.setdefault("apiVersion", kind.api_version)
            obj.setdefault("kind", kind.kind)
        return Page(items, str(meta.get("resourceVersion") or ""), meta.get("continue") or "")

    def watch(
        self,
        kinds: Sequence[Kind],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        notify: Callable[[], None] | None = None,
    ) -> KubernetesWatch:
        """List, then watch."""
        return KubernetesWatch(self._transport, kinds, namespace, labels, fields, notify)

    def create(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Create."""
        if not isinstance(obj, dict):
            raise BadRequest(f"an object is a mapping, not {type(obj).__name__}")
        meta = obj.get("metadata") or {}
        if meta.get("namespace") and not kind.namespaced:  # a server would drop it without a word
            raise BadRequest(f"a {kind.kind} belongs to no namespace")
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        where = path_of(kind, (meta.get("namespace") or "default") if kind.namespaced else "")
        return self._transport.call("POST", where, _options(field_manager, dry_run), body)

    def create_many(self, kind: Kind, objects: Sequence[Obj], *, field_manager: str = "") -> Outcomes:
        """Create, several at once."""
        return self._many((*_names(obj), partial(self.create, kind, obj, field_manager=field_manager)) for obj in objects)

    def replace(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Replace."""
        meta = obj.get("metadata") or {}
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        where = self._path(kind, meta.get("namespace") or "", meta.get("name") or "")
        return self._transport.call("PUT", where, _options(field_manager, dry_run), body)

    def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        body: Any,
        *,
        patch_type: PatchType = "merge",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """Patch."""
        if patch_type not in _MEDIA:
            raise BadRequest(f"{patch_type!r} is no patch type: merge, json or apply")
        if patch_type == "apply" and isinstance(body, dict):
            meta = {"name": name, **(body.get("metadata") or {})}
            body = {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": meta}
        query = _options(field_manager or ("apply" if patch_type == "apply" else ""), dry_run)
        return self._patch(self._path(kind, namespace, name), body, query, _MEDIA[patch_type])

    def patch_many(self, kind: Kind, patches: Sequence[tuple[Victim, Obj]], *, field_manager: str = "") -> Outcomes:
        """Patch, several at once; the uid goes with each patch, as a precondition."""

        def one(victim: Victim, body: Obj) -> Obj:
            meta = {**(body.get("metadata") or {}), "uid": victim.uid}
            return self.patch(kind, victim.name, victim.namespace, {**body, "metadata": meta}, field_manager=field_manager)

        return self._many((v.namespace, v.name, partial(one, v, body)) for v, body in patches)

    def patch_status(
        self, kind: Kind, name: str, namespace: str, status: Obj, *, resource_version: str = "", uid: str = ""
    ) -> Obj:
        """Merge into a status, by its subresource where there is one."""
        meta = {key: value for key, value in (("resourceVersion", resource_version), ("uid", uid)) if value}
        body = {"status": status, **({"metadata": meta} if meta else {})}
        return self._patch(self._path(kind, namespace, name, "status" if kind.has_status else ""), body)

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation = "Background",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete."""
        wanted = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if wanted:
            options["preconditions"] = wanted
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if dry_run:
            options["dryRun"] = ["All"]  # beside a body a server does not look at the query
        self._transport.call("DELETE", self._path(kind, namespace, name), None, options)

    def delete_many(self, kind: Kind, victims: Sequence[Victim]) -> Outcomes:
        """Delete, several at once."""
        return self._many((v.namespace, v.name, partial(self.delete, kind, v.name, v.namespace, uid=v.uid)) for v in victims)

    def bind(self, binding: Binding) -> None:
        """Bind one pod; the API server merges the annotations of a Binding into the pod's."""
        meta: Obj = {"name": binding.name, "namespace": binding.namespace, "annotations": binding.annotations}
        if binding.uid:
            meta["uid"] = binding.uid
        target = {"apiVersion": "v1", "kind": "Node", "name": binding.node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self._transport.call("POST", self._path(POD, binding.namespace, binding.name, "binding"), None, body)

    def bind_many(self, bindings: Sequence[Binding]) -> Outcomes:
        """Bind, several at once."""
        return self._many((b.namespace, b.name, partial(self.bind, b)) for b in bindings)

    def evict(self, namespace: str, name: str, *, uid: str = "", reason: str = "", message: str = "") -> None:
        """Evict one pod by the eviction subresource, and write on it why; the server's own words would say only that."""
        notes = {"basalt.dev/reason": reason, "basalt.dev/message": message}
        meta: Obj = {"name": name, "namespace": namespace, "annotations": {key: text for key, text in notes.items() if text}}
        body: Obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        if uid:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        self._transport.call("POST", self._path(POD, namespace, name, "eviction"), None, body)
        if reason:
            self._explain(namespace, name, uid, reason, message)

    def _explain(self, namespace: str, name: str, uid: str, reason: str, message: str) -> None:
        """Condition DisruptionTarget of a pod that is on its way out; one that is gone needs no reason any more."""
        try:
            pod = self.get(POD, name, namespace)
            conditions = [c for c in (pod.get("status") or {}).get("conditions") or () if c.get("type") != TARGET]
            told = {"type": TARGET, "status": "True", "reason": reason, "message": message}
            if any(c == told for c in (pod.get("status") or {}).get("conditions") or ()):
                return
            told["lastTransitionTime"] = now_stamp(self.clock)
            version = pod["metadata"]["resourceVersion"]
            wanted = uid or pod["metadata"]["uid"]
            self.patch_status(POD, name, namespace, {"conditions": [*conditions, told]}, resource_version=version, uid=wanted)
        except (NotFound, Conflict) as error:
            log.debug("pod %s/%s went before it could be told why: %s", namespace, name, error)

    def logs(
        self, namespace: str, name: str, container: str = "", *, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """Lines of a container's log."""
        query = {"container": container, "tailLines": "" if tail is None else str(tail), "follow": "true" if follow else ""}
        asked = {key: value for key, value in query.items() if value}
        lines, _ = self._transport.lines(self._path(POD, namespace, name, "log"), asked, 3600.0 if follow else 60.0)
        return (line.decode("utf-8", "replace") for line in lines)

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _patch(self, path: str, body: Any, query: Any = None, media: str = _MEDIA["merge"]) -> Obj:
        """A patch; a server calls another uid than the object's an attempt to change it."""
        try:
            return self._transport.call("PATCH", path, query, body, media)
        except Invalid as error:
            if any(fault.pointer == "/metadata/uid" for fault in error.fields):
                raise Conflict(f"it is another object of this name: {error}") from None
            raise

    @staticmethod
    def _path(kind: Kind, namespace: str, name: str, part: str = "") -> str:
        if not name:
            raise BadRequest("an object has a name")
        return path_of(kind, (namespace or "default") if kind.namespaced else "", name, part)

    def _many(self, jobs: Any) -> Outcomes:
        return list(self._threads.map(_outcome, list(jobs)))


def _outcome(job: Job) -> Outcome:
    namespace, name, write = job
    try:
        done = write()
    except ApiError as error:
        return Outcome(namespace, name, error)
    return Outcome(namespace, name, None, done if isinstance(done, dict) else None)


def _names(obj: Obj) -> tuple[str, str]:
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    return (str(meta.get("namespace") or ""), str(meta.get("name") or "")) if isinstance(meta, dict) else ("", "")


def _options(manager: str, dry_run: bool) -> dict[str, str]:
    return {**({"fieldManager": manager} if manager else {}), **({"dryRun": "All"} if dry_run else {})}
