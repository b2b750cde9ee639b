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
        self._by_pair: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
        """Namespace and one pair of a Service's selector → selectors by name: a pod without that pair is not selected."""
        self.version = 0

    def apply(self, kind: Kind, obj: Obj, gone: bool) -> None:
        """Take one object in."""
        namespace, name = objects.namespace(obj), objects.name(obj)
        mine = self._found[kind].setdefault(namespace, {})
        before = mine.pop(name, None)
        self.version += 1
        if not gone:
            mine[name] = obj
        if kind == SERVICE:
            self._index(namespace, name, before, obj if not gone else None)

    def _index(self, namespace: str, name: str, before: Obj | None, after: Obj | None) -> None:
        if before is not None and (pair := _one_pair(before)) and name in (found := self._by_pair.get((namespace, *pair), {})):
            del found[name]
            if not found:
                del self._by_pair[namespace, *pair]
        if after is not None and (pair := _one_pair(after)):
            self._by_pair.setdefault((namespace, *pair), {})[name] = _wanted(after)

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
        for pair in labels.items():
            for wanted in self._by_pair.get((namespace, *pair), {}).values():
                if all(labels.get(key) == value for key, value in wanted.items()):
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


def _wanted(service: Obj) -> dict[str, str]:
    return (service.get("spec") or {}).get("selector") or {}


def _one_pair(service: Obj) -> tuple[str, str] | None:
    """The first pair of a Service's selector in the order of the keys; of a job's Service, that is the job's name."""
    return min(_wanted(service).items(), default=None)
