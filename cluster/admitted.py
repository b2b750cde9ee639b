"""A cluster whose server does not ask our admission: the rules are asked here instead.

What is read of kinds that admission completes is completed in memory, so that a manifest that went past it (kubectl, another
operator) means what it would have meant; nothing is written back for that. With `checks`, what is written is checked before it
is sent, with every fault at its place, and sent completed. Webhooks make the second unnecessary, not the first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cluster import objects
from cluster.admission import Admission, Operation, Request
from cluster.clock import SystemClock
from cluster.embedded.metadata import metadata_faults
from cluster.embedded.patches import merge
from cluster.errors import ApiError, Invalid
from cluster.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE, QUEUE, Kind
from cluster.port import (
    Binding,
    Cluster,
    Eviction,
    Obj,
    Outcome,
    Page,
    PatchType,
    Propagation,
    StatusWrite,
    Victim,
    Watch,
    WatchEvent,
)

COMPLETED = frozenset({JOB, JOB_FLOW, JOB_TEMPLATE, CRON_JOB, QUEUE})
"""Kinds whose readers count on what admission fills in. Their rules complete an object by itself, without reading others."""

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED = 58

# The verb `list` hides the type inside the class.
Outcomes = list[Outcome]
Events = list[WatchEvent]


class Admitted:
    """See `cluster.port.Cluster`; every verb is the inner cluster's."""

    def __init__(self, inner: Cluster, admission: Admission, *, checks: bool = False) -> None:
        self._inner, self._admission, self._checks = inner, admission, checks
        self.clock = getattr(inner, "clock", None) or SystemClock()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object, completed."""
        return self._complete(kind, self._inner.get(kind, name, namespace))

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """Objects, completed."""
        page = self._inner.list(kind, namespace, labels=labels, fields=fields, limit=limit, token=token)
        if kind not in COMPLETED:
            return page
        return Page([self._complete(kind, obj) for obj in page.items], page.resource_version, page.continue_token)

    def watch(
        self,
        kinds: Sequence[Kind],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        notify: Callable[[], None] | None = None,
    ) -> Watch:
        """Events of objects, completed."""
        watch = self._inner.watch(kinds, namespace=namespace, labels=labels, fields=fields, notify=notify)
        return _Completed(watch, self._complete) if COMPLETED.intersection(kinds) else watch

    def create(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Create what admission lets in."""
        if self._checks and isinstance(obj, dict):
            new = self._named(kind, obj)
            obj = self._admit("CREATE", kind, new, None)
        return self._complete(kind, self._inner.create(kind, obj, field_manager=field_manager, dry_run=dry_run))

    def create_many(self, kind: Kind, objects: Sequence[Obj], *, field_manager: str = "") -> Outcomes:
        """Create many, of which admission may refuse some."""
        if not self._checks:
            return self._inner.create_many(kind, objects, field_manager=field_manager)
        outcomes = []
        for obj in objects:
            try:
                made = self.create(kind, obj, field_manager=field_manager)
            except ApiError as error:
                meta = obj.get("metadata") or {}
                outcomes.append(Outcome(str(meta.get("namespace") or ""), str(meta.get("name") or ""), error))
            else:
                outcomes.append(Outcome(_namespace(made), _name(made), None, made))
        return outcomes

    def replace(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Replace by what admission lets in."""
        if self._checks and isinstance(obj, dict):
            new = self._named(kind, obj)
            old = self.get(kind, _name(new), _namespace(new))
            obj = self._admit("UPDATE", kind, new, old)
        return self._complete(kind, self._inner.replace(kind, obj, field_manager=field_manager, dry_run=dry_run))

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
        """Patch. Of merge patches the outcome is checked; what is applied was tried as a whole by whoever applies."""
        if self._checks and patch_type == "merge" and isinstance(body, dict):
            old = self.get(kind, name, namespace)
            self._admit("UPDATE", kind, objects.clone(merge(old, body)), old)
        patched = self._inner.patch(
            kind, name, namespace, body, patch_type=patch_type, field_manager=field_manager, dry_run=dry_run
        )
        return self._complete(kind, patched)

    def patch_many(self, kind: Kind, patches: Sequence[tuple[Victim, Obj]], *, field_manager: str = "") -> Outcomes:
        """As they are: only controllers patch many."""
        return self._inner.patch_many(kind, patches, field_manager=field_manager)

    def patch_status(
        self, kind: Kind, name: str, namespace: str, status: Obj, *, resource_version: str = "", uid: str = ""
    ) -> Obj:
        """Statuses know no admission."""
        written = self._inner.patch_status(kind, name, namespace, status, resource_version=resource_version, uid=uid)
        return self._complete(kind, written)

    def patch_status_many(self, kind: Kind, writes: Sequence[StatusWrite]) -> Outcomes:
        """As they are."""
        return self._inner.patch_status_many(kind, writes)

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
        """Delete what admission lets go."""
        if self._checks:
            old = self.get(kind, name, namespace)
            self._admission.admit(Request("DELETE", kind, old, old, self))
        self._inner.delete(
            kind,
            name,
            namespace,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )

    def delete_many(self, kind: Kind, victims: Sequence[Victim]) -> Outcomes:
        """As they are."""
        return self._inner.delete_many(kind, victims)

    def bind(self, binding: Binding) -> None:
        """As it is."""
        self._inner.bind(binding)

    def bind_many(self, bindings: Sequence[Binding]) -> Outcomes:
        """As they are."""
        return self._inner.bind_many(bindings)

    def evict(self, namespace: str, name: str, *, uid: str = "", reason: str = "", message: str = "") -> None:
        """As it is."""
        self._inner.evict(namespace, name, uid=uid, reason=reason, message=message)

    def evict_many(self, evictions: Sequence[Eviction]) -> Outcomes:
        """As they are."""
        return self._inner.evict_many(evictions)

    def logs(
        self, namespace: str, name: str, container: str = "", *, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """The inner cluster's."""
        return self._inner.logs(namespace, name, container, tail=tail, follow=follow)

    def open_log(self, namespace: str, name: str, parameters: dict[str, str]) -> Any:
        """A log of a cluster whose kubelets keep them; see `cluster.kubernetes`."""
        return self._inner.open_log(namespace, name, parameters)  # type: ignore[attr-defined]

    def may(self, verb: str, kind: Kind, part: str = "") -> bool:
        """What the inner cluster's server lets this process do; where there is no server to ask, everything."""
        ask = getattr(self._inner, "may", None)
        return ask is None or bool(ask(verb, kind, part))

    def _complete(self, kind: Kind, obj: Obj) -> Obj:
        if kind not in COMPLETED:
            return obj
        whole = objects.clone(obj)
        self._admission.complete(Request("CREATE", kind, whole, None, self))
        return whole

    def _named(self, kind: Kind, obj: Obj) -> Obj:
        """A private copy that says what it is, and where."""
        new = {"apiVersion": kind.api_version, "kind": kind.kind, **objects.clone(obj)}
        meta = new["metadata"] = new.get("metadata") or {}
        if kind.namespaced and isinstance(meta, dict):
            meta.setdefault("namespace", "default")
        if isinstance(meta, dict) and not meta.get("name") and isinstance(meta.get("generateName"), str):
            suffix = "".join(secrets.choice(_LETTERS) for _ in range(5))  # rules look at names: a server would be too late
            meta["name"] = meta["generateName"][:_LONGEST_GENERATED] + suffix
        return new

    def _admit(self, operation: Operation, kind: Kind, new: Obj, old: Obj | None) -> Obj:
        """The object as the rules let it in. Raises Invalid with the faults of the metadata and of all rules together."""
        faults = metadata_faults(kind, new)
        try:
            admitted = self._admission.admit(Request(operation, kind, new, old, self))
        except Invalid as error:
            told = {fault.pointer for fault in faults}
            faults += [fault for fault in error.fields if fault.pointer not in told]
            raise Invalid.of(kind.kind, _name(new), faults) from None
        if faults:
            raise Invalid.of(kind.kind, _name(new), faults)
        return admitted


class _Completed:
    """A watch whose objects are completed as they are handed out."""

    def __init__(self, inner: Watch, complete: Callable[[Kind, Obj], Obj]) -> None:
        self._inner, self._by = inner, complete

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event."""
        event = self._inner.get(timeout)
        return None if event is None else self._whole(event)

    def drain(self) -> Events:
        """All that wait."""
        return [self._whole(event) for event in self._inner.drain()]

    def __iter__(self) -> Iterator[WatchEvent]:
        return map(self._whole, self._inner)

    def close(self) -> None:
        """Stop."""
        self._inner.close()

    def _whole(self, event: WatchEvent) -> WatchEvent:
        if event.kind not in COMPLETED:
            return event
        return WatchEvent(event.type, event.kind, self._by(event.kind, event.object))


def _name(obj: Obj) -> str:
    return objects.name(obj)


def _namespace(obj: Obj) -> str:
    return objects.namespace(obj)
