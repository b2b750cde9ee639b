"""The embedded cluster: the port's verbs over objects in memory, written through to a table when there is one.

One lock guards the objects. A verb prepares what it can without it, takes one step under it (all or nothing, admission
rules included) and returns when the step is settled, that is committed to the table and shown to watchers.
"""

from __future__ import annotations

import base64
import binascii
import random as randomness
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson

from cluster.admission import Admission, Operation, Request
from cluster.admission import admission as registered
from cluster.clock import Clock, SystemClock
from cluster.embedded import patches
from cluster.embedded.deletion import Deletion
from cluster.embedded.fields import selectable
from cluster.embedded.journal import Journal, Table
from cluster.embedded.memory import Change, Memory, key_of
from cluster.embedded.metadata import SYSTEM_FIELDS, metadata_faults, user_metadata
from cluster.embedded.pods import Pods
from cluster.embedded.watch import StoreWatch
from cluster.errors import AlreadyExists, ApiError, BadRequest, Conflict, Expired, FieldError, Forbidden, Invalid, NotFound
from cluster.kinds import NAMESPACE, NODE, POD, Kind
from cluster.objects import now_stamp
from cluster.port import Binding, Obj, Outcome, Page, PatchType, Propagation
from cluster.selectors import FieldSelector, Selector, parse_field_selector, parse_selector

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED = 58
_INITIAL_STATUS = {POD: {"phase": "Pending"}, NAMESPACE: {"phase": "Active"}}

# The verb `list` hides the type inside the class.
Objects = list[Obj]
Outcomes = list[Outcome]

LogSource = Callable[[Obj, str, int | None, bool], Iterator[str]]
"""(pod, container, tail, follow) → lines."""


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """One of many status patches; `resource_version`, when given, must be the object's own."""

    namespace: str
    name: str
    status: Obj
    resource_version: str = ""


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
        self._admission = registered if admission is None else admission
        self._random = random or randomness.SystemRandom()
        self._memory = Memory()
        self._journal = Journal(self._memory, table, history=history)
        self._deletion = Deletion(self._memory, self._journal, self.clock)
        self._pods = Pods(self._memory, self._journal, self._deletion, self.clock)
        self._log_source: LogSource | None = None
        version, objects = start
        self._journal.start_at(version)
        for kind, obj in objects:
            self._memory.put(kind, obj)

    # --- reading ---

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object; a namespaced one is looked for in `default` when no namespace is given."""
        with self._journal.lock:
            return self._found(kind, name, namespace)

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """Objects by namespace and name. Pages go on behind the last key, so no object is shown twice."""
        by_label, by_field = _selectors(kind, labels, fields)
        version, after = _read_token(token)
        with self._journal.lock:
            if token and self._journal.has_expired(version):
                raise Expired("the continue token is too old: list again from the start")
            version = version or self._journal.version
            found: Objects = []
            for obj in self._memory.ordered(kind, after):
                metadata = obj["metadata"]
                if namespace and metadata.get("namespace") != namespace:
                    continue
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

    # --- writing ---

    def create(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Create; the namespace is made when this is its first object."""
        new = _private(obj)
        with self._journal.writing():
            return self._create(kind, new, dry_run=dry_run)

    def replace(self, kind: Kind, obj: Obj, *, field_manager: str = "", dry_run: bool = False) -> Obj:
        """Replace a whole object."""
        new = _private(obj)
        metadata = _metadata(kind, new)
        with self._journal.writing():
            old = self._found(kind, metadata.get("name", ""), metadata.get("namespace", ""))
            return self._update(kind, old, new, dry_run=dry_run)

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
        body = _private(body, only_objects=patch_type != "json")
        with self._journal.writing():
            if patch_type == "apply":
                return self._apply(kind, name, namespace, body, field_manager or "apply", dry_run=dry_run)
            old = self._found(kind, name, namespace)
            if patch_type == "merge":
                return self._update(kind, old, _private(patches.merge(old, body)), dry_run=dry_run)
            if patch_type == "json":
                return self._update(kind, old, _private(patches.json_patch(old, body)), dry_run=dry_run)
        raise BadRequest(f"{patch_type!r} is no patch type: merge, json or apply")

    def patch_status(
        self, kind: Kind, name: str, namespace: str, status: Obj, *, resource_version: str = "", uid: str = ""
    ) -> Obj:
        """Merge into an object's status. No admission rule is asked, as for a status subresource."""
        status = _private(status)
        with self._journal.writing():
            return self._patch_status(kind, name, namespace, status, resource_version, uid)

    def patch_status_many(self, kind: Kind, writes: Sequence[StatusWrite]) -> Outcomes:
        """Many statuses in one step of the journal; one outcome each, in order. None of them raises."""
        outcomes = []
        with self._journal.writing():
            for write in writes:
                try:
                    self._patch_status(kind, write.name, write.namespace, _private(write.status), write.resource_version, "")
                    outcomes.append(Outcome(write.namespace, write.name))
                except ApiError as error:
                    outcomes.append(Outcome(write.namespace, write.name, error))
        return outcomes

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
            raise BadRequest(f"{propagation!r} is no propagation policy: Background, Foreground or Orphan")
        if grace_seconds is not None and grace_seconds < 0:
            raise BadRequest(f"grace_seconds is 0 or more, not {grace_seconds}")
        with self._journal.writing():
            obj = self._found(kind, name, namespace)
            _check_preconditions(kind, obj, uid, resource_version)
            self._admit("DELETE", kind, obj, obj)
            if not dry_run:
                self._deletion.ask(kind, obj, propagation, grace_seconds)

    # --- pods ---

    def bind(self, binding: Binding) -> None:
        """Bind one pod."""
        with self._journal.writing():
            self._pods.bind(binding)

    def bind_many(self, bindings: Sequence[Binding]) -> Outcomes:
        """Bind many pods in one step of the journal."""
        outcomes = []
        with self._journal.writing():
            for binding in bindings:
                try:
                    self._pods.bind(binding)
                    outcomes.append(Outcome(binding.namespace, binding.name))
                except ApiError as error:
                    outcomes.append(Outcome(binding.namespace, binding.name, error))
        return outcomes

    def remove_stopped(self, pods: Sequence[tuple[str, str, str]]) -> Outcomes:
        """The kubelet's word that pods, each (namespace, name, uid), have stopped: those that only waited for it go."""
        outcomes = []
        with self._journal.writing():
            for namespace, name, uid in pods:
                try:
                    pod = self._found(POD, name, namespace)
                    _check_preconditions(POD, pod, uid, "")
                    self._deletion.ask(POD, pod, grace=0)
                    outcomes.append(Outcome(namespace, name))
                except ApiError as error:
                    outcomes.append(Outcome(namespace, name, error))
        return outcomes

    def evict(self, namespace: str, name: str, *, uid: str = "", reason: str = "", message: str = "") -> None:
        """Evict a pod, unless a disruption budget forbids it now."""
        with self._journal.writing():
            pod = self._found(POD, name, namespace)
            _check_preconditions(POD, pod, uid, "")
            self._pods.evict(pod, reason, message)

    def logs(
        self, namespace: str, name: str, container: str = "", *, tail: int | None = None, follow: bool = False
    ) -> Iterator[str]:
        """Lines of a container's log, from whatever runs the pods; a pod that nothing runs has none."""
        pod = self.get(POD, name, namespace)
        names = [c.get("name", "") for c in (pod.get("spec") or {}).get("containers") or ()]
        if container and container not in names:
            raise NotFound(f"pod {namespace}/{name} has no container {container!r}; it has {', '.join(names)}")
        if self._log_source is None:
            return iter(())
        return self._log_source(pod, container or (names[0] if names else ""), tail, follow)

    def serve_logs(self, source: LogSource) -> None:
        """Take logs from here (the kubelet says this)."""
        self._log_source = source

    # --- inside: the lock is held ---

    def _found(self, kind: Kind, name: str, namespace: str) -> Obj:
        key = ((namespace or "default") if kind.namespaced else "", name)
        obj = self._memory.find(kind, key)
        if obj is None:
            where = f" in namespace {key[0]!r}" if kind.namespaced else ""
            raise NotFound(f"there is no {kind.kind} {name!r}{where}")
        return obj

    def _create(self, kind: Kind, new: Obj, *, dry_run: bool) -> Obj:
        metadata = _metadata(kind, new)
        if metadata.get("resourceVersion"):
            raise BadRequest("resourceVersion must not be set on an object to be created")
        metadata = new["metadata"] = user_metadata(metadata)
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
        self._generate_name(kind, metadata)
        if kind.has_status and kind != NODE:
            new.pop("status", None)
        faults = metadata_faults(kind, new)
        if faults:
            _refuse(kind, new, faults)
        if self._memory.find(kind, key_of(new)) is not None:
            raise AlreadyExists(f"{kind.kind} {metadata['name']!r} already exists")
        self._check_namespace(kind, metadata)
        new = self._admit("CREATE", kind, new, None)
        metadata = new["metadata"]
        metadata["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = now_stamp(self.clock)
        metadata["generation"] = 1
        if kind in _INITIAL_STATUS:
            new["status"] = dict(_INITIAL_STATUS[kind])
        if dry_run:
            return new
        self._ensure_namespace(kind, metadata)
        metadata["resourceVersion"] = self._journal.next_version()
        self._journal.add(Change("ADDED", kind, new, None))
        self._deletion.collect_if_orphaned(kind, new)
        return new

    def _generate_name(self, kind: Kind, metadata: dict[str, Any]) -> None:
        prefix = metadata.get("generateName")
        if metadata.get("name") or not isinstance(prefix, str):
            return
        for _ in range(8):
            suffix = "".join(self._random.choice(_SUFFIX_LETTERS) for _ in range(5))
            metadata["name"] = prefix[:_LONGEST_GENERATED] + suffix
            if self._memory.find(kind, (metadata.get("namespace", ""), metadata["name"])) is None:
                return

    def _check_namespace(self, kind: Kind, metadata: dict[str, Any]) -> None:
        if kind.namespaced:
            namespace = self._memory.find(NAMESPACE, ("", metadata["namespace"]))
            if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
                raise Forbidden(f"namespace {metadata['namespace']!r} is being deleted")

    def _ensure_namespace(self, kind: Kind, metadata: dict[str, Any]) -> None:
        if kind.namespaced and self._memory.find(NAMESPACE, ("", metadata["namespace"])) is None:
            named = {"metadata": {"name": metadata["namespace"]}}
            self._create(NAMESPACE, named, dry_run=False)

    def _update(self, kind: Kind, old: Obj, new: Obj, *, dry_run: bool) -> Obj:
        metadata = _metadata(kind, new)
        before = old["metadata"]
        if metadata.get("name") != before["name"] or metadata.get("namespace", before.get("namespace")) != before.get(
            "namespace"
        ):
            raise BadRequest("an object's name and namespace cannot be changed")
        _check_preconditions(kind, old, metadata.get("uid") or "", metadata.get("resourceVersion") or "")
        kept = {field: before[field] for field in SYSTEM_FIELDS if field in before}
        new["metadata"] = {**user_metadata(metadata), **kept}
        if kind.namespaced:
            new["metadata"]["namespace"] = before["namespace"]
        if kind.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        faults = metadata_faults(kind, new)
        if before.get("deletionTimestamp") and not faults:
            faults = _new_finalizers(before, new["metadata"])
        if faults:
            _refuse(kind, new, faults)
        if new == old:
            return old
        new = self._admit("UPDATE", kind, new, old)
        if _without_bookkeeping(new) != _without_bookkeeping(old):
            new["metadata"]["generation"] = before.get("generation", 1) + 1
        if dry_run:
            return new
        return self._keep(kind, old, new)

    def _keep(self, kind: Kind, old: Obj, new: Obj) -> Obj:
        new["metadata"]["resourceVersion"] = self._journal.next_version()
        self._journal.add(Change("MODIFIED", kind, new, old))
        self._deletion.settle(kind, new)
        return new

    def _apply(self, kind: Kind, name: str, namespace: str, body: Obj, manager: str, *, dry_run: bool) -> Obj:
        metadata = body["metadata"] = {**(body.get("metadata") or {}), "name": name}
        if kind.namespaced:
            metadata["namespace"] = namespace or metadata.get("namespace") or "default"
        old = self._memory.find(kind, (metadata.get("namespace", ""), name))
        new = _private(patches.apply(old, body, manager))
        if old is None:
            return self._create(kind, new, dry_run=dry_run)
        return self._update(kind, old, new, dry_run=dry_run)

    def _patch_status(self, kind: Kind, name: str, namespace: str, status: Obj, resource_version: str, uid: str) -> Obj:
        old = self._found(kind, name, namespace)
        _check_preconditions(kind, old, uid, resource_version)
        before = old.get("status")
        merged = patches.merge(before, status)
        if merged == before:
            return old
        metadata = {**old["metadata"], "resourceVersion": self._journal.next_version()}
        new = {**old, "metadata": metadata, "status": merged}
        self._journal.add(Change("MODIFIED", kind, new, old))
        return new

    def _admit(self, operation: Operation, kind: Kind, new: Obj, old: Obj | None) -> Obj:
        return self._admission.admit(Request(operation, kind, new, old, self))


def _private(obj: Any, *, only_objects: bool = True) -> Any:
    """A copy that nobody else holds; what JSON cannot say is refused."""
    if only_objects and not isinstance(obj, dict):
        raise BadRequest(f"an object is a mapping, not {type(obj).__name__}")
    try:
        return orjson.loads(orjson.dumps(obj))
    except (TypeError, ValueError) as error:
        raise BadRequest(f"the object cannot be written as JSON: {error}") from None


def _metadata(kind: Kind, obj: Obj) -> dict[str, Any]:
    """The object's metadata; its apiVersion and kind are checked, or filled in where they are missing."""
    if obj.setdefault("apiVersion", kind.api_version) != kind.api_version or obj.setdefault("kind", kind.kind) != kind.kind:
        raise BadRequest(f"expected a {kind.kind} of {kind.api_version}, not {obj['kind']!r} of {obj['apiVersion']!r}")
    metadata = obj.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        _refuse(kind, {}, [FieldError("/metadata", "metadata is a mapping")])
    if not kind.namespaced and metadata.pop("namespace", ""):
        _refuse(kind, obj, [FieldError("/metadata/namespace", f"a {kind.kind} is cluster-wide: it has no namespace")])
    return metadata


def _refuse(kind: Kind, obj: Obj, faults: Sequence[FieldError]) -> NoReturn:
    name = (obj.get("metadata") or {}).get("name", "")
    text = "; ".join(f"{fault.pointer}: {fault.message}" for fault in faults)
    raise Invalid(f"{kind.kind} {name!r} is invalid: {text}", faults)


def _check_preconditions(kind: Kind, obj: Obj, uid: str, resource_version: str) -> None:
    metadata = obj["metadata"]
    if uid and uid != metadata["uid"]:
        raise Conflict(
            f"{kind.kind} {metadata['name']!r} has uid {metadata['uid']}, not {uid}: it is another object of that name"
        )
    if resource_version and str(resource_version) != metadata["resourceVersion"]:
        raise Conflict(f"{kind.kind} {metadata['name']!r} was changed since it was read: read it again and repeat the change")


def _new_finalizers(before: Obj, after: Obj) -> list[FieldError]:
    added = set(after.get("finalizers") or ()) - set(before.get("finalizers") or ())
    return [FieldError("/metadata/finalizers", f"{name!r} cannot be added while the object is being deleted") for name in added]


def _without_bookkeeping(obj: Obj) -> Obj:
    return {field: value for field, value in obj.items() if field not in ("metadata", "status")}


def _selectors(kind: Kind, labels: str, fields: str) -> tuple[Selector, FieldSelector]:
    try:
        return parse_selector(labels), parse_field_selector(fields, selectable(kind))
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _write_token(version: int, key: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *key])).decode()


def _read_token(token: str) -> tuple[int, tuple[str, str] | None]:
    if not token:
        return 0, None
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError, binascii.Error):
        raise BadRequest("the continue token is not one that this cluster gave out") from None
