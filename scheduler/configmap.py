"""The configuration in a ConfigMap: which one, and what a watch says of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cluster import objects
from cluster.kinds import CONFIG_MAP
from cluster.port import Obj, WatchEvent

KEY = "volcano-scheduler.conf"
VOLCANO = "volcano-system/volcano-scheduler-configmap"
"""Where Volcano's chart keeps it, below that key."""

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_WRITTEN = re.compile(rf"(?:({_LABEL})/)?({_LABEL}(?:\.{_LABEL})*)(?::([-._a-zA-Z0-9]{{1,253}}))?")


@dataclass(frozen=True, slots=True)
class MapKey:
    """A key of a ConfigMap."""

    namespace: str
    name: str
    key: str = KEY

    @classmethod
    def parse(cls, text: str, namespace: str = "default") -> MapKey:
        """Read `[NAMESPACE/]NAME[:KEY]`; `namespace` is the usual one. Raises ValueError."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no [NAMESPACE/]NAME[:KEY] of a ConfigMap, such as {VOLCANO}:{KEY}")
        return cls(found[1] or namespace, found[2], found[3] or KEY)

    @property
    def where(self) -> str:
        """The ConfigMap itself, as `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        return f"{self.where}:{self.key}"


@dataclass(frozen=True, slots=True)
class Said:
    """What a ConfigMap says: `text` is None when it lacks the key, or is gone."""

    revision: str
    text: str | None = None
    gone: bool = False


class Listener:
    """What the watch of a cluster says of one ConfigMap: `said` is None until there is one."""

    def __init__(self, place: MapKey) -> None:
        self.place = place
        self.said: Said | None = None
        self.is_settled = False
        """Whether it is known by now if there is one."""
        self._seen = False

    def begin(self) -> None:
        """Another watch begins: it lists what there is."""
        self._seen = False

    def take(self, events: Iterable[WatchEvent]) -> bool:
        """Take events in; whether one was about the ConfigMap."""
        before = self.said, self.is_settled
        for event in events:
            if event.type == "SYNCED":
                self.is_settled = True
                if not self._seen and self.said is not None:
                    self.said = Said("", gone=True)
            elif event.kind == CONFIG_MAP and self._is_it(event.object):
                self._seen = True
                self.said = Said("", gone=True) if event.type == "DELETED" else said(event.object, self.place.key)
        return before != (self.said, self.is_settled)

    def _is_it(self, obj: Obj) -> bool:
        return objects.name(obj) == self.place.name and objects.namespace(obj) == self.place.namespace


def said(obj: Obj, key: str) -> Said:
    """What a ConfigMap says at a key."""
    data = obj.get("data")
    text = data.get(key) if isinstance(data, dict) else None
    return Said(str(obj["metadata"].get("resourceVersion") or ""), text if isinstance(text, str) else None)
