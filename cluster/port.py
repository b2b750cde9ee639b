"""The port to a cluster: the few verbs through which everything in Basalt reads and writes objects.

Objects are plain Kubernetes-shaped dicts (`Obj`). What a verb returns belongs to the caller only to read: an
implementation may hand out its own copy, so whoever wants to change an object copies it first. Every verb is safe
to call from any thread. Refusals are `cluster.errors.ApiError`.

An implementation keeps these promises when it passes `tests/cluster/port_suite.py`, as `cluster.embedded` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cluster.kinds import Kind

Obj = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "SYNCED"]
PatchType = Literal["merge", "json", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. SYNCED (with an empty object) ends the list of what was there when the watch began."""

    type: EventType
    kind: Kind | None
    object: Obj


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, the version it was read at, and the token of the next page (empty: last page)."""

    items: list[Obj]
    resource_version: str
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """Put one pod on one node; `annotations` are merged into the pod's in the same step."""

    namespace: str
    name: str
    uid: str
    node: str
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Eviction:
    """Evict one pod, and why: `reason` is one word for machines, `message` says it to people."""

    namespace: str
    name: str
    uid: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one write among many; `error` is None when it was done, `object` what it left where it left one."""

    namespace: str
    name: str
    error: Exception | None = None
    object: Obj | None = None


@dataclass(frozen=True, slots=True)
class Victim:
    """One of many objects that are patched or deleted; another one of its name is left alone."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """One of many status patches; `resource_version` and `uid`, when given, must be the object's own."""

    namespace: str
    name: str
    status: Obj
    resource_version: str = ""
    uid: str = ""


class Reader(Protocol):
    """The reading half, all that admission rules may use."""

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object. Raises NotFound."""
        ...

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """Objects of a kind, ordered by namespace and name; `namespace=""` means all.

        `labels` and `fields` are selectors in Kubernetes's grammar; `limit` 0 means all. Raises BadRequest for a
        selector that does not parse, Expired for a token that is too old.
        """
        ...


class Watch(Protocol):
    """A running watch over one or more kinds; events of one kind come in order.

    It begins with what is there (ADDED each), then SYNCED once for all kinds, then changes. A connection that
    breaks or a version that expires is healed inside: the difference arrives as ordinary events, not a second SYNCED.
    """

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event, waiting at most `timeout` wall seconds (None: for ever).

        None when nothing came or the watch was closed.
        """
        ...

    def drain(self) -> list[WatchEvent]:
        """All events that are waiting, without blocking."""
        ...

    def __iter__(self) -> Iterator[WatchEvent]:
        """Events until the watch is closed."""
        ...

    def close(self) -> None:
        """Stop; a blocked `get` returns None."""
        ...


class Cluster(Reader, Protocol):
    """Reading, watching and writing. `field_manager` names who writes; `dry_run` does everything but keep it."""

    def watch(
        self,
        kinds: Sequence[Kind],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        notify: Callable[[], None] | None = None,
    ) -> Watch:
        """Watch kinds; `notify` is called (from any thread, must not block) whenever an event was queued."""
        ...

    def create(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Create; `generateName` is honoured, a status is dropped where it is a subresource.

        Raises AlreadyExists, Invalid (admission, with every field at fault), Forbidden.
        """
        ...

    def create_many(self, kind: Kind, objects: Sequence[Obj], *, field_manager: str = "") -> list[Outcome]:
        """Create many; one outcome each, in order, with the object as it was kept. None of them raises."""
        ...

    def replace(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Replace a whole object; its status stays where it is a subresource.

        A resourceVersion in it must be the stored one. Raises NotFound, Conflict, Invalid.
        """
        ...

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
        """Patch. A `metadata.resourceVersion` inside a merge patch is a precondition. `apply` creates what is missing."""
        ...

    def patch_many(self, kind: Kind, patches: Sequence[tuple[Victim, Obj]], *, field_manager: str = "") -> list[Outcome]:
        """Merge patches into many objects, each only if it has this uid; one outcome each, in order. None of them raises."""
        ...

    def patch_status_many(self, kind: Kind, writes: Sequence[StatusWrite]) -> list[Outcome]:
        """Merge into many statuses; one outcome each, in order. None of them raises."""
        ...

    def delete_many(self, kind: Kind, victims: Sequence[Victim]) -> list[Outcome]:
        """Delete many; one outcome each, in order. None of them raises."""
        ...

    def patch_status(
        self, kind: Kind, name: str, namespace: str, status: Obj, *, resource_version: str = "", uid: str = ""
    ) -> Obj:
        """Merge `status` into the object's status, by the subresource where the kind has one."""
        ...

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
        """Delete, with preconditions. A pod on a node gets a deletion timestamp first and goes when its node has stopped it;
        so does whatever has finalizers. Raises NotFound, Conflict."""
        ...

    def bind(self, binding: Binding) -> None:
        """Bind one pod. Raises NotFound, Conflict (other uid, already bound, being deleted)."""
        ...

    def bind_many(self, bindings: Sequence[Binding]) -> list[Outcome]:
        """Bind many at once; one outcome each, in order. None of them raises."""
        ...

    def evict(self, namespace: str, name: str, *, uid: str = "", reason: str = "", message: str = "") -> None:
        """Evict a pod: condition DisruptionTarget, then delete. Raises NotFound, Conflict, TooManyRequests."""
        ...

    def evict_many(self, evictions: Sequence[Eviction]) -> list[Outcome]:
        """Evict many at once; one outcome each, in order. None of them raises."""
        ...

    def logs(
        self, namespace: str, name: str, container: str = "", *, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """Lines of a container's log. Raises NotFound."""
        ...
