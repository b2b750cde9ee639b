"""How objects go: finalizers, grace of pods, and what becomes of the things they own.

Everything here happens inside one step of the journal, with its lock held: an object and those that go with it are
deleted together or not at all.
"""

from __future__ import annotations

from typing import Any

from cluster.clock import Clock
from cluster.embedded.journal import Journal
from cluster.embedded.memory import Change, Memory, key_of
from cluster.kinds import NAMESPACE, POD, Kind, by_api
from cluster.objects import is_deleting, stamp
from cluster.port import Obj, Propagation

FOREGROUND = "foregroundDeletion"
DEFAULT_GRACE = 30
_ENDED = frozenset({"Succeeded", "Failed"})


class Deletion:
    """Deletes objects of one memory through its journal."""

    def __init__(self, memory: Memory, journal: Journal, clock: Clock) -> None:
        self._memory, self._journal, self._clock = memory, journal, clock

    def ask(self, kind: Kind, obj: Obj, propagation: Propagation = "Background", grace: int | None = None) -> None:
        """What the verb `delete` does: the object goes at once, or is marked and goes when nothing holds it any more."""
        uid = obj["metadata"]["uid"]
        finalizers = list(obj["metadata"].get("finalizers") or ())
        if propagation == "Orphan":
            self._orphan(uid)
        if propagation == "Foreground" and FOREGROUND not in finalizers and self._memory.dependents(uid):
            finalizers.append(FOREGROUND)
        seconds = self._grace(kind, obj, grace)
        if not finalizers and not seconds and kind != NAMESPACE:
            self.remove(kind, obj)
            return
        self._mark(kind, obj, finalizers, seconds)
        if kind == NAMESPACE:
            self._ask_all(self._memory.inside(obj["metadata"]["name"]), "Background")
        if FOREGROUND in finalizers:
            self._ask_all(self._memory.dependents(uid), "Foreground")
        self.settle(kind, self._memory.find(kind, key_of(obj)))

    def _ask_all(self, found: list[tuple[Kind, Obj]], propagation: Propagation) -> None:
        """Delete those of them that are still there when their turn comes and are not being deleted."""
        for _, obj in found:
            present = self._memory.by_uid(obj["metadata"]["uid"])
            if present and not is_deleting(present[1]):
                self.ask(*present, propagation)

    def settle(self, kind: Kind, obj: Obj | None) -> None:
        """Let an object go that is marked and that nothing holds any more; for others, nothing happens."""
        if obj is None or not obj["metadata"].get("deletionTimestamp"):
            return
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FOREGROUND in finalizers and not self._blocking(metadata["uid"]):
            finalizers = [name for name in finalizers if name != FOREGROUND]
            obj = self._keep(kind, obj, finalizers=finalizers)
        if finalizers or metadata.get("deletionGracePeriodSeconds"):
            return
        if kind == NAMESPACE and not self._memory.is_empty(metadata["name"]):
            return
        self.remove(kind, obj)

    def remove(self, kind: Kind, obj: Obj) -> None:
        """Take an object out now, and let go what it owned or what waited for it."""
        metadata = {**obj["metadata"], "resourceVersion": self._journal.next_version()}
        old = self._memory.find(kind, key_of(obj))
        self._journal.add(Change("DELETED", kind, {**obj, "metadata": metadata}, old))
        self._collect(metadata["uid"])
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("blockOwnerDeletion") and (found := self._memory.by_uid(owner["uid"])):
                self.settle(*found)
        if namespace := metadata.get("namespace"):
            self.settle(NAMESPACE, self._memory.find(NAMESPACE, ("", namespace)))

    def collect_if_orphaned(self, kind: Kind, obj: Obj) -> None:
        """An object made for owners that are all gone already goes too, as the garbage collector would have it.

        Owners of kinds that this cluster does not know are taken to be there.
        """
        owners = obj["metadata"].get("ownerReferences") or ()
        if owners and not any(self._is_there(owner) for owner in owners):
            self.ask(kind, obj)

    def _is_there(self, owner: Obj) -> bool:
        return by_api(owner["apiVersion"], owner["kind"]) is None or self._memory.by_uid(owner["uid"]) is not None

    def _collect(self, uid: str) -> None:
        """What belonged to a removed object alone is deleted; what has other owners loses the reference."""
        alone = []
        for kind, obj in self._memory.dependents(uid):
            others = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid]
            if any(self._is_there(owner) for owner in others):
                self._keep(kind, obj, ownerReferences=others)
            else:
                alone.append((kind, obj))
        self._ask_all(alone, "Background")

    def _orphan(self, uid: str) -> None:
        for kind, dependent in self._memory.dependents(uid):
            others = [owner for owner in dependent["metadata"]["ownerReferences"] if owner["uid"] != uid]
            self._keep(kind, dependent, ownerReferences=others)

    def _blocking(self, uid: str) -> bool:
        def blocks(obj: Obj) -> bool:
            return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in obj["metadata"]["ownerReferences"])

        return self._memory.any_dependent(uid, blocks)

    def _grace(self, kind: Kind, obj: Obj, asked: int | None) -> int:
        """Seconds that a pod has; one without a node, or one that has ended, has none."""
        if kind != POD or not (obj.get("spec") or {}).get("nodeName") or (obj.get("status") or {}).get("phase") in _ENDED:
            return 0
        if asked is None:
            asked = int((obj.get("spec") or {}).get("terminationGracePeriodSeconds") or DEFAULT_GRACE)
        before = obj["metadata"].get("deletionGracePeriodSeconds")
        return max(0, asked if before is None else min(asked, before))

    def _mark(self, kind: Kind, obj: Obj, finalizers: list[str], grace: int) -> None:
        """Mark an object as being deleted; a second time only shortens the grace of a pod or adds a finalizer."""
        metadata = obj["metadata"]
        if not is_deleting(obj):
            until, generation = stamp(self._clock.now() + grace), metadata.get("generation", 1) + 1
            status = {**(obj.get("status") or {}), "phase": "Terminating"} if kind == NAMESPACE else None
            self._keep(
                kind,
                {**obj, "status": status} if status else obj,
                finalizers=finalizers,
                deletionTimestamp=until,
                deletionGracePeriodSeconds=grace,
                generation=generation,
            )
        elif metadata.get("deletionGracePeriodSeconds") != grace or finalizers != (metadata.get("finalizers") or []):
            self._keep(kind, obj, finalizers=finalizers, deletionGracePeriodSeconds=grace)

    def _keep(self, kind: Kind, obj: Obj, **changes: Any) -> Obj:
        """Replace an object by one with other metadata; an empty list is left out."""
        metadata = {**obj["metadata"], **changes, "resourceVersion": self._journal.next_version()}
        new = {**obj, "metadata": {field: value for field, value in metadata.items() if value != []}}
        self._journal.add(Change("MODIFIED", kind, new, self._memory.find(kind, key_of(obj))))
        return new
