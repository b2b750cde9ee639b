"""What the pods of each node ask for, and whether one more fits: a kubelet takes no pod beyond its node's capacity."""

from __future__ import annotations

import contextlib
from collections import defaultdict

from cluster.objects import format_units, name, pod_requests, resource_units, uid
from cluster.port import Obj, WatchEvent
from cluster.quantities import MAX_UNITS

Units = dict[str, int]


class Hosts:
    """Requests by node of the pods that were taken. Amounts that a node does not speak of are not held against a pod."""

    def __init__(self) -> None:
        self._room: dict[str, Units] = {}
        self._used: defaultdict[str, Units] = defaultdict(dict)
        self._held: dict[str, tuple[str, Units]] = {}

    def take_node(self, event: WatchEvent) -> None:
        """Follow a node's allocatable amounts."""
        self._room.pop(name(event.object), None)
        if event.type != "DELETED":
            with contextlib.suppress(ValueError):
                self._room[name(event.object)] = resource_units((event.object.get("status") or {}).get("allocatable"))

    def take(self, pod: Obj) -> None:
        """Count a pod that runs, forget one that has ended."""
        phase = (pod.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            self.drop(pod)
        elif phase == "Running":
            self._hold(pod)

    def admit(self, pod: Obj) -> tuple[str, str] | None:
        """Count a pod that is to start; else the reason and the message why its node has no room for it."""
        if uid(pod) in self._held:
            return None
        node, asked = pod["spec"]["nodeName"], _requests(pod)
        room, used = self._room.get(node, {}), self._used[node]
        for resource, amount in asked.items():
            if amount and amount + used.get(resource, 0) > room.get(resource, MAX_UNITS):
                amounts = (("requested", amount), ("used", used.get(resource, 0)), ("capacity", room[resource]))
                told = ", ".join(f"{word}: {format_units(resource, units)}" for word, units in amounts)
                return f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {told}"
        self._hold(pod)
        return None

    def drop(self, pod: Obj) -> None:
        """A pod that ended or went holds nothing."""
        if held := self._held.pop(uid(pod), None):
            self._add(*held, -1)

    def _hold(self, pod: Obj) -> None:
        if uid(pod) not in self._held:
            self._held[uid(pod)] = held = pod["spec"]["nodeName"], _requests(pod)
            self._add(*held, 1)

    def _add(self, node: str, asked: Units, sign: int) -> None:
        used = self._used[node]
        for resource, amount in asked.items():
            used[resource] = used.get(resource, 0) + sign * amount


def _requests(pod: Obj) -> Units:
    """What a pod asks for; nothing where that cannot be counted."""
    try:
        return pod_requests(pod["spec"])
    except ValueError:
        return {}
