"""ResourceQuotas as the scheduler sees them: what a namespace may have of each resource, and has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster import objects
from cluster.port import Obj

_PODS = ("pods", "count/pods")


@dataclass(frozen=True, slots=True)
class Limit:
    """One line of a quota, in smallest units. `used` is None when nobody has counted yet."""

    resource: str
    hard: int
    used: int | None


@dataclass(frozen=True, slots=True)
class Quota:
    """One ResourceQuota."""

    namespace: str
    name: str
    limits: tuple[Limit, ...]


def plain(name: str) -> str:
    """The resource that a name in a quota stands for: `requests.cpu` is cpu, `count/pods` is pods; others are as written."""
    return "pods" if name in _PODS else name.removeprefix("requests.")


def units(resources: Any, where: str) -> dict[str, int]:
    """Smallest units by plain name; counts of other objects are left out. Raises ValueError."""
    if not isinstance(resources or {}, Mapping):
        raise ValueError(f"{where} must be a mapping of resources to quantities")
    found: dict[str, int] = {}
    for name, quantity in (resources or {}).items():
        resource = plain(str(name))
        if resource.startswith(("count/", "services")):
            continue
        try:
            found[resource] = objects.to_units(resource.removeprefix("limits."), quantity)
        except ValueError as error:
            raise ValueError(f"{where}: {name}: {error}") from None
    return found


def quota(obj: Obj) -> Quota:
    """A ResourceQuota object. What its status says counts before its spec. Raises ValueError for what is no quantity."""
    status = obj.get("status") or {}
    hard = units(status.get("hard") or (obj.get("spec") or {}).get("hard"), "hard")
    used = units(status.get("used"), "status.used")
    return Quota(
        objects.namespace(obj),
        objects.name(obj),
        tuple(Limit(resource, amount, used.get(resource)) for resource, amount in hard.items()),
    )
