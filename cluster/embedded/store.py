"""The embedded cluster: the port's verbs over objects in memory, written through to a table when there is one.

One lock guards the objects. A verb prepares what it can without it, takes one step under it (all or nothing, admission
rules included) and returns when the step is settled, that is committed to the table and shown to watchers.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import random as randomness
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from cluster.admission import Admission
from cluster.admission import admission as registered
from cluster.clock import Clock, SystemClock
from cluster.embedded import patches
from cluster.embedded.deletion import Deletion
from cluster.embedded.fields import selectable
from cluster.embedded.journal import Journal, Table
from cluster.embedded.memory import Memory, key_of
from cluster.embedded.pods import Pods
from cluster.embedded.tail import Tail, Wanted
from cluster.embedded.watch import StoreWatch
from cluster.embedded.writes import Writes, check_preconditions, metadata_of, private
from cluster.errors import AlreadyExists, ApiError, BadRequest, Expired, Forbidden, NotFound
from cluster.kinds import EVENT, NAMESPACE, POD, Kind
from cluster.objects import parse_time
from cluster.port import Binding, Eviction, Obj, Outcome, Page, PatchType, Propagation, StatusWrite, Victim
from cluster.said import said
from cluster.selectors import FieldSelector, Selector, parse_field_selector, parse_selector

_LASTING_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})

# The verb `list` hides the type inside the class.
Objects = list[Obj]
Outcomes = list[Outcome]

_A_STEP = 100
"""Objects created under one lock, which readers wait for."""

LogSource = Callable[[Obj, str, int | None, bool], Iterator[str]]
"""(pod, container, tail, follow) → lines."""


@dataclass(slots=True, eq=False)
class _Listener:
    kinds: frozenset[Kind]
    wake: Callable[[], None]


class EmbeddedCluster:
    """A cluster inside this process; see `cluster.port.Cluster` for its verbs.

    `table` keeps the objects beyond the process (None: memory only). `clock` gives the time of stamps, `random` the
    uids and generated names (give a seeded one for runs that must repeat). `history` is how many changes slow watchers
    may lag behind before they are brought up to the present by difference.
    """

    def __init__(
        self,
        *,
        table: Table | None = None,
        clock: Clock | None = None,
        admission: Admission | None = None,
        random: randomness.Random | None = None,
        history: int = 20_000,
        start: tuple[int, Sequence[tuple[Kind, Obj]]] = (0, ()),
    ) -> None:
        self.clock = clock or SystemClock()
        chance = random or randomness.SystemRandom()
        self._memory = Memory()
        self._journal = Journal(self._memory, table, history=history)
        self._deletion = Deletion(self._memory, self._journal, self.clock)
        self._pods = Pods(self._memory, self._journal, self._deletion, self.clock)
        rules = registered if admission is None else admission
        self._writes = Writes(self._memory, self._journal, self._deletion, self.clock, chance, rules, self)
        self._log_source: LogSource | None = None
        version, objects = start
        self._journal.start_at(version)
        for kind, obj in objects:
            self._memory.put(kind, obj)

    # --- reading ---

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object; a namespaced one is looked for in `default` when no namespace is given."""
        with self._journal.lock:
            return self._writes.found(kind, name, namespace)

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """Objects by namespace and name. Pages go on behind the last key, so no object is shown twice."""
        by_label, by_field = _selectors(kind, labels, fields)
        version, after = _read_token(token)
        if namespace:
            after = max(after or (namespace, ""), (namespace, ""))
        with self._journal.lock:
            if token and self._journal.has_expired(version):
                raise Expired(said("the continue token is too old: list again from the start"))
            version = version or self._journal.version
            found: Objects = []
            for obj in self._memory.ordered(kind, after):
                metadata = obj["metadata"]
                if namespace and metadata.get("namespace") != namespace:
                    break
                if by_label.matches(metadata.get("labels") or {}) and by_field.matches(obj):
                    if limit and len(found) == limit:
                        return Page(found, str(version), _write_token(version, key_of(found[-1])))
                    found.append(obj)
        return Page(found, str(version))

    def watch(
        self,
        kinds: Sequence[Kind],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        notify: Callable[[], None] | None = None,
    ) -> StoreWatch:
        """Watch kinds; the selectors hold for all of them."""
        by_label = _selectors(kinds[0], labels, "")[0] if kinds else Selector()
        by_field = FieldSelector()
        for kind in kinds:
            by_field = _selectors(kind, "", fields)[1]
        return StoreWatch(
            self._journal, self._memory, kinds, namespace=namespace, labels=by_label, fields=by_field, notify=notify
        )

    def tail(self, kind: Kind, version: int, *, namespace: str = "", labels: str = "", fields: str = "") -> Tail:
        """Changes of a kind behind a resourceVersion. Raises BadRequest for a selector, Expired for a version that is too old."""
        by_label, by_field = _selectors(kind, labels, fields)
        return Tail(self._journal, Wanted(kind, namespace, by_label, by_field), version)

    def on_change(self, kinds: Sequence[Kind], wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever objects of these kinds changed; what it returns ends that."""
        listener = _Listener(frozenset(kinds), wake)
        self._journal.listen(listener)
        return lambda: self._journal.leave(listener)

    # --- writing ---

    def create(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Create; the namespace is made when this is its first object."""
        new = private(obj)
        with self._journal.writing():
            return self._writes.create(kind, new, dry_run=dry_run)

    def create_many(self, kind: Kind, objects: Sequence[Obj], *, field_manager: str = "") -> Outcomes:
        """Create many, in few steps of the journal."""
        outcomes: Outcomes = []
        for start in range(0, len(objects), _A_STEP):
            outcomes += self._many(
                (*_place(obj), partial(self._create_one, kind, obj)) for obj in objects[start : start + _A_STEP]
            )
        return outcomes

    def create_together(self, objects: Sequence[tuple[Kind, Obj]]) -> Objects:
        """Create all of these or, when one is refused, none, in one step of the journal; what is there already stays as it is.

        The objects that were made. Raises what the first refused one was refused for.
        """
        made = []
        with self._journal.writing():
            for kind, obj in objects:
                with contextlib.suppress(AlreadyExists):
                    made.append(self._create_one(kind, obj))
        return made

    def patch_many(self, kind: Kind, patches: Sequence[tuple[Victim, Obj]], *, field_manager: str = "") -> Outcomes:
        """Merge patches into many objects, in one step of the journal."""
        return self._many((v.namespace, v.name, partial(self._patch_one, kind, v, body)) for v, body in patches)

    def delete_many(self, kind: Kind, victims: Sequence[Victim]) -> Outcomes:
        """Delete many, in one step of the journal."""
        return self._many((v.namespace, v.name, partial(self._delete_one, kind, v)) for v in victims)

    def _create_one(self, kind: Kind, obj: Obj) -> Obj:
        return self._writes.create(kind, private(obj), dry_run=False)

    def _patch_one(self, kind: Kind, victim: Victim, body: Obj) -> Obj:
        old = self._writes.found(kind, victim.name, victim.namespace)
        check_preconditions(kind, old, victim.uid, "")
        return self._writes.update(kind, old, private(patches.merge(old, private(body))), dry_run=False)

    def _delete_one(self, kind: Kind, victim: Victim) -> None:
        obj = self._writes.found(kind, victim.name, victim.namespace)
        check_preconditions(kind, obj, victim.uid, "")
        self._writes.admit("DELETE", kind, obj, obj)
        self._deletion.ask(kind, obj)

    def replace(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Replace a whole object."""
        new = private(obj)
        metadata = metadata_of(kind, new)
        with self._journal.writing():
            old = self._writes.found(kind, metadata.get("name", ""), metadata.get("namespace", ""))
            return self._writes.update(kind, old, new, dry_run=dry_run)

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
        """Patch an object; `apply` creates it when it is missing."""
        body = private(body, only_objects=patch_type != "json")
        with self._journal.writing():
            if patch_type == "apply":
                return self._writes.apply(kind, name, namespace, body, field_manager or "apply", dry_run=dry_run)
            old = self._writes.found(kind, name, namespace)
            if patch_type == "merge":
                return self._writes.update(kind, old, private(patches.merge(old, body)), dry_run=dry_run)
            if patch_type == "json":
                return self._writes.update(kind, old, private(patches.json_patch(old, body)), dry_run=dry_run)
        raise BadRequest(said("%(type)r is no patch type: merge, json or apply", type=patch_type))

    def patch_status(
        self, kind: Kind, name: str, namespace: str, status: Obj, *, resource_version: str = "", uid: str = ""
    ) -> Obj:
        """Merge into an object's status. No admission rule is asked, as for a status subresource."""
        status = private(status)
        with self._journal.writing():
            return self._writes.patch_status(kind, name, namespace, status, resource_version, uid)

    def patch_status_many(self, kind: Kind, writes: Sequence[StatusWrite]) -> Outcomes:
        """Many statuses in one step of the journal; one outcome each, in order. None of them raises."""
        return self._many(
            (
                w.namespace,
                w.name,
                partial(self._writes.patch_status, kind, w.name, w.namespace, private(w.status), w.resource_version, w.uid),
            )
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
        """Delete, with what belongs to it."""
        if propagation not in ("Background", "Foreground", "Orphan"):
            raise BadRequest(
                said("%(propagation)r is no propagation policy: Background, Foreground or Orphan", propagation=propagation)
            )
        if grace_seconds is not None and grace_seconds < 0:
            raise BadRequest(said("grace_seconds is 0 or more, not %(seconds)s", seconds=grace_seconds))
        with self._journal.writing():
            obj = self._writes.found(kind, name, namespace)
            check_preconditions(kind, obj, uid, resource_version)
            if kind == NAMESPACE and name in _LASTING_NAMESPACES:
                raise Forbidden(said("namespace %(name)r always stays", name=name))
            self._writes.admit("DELETE", kind, obj, obj)
            if not dry_run:
                self._deletion.ask(kind, obj, propagation, grace_seconds)

    # --- pods ---

    def bind(self, binding: Binding) -> None:
        """Bind one pod."""
        with self._journal.writing():
            self._pods.bind(binding)

    def bind_many(self, bindings: Sequence[Binding]) -> Outcomes:
        """Bind many pods in one step of the journal."""
        return self._many((binding.namespace, binding.name, partial(self._pods.bind, binding)) for binding in bindings)

    def remove_stopped(self, pods: Sequence[tuple[str, str, str]]) -> Outcomes:
        """The kubelet's word that pods, each (namespace, name, uid), have stopped: those that only waited for it go."""
        return self._many((namespace, name, partial(self._remove_stopped, namespace, name, uid)) for namespace, name, uid in pods)

    def _remove_stopped(self, namespace: str, name: str, uid: str) -> None:
        pod = self._writes.found(POD, name, namespace)
        check_preconditions(POD, pod, uid, "")
        self._deletion.ask(POD, pod, grace=0)

    def forget_events(self, before: float) -> int:
        """Delete the Events that were last seen before an instant, as an API server does after an hour; how many went."""
        with self._journal.writing():
            old = [event for event in self._memory.all(EVENT).values() if _last_seen(event) < before]
            for event in old:
                self._deletion.ask(EVENT, event)
        return len(old)

    def _many(self, writes: Iterable[tuple[str, str, Callable[[], object]]]) -> Outcomes:
        """Writes in one step of the journal, each (namespace, name, what to do); the refusal of one stops no other."""
        outcomes = []
        with self._journal.writing():
            for namespace, name, write in writes:
                try:
                    done = write()
                    outcomes.append(Outcome(namespace, name, None, done if isinstance(done, dict) else None))
                except ApiError as error:
                    outcomes.append(Outcome(namespace, name, error))
        return outcomes

    def evict(self, namespace: str, name: str, *, uid: str = "", reason: str = "", message: str = "") -> None:
        """Evict a pod, unless a disruption budget forbids it now."""
        with self._journal.writing():
            self._evict_one(Eviction(namespace, name, uid, reason, message))

    def evict_many(self, evictions: Sequence[Eviction]) -> Outcomes:
        """Evict many pods in one step of the journal."""
        return self._many((each.namespace, each.name, partial(self._evict_one, each)) for each in evictions)

    def _evict_one(self, eviction: Eviction) -> None:
        pod = self._writes.found(POD, eviction.name, eviction.namespace)
        check_preconditions(POD, pod, eviction.uid, "")
        self._pods.evict(pod, eviction.reason, eviction.message)

    def logs(
        self, namespace: str, name: str, container: str = "", *, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """Lines of a container's log, from whatever runs the pods; a pod that nothing runs has none."""
        pod = self.get(POD, name, namespace)
        spec = pod.get("spec") or {}
        names = [c.get("name", "") for c in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))]
        if container and container not in names:
            raise NotFound(
                said(
                    "pod %(namespace)s/%(name)s has no container %(container)r; it has %(names)s",
                    namespace=namespace,
                    name=name,
                    container=container,
                    names=", ".join(names),
                )
            )
        if self._log_source is None:
            return iter(())
        return self._log_source(pod, container or (names[0] if names else ""), tail, follow)

    def serve_logs(self, source: LogSource) -> None:
        """Take logs from here (the kubelet says this)."""
        self._log_source = source


def _selectors(kind: Kind, labels: str, fields: str) -> tuple[Selector, FieldSelector]:
    try:
        return parse_selector(labels), parse_field_selector(fields, selectable(kind))
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _last_seen(event: Obj) -> float:
    """When an Event was last seen; one whose stamps cannot be read counts from its creation."""
    for text in (event.get("lastTimestamp"), event.get("eventTime"), event["metadata"]["creationTimestamp"]):
        if isinstance(text, str):
            with contextlib.suppress(ValueError):
                return parse_time(text)
    return 0.0


def _write_token(version: int, key: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *key])).decode()


def _read_token(token: str) -> tuple[int, tuple[str, str] | None]:
    if not token:
        return 0, None
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError, binascii.Error):
        raise BadRequest(said("the continue token is not one that this cluster gave out")) from None


def _place(obj: Obj) -> tuple[str, str]:
    """Namespace and name, as far as an object that nobody has checked says them."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return "", ""
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
