"""Changes of one kind from a resourceVersion on, as a Kubernetes watch tells them."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.embedded.journal import Journal
from cluster.embedded.memory import Change, key_of
from cluster.errors import Expired
from cluster.kinds import Kind
from cluster.port import Obj
from cluster.said import said
from cluster.selectors import FieldSelector, Selector

_STRIDE = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which objects a watch is about."""

    kind: Kind
    namespace: str
    labels: Selector
    fields: FieldSelector

    def matches(self, obj: Obj | None) -> bool:
        """Whether an object is one of them; None is none."""
        if obj is None or (self.namespace and key_of(obj)[0] != self.namespace):
            return False
        return self.labels.matches(obj["metadata"].get("labels") or {}) and self.fields.matches(obj)


class Tail:
    """Reads along the journal. An object that begins to match is ADDED, one that ceases to is DELETED."""

    def __init__(self, journal: Journal, wanted: Wanted, version: int) -> None:
        """Begin behind `version`. Raises Expired when changes since then are partly forgotten."""
        self._journal, self._wanted = journal, wanted
        found = journal.position_after(version)
        if found is None:
            raise Expired(said("too old resource version: %(version)s", version=version))
        self._position = found
        self.version = version

    def read(self) -> list[tuple[str, Obj]]:
        """Events until now, each (type, object); an empty list when nothing is left. Raises Expired for one who is too slow."""
        found = self._journal.since(self._position, _STRIDE)
        if found is None:
            raise Expired(said("the watch was too slow and has missed changes: list again"))
        changes, self._position = found
        if changes:
            self.version = changes[-1].version
        return [event for change in changes if (event := self._event(change)) is not None]

    @property
    def is_behind(self) -> bool:
        """Whether there is something to read."""
        found = self._journal.since(self._position, 1)
        return found is None or bool(found[0])

    def _event(self, change: Change) -> tuple[str, Obj] | None:
        if change.kind != self._wanted.kind:
            return None
        was = self._wanted.matches(change.old)
        if change.type == "DELETED" or not self._wanted.matches(change.obj):
            return ("DELETED", change.obj) if was else None
        return ("MODIFIED" if was else "ADDED", change.obj)
