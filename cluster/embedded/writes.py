"""Creating and changing one object: what the API server does between a request and its storage.

Everything here happens inside one step of the journal, with its lock held.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import orjson

from cluster.admission import Admission, Operation, Request
from cluster.clock import Clock
from cluster.embedded import patches
from cluster.embedded.deletion import Deletion
from cluster.embedded.journal import Journal
from cluster.embedded.memory import Change, Memory, key_of
from cluster.embedded.metadata import SYSTEM_FIELDS, metadata_faults, user_metadata
from cluster.embedded.secrets import fold_texts
from cluster.errors import AlreadyExists, BadRequest, Conflict, FieldError, Forbidden, Invalid, NotFound
from cluster.kinds import NAMESPACE, NODE, POD, Kind
from cluster.objects import is_deleting, now_stamp
from cluster.port import Obj, Reader
from cluster.said import said

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED = 58
_INITIAL_STATUS = {POD: {"phase": "Pending"}, NAMESPACE: {"phase": "Active"}}


class Writes:
    """Writes into one memory through its journal; `reader` is what admission rules may look at."""

    def __init__(
        self,
        memory: Memory,
        journal: Journal,
        deletion: Deletion,
        clock: Clock,
        chance: random.Random,
        admission: Admission,
        reader: Reader,
    ) -> None:
        self._memory, self._journal, self._deletion = memory, journal, deletion
        self._clock, self._chance, self._admission, self._reader = clock, chance, admission, reader

    def found(self, kind: Kind, name: str, namespace: str) -> Obj:
        """The object; a namespaced one is looked for in `default` when no namespace is given. Raises NotFound."""
        key = ((namespace or "default") if kind.namespaced else "", name)
        obj = self._memory.find(kind, key)
        if obj is None:
            if kind.namespaced:
                told = said(
                    "there is no %(kind)s %(name)r in namespace %(namespace)r", kind=kind.kind, name=name, namespace=key[0]
                )
                raise NotFound(told)
            raise NotFound(said("there is no %(kind)s %(name)r", kind=kind.kind, name=name))
        return obj

    def create(self, kind: Kind, new: Obj, *, dry_run: bool) -> Obj:
        """Keep a new object, after defaults and admission, and make its namespace when that is missing."""
        metadata = metadata_of(kind, new)
        if metadata.get("resourceVersion"):
            raise BadRequest(said("resourceVersion must not be set on an object to be created"))
        metadata = new["metadata"] = user_metadata(metadata)
        fold_texts(kind, new)
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
        self._generate_name(kind, metadata)
        if kind.has_status and kind != NODE:  # a kubelet registers its node with its status
            new.pop("status", None)
        new = self.admit("CREATE", kind, new, None)
        self._check_place(kind, new)
        metadata = new["metadata"]
        metadata["uid"] = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        metadata["creationTimestamp"] = now_stamp(self._clock)
        metadata["generation"] = 1
        if kind in _INITIAL_STATUS:
            new["status"] = dict(_INITIAL_STATUS[kind])
        if dry_run:
            return new
        if kind.namespaced and self._memory.find(NAMESPACE, ("", metadata["namespace"])) is None:
            self.create(NAMESPACE, {"metadata": {"name": metadata["namespace"]}}, dry_run=False)
        metadata["resourceVersion"] = self._journal.next_version()
        self._journal.add(Change("ADDED", kind, new, None))
        self._deletion.collect_if_orphaned(kind, new)
        return new

    def update(self, kind: Kind, old: Obj, new: Obj, *, dry_run: bool) -> Obj:
        """Put `new` in the place of `old`, what only the system may set kept; the same object again changes nothing."""
        metadata, before = metadata_of(kind, new), old["metadata"]
        if key_of({"metadata": {"namespace": before.get("namespace", ""), **metadata}}) != key_of(old):
            raise BadRequest(said("an object's name and namespace cannot be changed"))
        check_preconditions(kind, old, metadata.get("uid") or "", metadata.get("resourceVersion") or "")
        kept = {field: before[field] for field in SYSTEM_FIELDS if field in before}
        new["metadata"] = {**user_metadata(metadata), **kept}
        if kind.namespaced:
            new["metadata"]["namespace"] = before["namespace"]
        if kind.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        fold_texts(kind, new)
        if new == old:
            return old
        new = self.admit("UPDATE", kind, new, old)
        if _content(new) != _content(old):
            new["metadata"]["generation"] = before.get("generation", 1) + 1
        if dry_run:
            return new
        new["metadata"]["resourceVersion"] = self._journal.next_version()
        self._journal.add(Change("MODIFIED", kind, new, old))
        self._deletion.settle(kind, new)
        return new

    def apply(self, kind: Kind, name: str, namespace: str, body: Obj, manager: str, *, dry_run: bool) -> Obj:
        """Apply a manager's fields; the object is created when it is missing."""
        metadata = metadata_of(kind, body)
        told = metadata.setdefault("name", name)
        if kind.namespaced:
            namespace = namespace or metadata.get("namespace") or "default"
            told = f"{metadata.setdefault('namespace', namespace)}/{told}"
            name = f"{namespace}/{name}"
        if told != name:
            raise BadRequest(said("the object to apply names itself %(told)r, and was sent for %(name)r", told=told, name=name))
        fold_texts(kind, body)
        old = self._memory.find(kind, key_of(body))
        new = private(patches.apply(old, body, manager))
        return self.create(kind, new, dry_run=dry_run) if old is None else self.update(kind, old, new, dry_run=dry_run)

    def patch_status(self, kind: Kind, name: str, namespace: str, status: Obj, resource_version: str = "", uid: str = "") -> Obj:
        """Merge into a status; no admission, and no new version when nothing changes."""
        old = self.found(kind, name, namespace)
        check_preconditions(kind, old, uid, resource_version)
        before = old.get("status")
        merged = patches.merge(before, status)
        if merged == before:
            return old
        metadata = {**old["metadata"], "resourceVersion": self._journal.next_version()}
        new = {**old, "metadata": metadata, "status": merged}
        self._journal.add(Change("MODIFIED", kind, new, old))
        return new

    def admit(self, operation: Operation, kind: Kind, new: Obj, old: Obj | None) -> Obj:
        """The object as the rules let it in. Raises Invalid with the faults of the metadata and of all rules together."""
        faults = [] if operation == "DELETE" else metadata_faults(kind, new)
        if old is not None and operation == "UPDATE" and is_deleting(old):
            faults += _new_finalizers(old["metadata"], new["metadata"])
        try:
            admitted = self._admission.admit(Request(operation, kind, new, old, self._reader))
        except Invalid as error:
            told = {fault.pointer for fault in faults}
            refuse(kind, new, [*faults, *(fault for fault in error.fields if fault.pointer not in told)])
        if faults:
            refuse(kind, new, faults)
        return admitted

    def _check_place(self, kind: Kind, new: Obj) -> None:
        """Nothing may be there under that name, and the namespace must not be going away."""
        metadata = new["metadata"]
        if self._memory.find(kind, key_of(new)) is not None:
            raise AlreadyExists(said("%(kind)s %(name)r already exists", kind=kind.kind, name=metadata["name"]))
        namespace = self._memory.find(NAMESPACE, ("", metadata["namespace"])) if kind.namespaced else None
        if namespace is not None and is_deleting(namespace):
            raise Forbidden(said("namespace %(namespace)r is being deleted", namespace=metadata["namespace"]))

    def _generate_name(self, kind: Kind, metadata: dict[str, Any]) -> None:
        prefix = metadata.get("generateName")
        if metadata.get("name") or not isinstance(prefix, str):
            return
        for _ in range(8):
            suffix = "".join(self._chance.choice(_SUFFIX_LETTERS) for _ in range(5))
            metadata["name"] = prefix[:_LONGEST_GENERATED] + suffix
            if self._memory.find(kind, (metadata.get("namespace", ""), metadata["name"])) is None:
                return


def private(obj: Any, *, only_objects: bool = True) -> Any:
    """A copy that nobody else holds; what JSON cannot say is refused. Raises BadRequest."""
    if only_objects and not isinstance(obj, dict):
        raise BadRequest(said("an object is a mapping, not %(type)s", type=type(obj).__name__))
    try:
        return orjson.loads(orjson.dumps(obj))
    except (TypeError, ValueError) as error:
        raise BadRequest(said("the object cannot be written as JSON: %(error)s", error=error)) from None


def metadata_of(kind: Kind, obj: Obj) -> dict[str, Any]:
    """The object's metadata; its apiVersion and kind are checked, or filled in where they are missing.

    Raises BadRequest for an object of another kind, Invalid for metadata that no rule could even look at.
    """
    if obj.setdefault("apiVersion", kind.api_version) != kind.api_version or obj.setdefault("kind", kind.kind) != kind.kind:
        raise BadRequest(
            said(
                "expected a %(kind)s of %(api_version)s, not %(given)r of %(version)r",
                kind=kind.kind,
                api_version=kind.api_version,
                given=obj["kind"],
                version=obj["apiVersion"],
            )
        )
    metadata = obj.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        refuse(kind, {}, [FieldError("/metadata", said("metadata is a mapping"))])
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if metadata.get(field) is None:
            metadata.pop(field, None)
        elif not isinstance(metadata[field], str):
            refuse(kind, {}, [FieldError(f"/metadata/{field}", said("must be text: put it in quotes"))])
    if not kind.namespaced and metadata.pop("namespace", ""):
        refuse(
            kind,
            obj,
            [FieldError("/metadata/namespace", said("a %(kind)s is cluster-wide: it has no namespace", kind=kind.kind))],
        )
    return cast("dict[str, Any]", metadata)


def refuse(kind: Kind, obj: Obj, faults: Sequence[FieldError]) -> NoReturn:
    """Raise Invalid with all faults."""
    raise Invalid.of(kind.kind, (obj.get("metadata") or {}).get("name", ""), faults)


def check_preconditions(kind: Kind, obj: Obj, uid: str, resource_version: str) -> None:
    """Raises Conflict when the object is not the one, or not in the state, that the writer saw."""
    metadata = obj["metadata"]
    if uid and uid != metadata["uid"]:
        raise Conflict(
            said(
                "%(kind)s %(name)r is another object of that name now: its uid is %(uid)s",
                kind=kind.kind,
                name=metadata["name"],
                uid=metadata["uid"],
            )
        )
    if resource_version and str(resource_version) != metadata["resourceVersion"]:
        raise Conflict(
            said(
                "%(kind)s %(name)r was changed since it was read: read it again and repeat the change",
                kind=kind.kind,
                name=metadata["name"],
            )
        )


def _new_finalizers(before: Obj, after: Obj) -> list[FieldError]:
    added = set(after.get("finalizers") or ()) - set(before.get("finalizers") or ())
    return [
        FieldError("/metadata/finalizers", said("%(name)r cannot be added while the object is being deleted", name=name))
        for name in added
    ]


def _content(obj: Obj) -> Obj:
    """What counts for the generation."""
    return {field: value for field, value in obj.items() if field not in ("metadata", "status")}
