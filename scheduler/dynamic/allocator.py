"""Which devices of a node meet some claims: the first that do, in the order in which they are published.

A search with steps back, as Kubernetes's structured allocator makes it. It gives up a node after so many steps, since
constraints can make it long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.objects import tolerates
from scheduler.dynamic.asks import Ask, Request
from scheduler.dynamic.catalog import Device, Key

MOST_STEPS = 20_000

Result = list[tuple[Request, Device]]
IsTaken = Callable[[Key], bool]


def allocate(asks: Sequence[Ask], devices: Sequence[Device], is_taken: IsTaken) -> list[Result] | None:
    """For each claim its requests' devices; None when not all of them can be met."""
    search = _Search(asks, devices, is_taken, [[] for _ in asks])
    return search.chosen if search.claim(0) else None


def matching(request: Request, devices: Sequence[Device]) -> list[Device]:
    """The devices that a request may have, whoever has them now."""
    return [device for device in devices if _may_have(request, device) and all(map(device.fits, request.selectors))]


def _may_have(request: Request, device: Device) -> bool:
    hard = [taint for taint in device.taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return all(any(tolerates(dict(each), taint) for each in request.tolerations) for taint in hard)


@dataclass(slots=True)
class _Search:
    asks: Sequence[Ask]
    devices: Sequence[Device]
    is_taken: IsTaken
    chosen: list[Result]
    used: set[Key] = field(default_factory=set)
    steps: int = 0
    _matching: dict[Request, list[Device]] = field(default_factory=dict)

    def claim(self, at: int) -> bool:
        return at == len(self.asks) or self.request(at, 0)

    def request(self, at: int, number: int) -> bool:
        ask = self.asks[at]
        if number == len(ask.requests):
            return self.claim(at + 1)
        return any(self._meet(at, number, request) for request in ask.requests[number])

    def _meet(self, at: int, number: int, request: Request) -> bool:
        found = self._matching.get(request)
        if found is None:
            found = self._matching[request] = matching(request, self.devices)
        if not request.wants_all:
            return self._pick(at, number, request, found, 0, request.count)
        if not found:
            return False
        before = len(self.chosen[at])
        if all(self._take(at, request, device) for device in found) and self.request(at, number + 1):
            return True
        self._give_back(at, before)
        return False

    def _pick(self, at: int, number: int, request: Request, found: list[Device], start: int, left: int) -> bool:
        if not left:
            return self.request(at, number + 1)
        for place in range(start, len(found) - left + 1):
            self.steps += 1
            if self.steps > MOST_STEPS:
                return False
            before = len(self.chosen[at])
            if self._take(at, request, found[place]):
                if self._pick(at, number, request, found, place + 1, left - 1):
                    return True
                self._give_back(at, before)
        return False

    def _take(self, at: int, request: Request, device: Device) -> bool:
        if not request.admin and (device.key in self.used or self.is_taken(device.key)):
            return False
        for constraint in self.asks[at].constraints:
            if constraint.concerns(request):
                mine = device.attribute(constraint.attribute)
                others = [d.attribute(constraint.attribute) for r, d in self.chosen[at] if constraint.concerns(r)]
                if mine is None or any((_same(mine, other)) is constraint.distinct for other in others):
                    return False
        self.chosen[at].append((request, device))
        if not request.admin:
            self.used.add(device.key)
        return True

    def _give_back(self, at: int, length: int) -> None:
        for request, device in self.chosen[at][length:]:
            if not request.admin:
                self.used.discard(device.key)
        del self.chosen[at][length:]


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def allocation(result: Result, node: str, config: list[Any]) -> dict[str, Any]:
    """What is written into a claim's status: the devices, their configuration, and from where they can be used."""
    found: dict[str, Any] = {
        "devices": {
            "results": [
                {
                    "request": request.name,
                    "driver": device.key[0],
                    "pool": device.key[1],
                    "device": device.key[2],
                    **({"adminAccess": True} if request.admin else {}),
                }
                for request, device in result
            ],
            **({"config": config} if config else {}),
        }
    }
    devices = [device for _, device in result]
    terms: list[Any] = []
    if any(device.node for device in devices):
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    else:
        requirements = [each for d in devices if d.terms for each in d.terms[0].get("matchExpressions") or ()]
        unique = [each for i, each in enumerate(requirements) if each not in requirements[:i]]
        terms = [{"matchExpressions": unique}] if unique else []
    if terms:
        found["nodeSelector"] = {"nodeSelectorTerms": terms}
    return found
