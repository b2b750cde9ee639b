"""The port's verbs against an API server: single ones by a blocking client, many by its asyncio flavour."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cluster.clock import SystemClock
from cluster.errors import ApiError, Conflict, Invalid, Unanswered, Unavailable
from cluster.kinds import POD, Kind
from cluster.kubernetes import verbs
from cluster.kubernetes.evictions import Evictor, Fallback
from cluster.kubernetes.flights import Flights, Landed
from cluster.kubernetes.logs import FOLLOWED_SECONDS, READ_SECONDS, LogConnection
from cluster.kubernetes.pace import Pace
from cluster.kubernetes.transport import Request, Transport, path_of
from cluster.kubernetes.watch import KubernetesWatch
from cluster.port import Binding, Eviction, Obj, Outcome, Page, PatchType, Propagation, StatusWrite, Victim
from cluster.said import said

AT_ONCE = 32
"""Requests of batches that are under way."""

log = logging.getLogger(__name__)

_ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)

# The verb `list` hides the type inside the class.
Outcomes = list[Outcome]
Named = tuple[str, str, Request | ApiError]
"""Namespace and name of an object, and the request about it or why there is none."""


def connect(
    url: str = "",
    token: str = "",
    authority: str = "",
    *,
    at_once: int = AT_ONCE,
    answer_seconds: float = 0.0,
    rate: float = 0.0,
    manager: str = "",
    eviction_fallback: Fallback = "none",
) -> KubernetesCluster:
    """The cluster behind a URL, or the one that the surroundings name. Raises Unavailable when nothing is configured.

    `at_once` bounds the requests that batches have under way, `answer_seconds` the wait for an answer (0: a minute), `rate`
    the writes a second (0: as fast as answers come); `manager` is the field manager of writes that name none;
    `eviction_fallback` says what becomes of a pod whose eviction a budget refuses.
    """
    transport = Transport.to(url, token, authority)
    transport.answer_seconds = answer_seconds or transport.answer_seconds
    transport.pace, transport.manager = Pace(rate), manager
    return KubernetesCluster(transport, at_once, eviction_fallback)


class KubernetesCluster:
    """See `cluster.port.Cluster`. Its time is the wall's."""

    def __init__(self, transport: Transport, at_once: int = AT_ONCE, eviction_fallback: Fallback = "none") -> None:
        self.clock = SystemClock()
        self._transport = transport
        self._flights = Flights(transport, at_once)
        self._evictor = Evictor(self._flights.run, eviction_fallback)

    def guard(self, check: Callable[[], None]) -> None:
        """Have `check` asked before every write, also within a batch; what it raises (an ApiError) is the write's outcome."""
        self._transport.guard = check

    def on_answer(self, heard: Callable[[str, int], None]) -> None:
        """Tell of each request its method and the status of its answer (0: none came)."""
        self._transport.heard = heard

    def version(self) -> Obj:
        """What the server says that it is: `major`, `minor`, `gitVersion` and so on."""
        return self._transport.call(Request("GET", "/version"))

    def may(self, verb: str, kind: Kind, part: str = "") -> bool:
        """Whether this client may do something to objects of a kind anywhere, as the server judges; `part` is a subresource."""
        asked = {"verb": verb, "group": kind.group, "resource": kind.plural, "subresource": part}
        answer = self._transport.call(verbs.create(_ACCESS_REVIEW, {"spec": {"resourceAttributes": asked}}))
        return bool((answer.get("status") or {}).get("allowed"))

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object."""
        return self._transport.call(verbs.get(kind, name, namespace))

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """One page of objects, or all."""
        asked = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit or ""), "continue": token}
        query = {key: value for key, value in asked.items() if value}
        found = self._transport.call(Request("GET", path_of(kind, namespace), query))
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
        return self._transport.call(verbs.create(kind, obj, field_manager, dry_run))

    def create_many(self, kind: Kind, objects: Sequence[Obj], *, field_manager: str = "") -> Outcomes:
        """Create, several at once."""
        return self._many((*_names(obj), _request(verbs.create, kind, obj, field_manager)) for obj in objects)

    def replace(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Replace."""
        return self._transport.call(verbs.replace(kind, obj, field_manager, dry_run))

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
        return self._patch(verbs.patch(kind, name, namespace, body, patch_type, field_manager, dry_run))

    def patch_many(self, kind: Kind, patches: Sequence[tuple[Victim, Obj]], *, field_manager: str = "") -> Outcomes:
        """Patch, several at once; the uid goes with each patch, as a precondition."""
        return self._many(
            (v.namespace, v.name, _request(verbs.patch_one, kind, v.name, v.namespace, v.uid, body, field_manager))
            for v, body in patches
        )

    def patch_status(
        self, kind: Kind, name: str, namespace: str, status: Obj, *, resource_version: str = "", uid: str = ""
    ) -> Obj:
        """Merge into a status, by its subresource where there is one."""
        return self._patch(verbs.patch_status(kind, name, namespace, status, resource_version, uid))

    def patch_status_many(self, kind: Kind, writes: Sequence[StatusWrite]) -> Outcomes:
        """Merge into statuses, several at once."""
        return self._many(
            (w.namespace, w.name, _request(verbs.patch_status, kind, w.name, w.namespace, w.status, w.resource_version, w.uid))
            for w in writes
        )

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
        self._transport.call(verbs.delete(kind, name, namespace, uid, resource_version, propagation, grace_seconds, dry_run))

    def delete_many(self, kind: Kind, victims: Sequence[Victim]) -> Outcomes:
        """Delete, several at once."""
        return self._many((v.namespace, v.name, _request(verbs.delete, kind, v.name, v.namespace, v.uid)) for v in victims)

    def bind(self, binding: Binding) -> None:
        """Bind one pod."""
        _raise_first(self.bind_many([binding]))

    def bind_many(self, bindings: Sequence[Binding]) -> Outcomes:
        """Bind, several at once. Where no answer came the pod is looked at, and bound again if it has no node yet."""
        outcomes = self._many((b.namespace, b.name, _request(verbs.bind, b)) for b in bindings)
        unclear = [number for number, outcome in enumerate(outcomes) if isinstance(outcome.error, Unanswered)]
        if not unclear:
            return outcomes
        pods = self._flights.run([verbs.get(POD, bindings[n].name, bindings[n].namespace) for n in unclear])
        again = []
        for number, pod in zip(unclear, pods, strict=True):
            b = bindings[number]
            if isinstance(pod, Unavailable):
                continue
            if isinstance(pod, ApiError):
                outcomes[number] = Outcome(b.namespace, b.name, pod)
            elif (b.uid or pod["metadata"]["uid"]) == pod["metadata"]["uid"] and pod["spec"].get("nodeName") == b.node:
                outcomes[number] = Outcome(b.namespace, b.name)
            else:
                again.append(number)
        tried = self._many((bindings[n].namespace, bindings[n].name, _request(verbs.bind, bindings[n])) for n in again)
        for number, outcome in zip(again, tried, strict=True):
            outcomes[number] = outcome
        return outcomes

    def evict(self, namespace: str, name: str, *, uid: str = "", reason: str = "", message: str = "") -> None:
        """Evict one pod by the eviction subresource."""
        _raise_first(self.evict_many([Eviction(namespace, name, uid, reason, message)]))

    def evict_many(self, evictions: Sequence[Eviction]) -> Outcomes:
        """Evict, several at once."""
        return [
            _outcome(e.namespace, e.name, landed) for e, landed in zip(evictions, self._evictor.evict(evictions), strict=True)
        ]

    def logs(
        self, namespace: str, name: str, container: str = "", *, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """Lines of a container's log."""
        query = {"container": container, "tailLines": "" if tail is None else str(tail), "follow": "true" if follow else ""}
        asked = {key: value for key, value in query.items() if value}
        lines, _ = self._transport.lines(verbs.log(namespace, name), asked, 3600.0 if follow else 60.0)
        return (line.decode("utf-8", "replace") for line in lines)

    def open_log(self, namespace: str, name: str, parameters: dict[str, str]) -> LogConnection:
        """A container's log as an answer that is read as it comes, by the API server's own parameters. Raises ApiError."""
        idle = FOLLOWED_SECONDS if parameters.get("follow") else READ_SECONDS
        return LogConnection(self._transport.stream(verbs.log(namespace, name), parameters, idle))

    def warm(self) -> None:
        """Make ready for batches, so that the first is as quick as any. Does not block."""
        self._flights.warm()

    def close(self) -> None:
        """Let the connections go."""
        self._flights.close()

    def _patch(self, request: Request) -> Obj:
        try:
            return self._transport.call(request)
        except Invalid as error:
            raise _other_object(error) from None

    def _many(self, named: Any) -> Outcomes:
        asked: list[Named] = list(named)
        landed = iter(self._flights.run([request for _, _, request in asked if isinstance(request, Request)]))
        return [
            _outcome(namespace, name, next(landed) if isinstance(request, Request) else request)
            for namespace, name, request in asked
        ]


def _request(make: Callable[..., Request], *arguments: Any) -> Request | ApiError:
    try:
        return make(*arguments)
    except ApiError as error:
        return error


def _outcome(namespace: str, name: str, landed: Landed) -> Outcome:
    if isinstance(landed, Invalid):
        return Outcome(namespace, name, _other_object(landed))
    if isinstance(landed, ApiError):
        return Outcome(namespace, name, landed)
    return Outcome(namespace, name, None, landed if landed.get("kind") != "Status" else None)


def _other_object(error: Invalid) -> ApiError:
    """A server calls another uid than the object's an attempt to change it."""
    if any(fault.pointer == "/metadata/uid" for fault in error.fields):
        return Conflict(said("it is another object of this name: %(error)s", error=error))
    return error


def _raise_first(outcomes: Sequence[Outcome]) -> None:
    if outcomes[0].error is not None:
        raise outcomes[0].error


def _names(obj: Any) -> tuple[str, str]:
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    return (str(meta.get("namespace") or ""), str(meta.get("name") or "")) if isinstance(meta, dict) else ("", "")
