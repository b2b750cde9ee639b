"""Who selects pods: Services, and the ReplicaSets and StatefulSets that own them. Kubernetes spreads such pods by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cluster import objects
from cluster.kinds import REPLICA_SET, SERVICE, STATEFUL_SET, Kind
from cluster.port import Obj

__all__ = ["DEFAULTS", "KINDS", "Services"]

KINDS = (SERVICE, REPLICA_SET, STATEFUL_SET)

DEFAULTS = (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
"""Topology key and greatest skew of the constraints (ScheduleAnyway) of pods that name none."""


class Services:
    """Selectors by namespace. `version` moves with each."""

    def __init__(self) -> None:
        self._found: dict[Kind, dict[str, dict[str, Obj]]] = {kind: {} for kind in KINDS}
        self.version = 0

    def apply(self, kind: Kind, obj: Obj, gone: bool) -> None:
        """Take one object in."""
        mine = self._found[kind].setdefault(objects.namespace(obj), {})
        mine.pop(objects.name(obj), None)
        self.version += 1
        if not gone:
            mine[objects.name(obj)] = obj

    def __bool__(self) -> bool:
        return any(mine for found in self._found.values() for mine in found.values())

    def keys(self) -> Iterator[str]:
        """The label keys that any selector asks about."""
        for found in self._found.values():
            for mine in found.values():
                for obj in mine.values():
                    selector = (obj.get("spec") or {}).get("selector") or {}
                    if obj["kind"] == SERVICE.kind:
                        yield from selector
                    else:
                        yield from selector.get("matchLabels") or ()
                        yield from (str(each.get("key")) for each in selector.get("matchExpressions") or ())

    def selector(self, namespace: str, labels: Mapping[str, str], owner: Mapping[str, Any] | None) -> Obj | None:
        """What all that select a pod ask of it together; None when nobody does."""
        pairs: dict[str, str] = {}
        for service in self._found[SERVICE].get(namespace, {}).values():
            wanted = (service.get("spec") or {}).get("selector") or {}
            if wanted and all(labels.get(key) == value for key, value in wanted.items()):
                pairs |= wanted
        expressions: list[Obj] = []
        for kind in (REPLICA_SET, STATEFUL_SET):
            if owner is not None and owner.get("kind") == kind.kind and owner.get("apiVersion") == kind.api_version:
                found = self._found[kind].get(namespace, {}).get(str(owner.get("name")))
                selector = ((found or {}).get("spec") or {}).get("selector") or {}
                pairs |= selector.get("matchLabels") or {}
                expressions += selector.get("matchExpressions") or ()
        if not pairs and not expressions:
            return None
        return {"matchLabels": pairs, **({"matchExpressions": expressions} if expressions else {})}
