"""What a pod asks of a node, by the rule that Kubernetes and Volcano share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.quantities import resource_units

Units = dict[str, int]


def container_requests(container: Mapping[str, Any]) -> Units:
    """A container's requests in smallest units; where only a limit is given the API server takes it as the request."""
    resources = container.get("resources") or {}
    return resource_units(resources.get("limits")) | resource_units(resources.get("requests"))


def pod_requests(spec: Mapping[str, Any]) -> Units:
    """A pod spec's whole request in smallest units, `pods: 1` included.

    max(containers + sidecars, the neediest moment of the init containers), then pod-level amounts of cpu, memory and
    huge pages instead where they are set, then overhead. A sidecar is an init container with restartPolicy Always.
    Raises ValueError for a quantity that does not parse.
    """
    total: Units = {}
    for container in spec.get("containers") or ():
        _add(total, container_requests(container))
    sidecars: Units = {}
    peak: Units = {}
    for container in spec.get("initContainers") or ():
        asked = container_requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
        else:
            _add(asked, sidecars)
            _raise_to(peak, asked)
    _add(total, sidecars)
    _raise_to(total, peak)
    pod_level = resource_units((spec.get("resources") or {}).get("requests"))
    total.update({r: n for r, n in pod_level.items() if r in {"cpu", "memory"} or r.startswith("hugepages-")})
    _add(total, resource_units(spec.get("overhead")))
    total["pods"] = 1
    return total


def _add(total: Units, more: Units) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Units, floor: Units) -> None:
    for resource, amount in floor.items():
        if amount > total.get(resource, 0):
            total[resource] = amount
