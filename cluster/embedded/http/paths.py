"""Addresses of the Kubernetes API, taken apart."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.errors import NotFound
from cluster.kinds import KINDS, NAMESPACE, Kind

_BY_PLURAL = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
_SUBRESOURCES = frozenset({"status", "binding", "eviction", "log"})


@dataclass(frozen=True, slots=True)
class Target:
    """What an address is about: all objects of a kind (in a namespace), one of them, or a part of one."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    part: str = ""


def target(path: str) -> Target:
    """The target of a path such as `/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/train/status`. Raises NotFound."""
    match [step for step in path.split("/") if step]:
        case ["api", "v1", *rest]:
            group, version = "", "v1"
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise _unknown(path)
    namespace = ""
    if len(rest) >= 3 and rest[0] == NAMESPACE.plural and not (group == "" and rest[2] in _SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        raise _unknown(path)
    kind = _BY_PLURAL.get((group, version, rest[0]))
    name, part = [*rest[1:], "", ""][:2]
    if kind is None or (part and part not in _SUBRESOURCES) or (namespace and not kind.namespaced):
        raise _unknown(path)
    if name and kind.namespaced and not namespace:
        raise _unknown(path)
    return Target(kind, namespace, name, part)


def _unknown(path: str) -> NotFound:
    return NotFound(f"the server could not find the requested resource: there is nothing at {path}")
