"""What claims ask for, made ready: requests with the selectors of their classes, and constraints among the devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cluster.port import Obj
from scheduler.dynamic.catalog import Devices


@dataclass(frozen=True, slots=True)
class Request:
    """So many devices of a class (`count`), or all that there are of it on a node (0), by name (`request/alternative`)."""

    name: str
    device_class: str
    selectors: tuple[str, ...]
    count: int
    admin: bool = False
    tolerations: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def wants_all(self) -> bool:
        """Whether it asks for every device that matches."""
        return self.count == 0

    @property
    def main(self) -> str:
        """The name without the alternative."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Constraint:
    """The devices of some requests (none named: of all) must agree on an attribute, or (`distinct`) all differ in it."""

    attribute: str
    requests: frozenset[str]
    distinct: bool = False

    def concerns(self, request: Request) -> bool:
        """Whether a request's devices are among those."""
        return not self.requests or request.main in self.requests or request.name in self.requests


@dataclass(frozen=True, slots=True)
class Ask:
    """One claim: requests in order, each with its alternatives, the first that can be met counting."""

    requests: tuple[tuple[Request, ...], ...]
    constraints: tuple[Constraint, ...] = ()

    def all_requests(self) -> Iterator[Request]:
        """Every alternative of every request."""
        for alternatives in self.requests:
            yield from alternatives


def read(spec: Mapping[str, Any], catalog: Devices) -> Ask:
    """The ask of a ResourceClaim's spec."""
    devices = spec.get("devices") or {}
    requests = []
    for each in devices.get("requests") or ():
        name = str(each.get("name"))
        options = each.get("firstAvailable")
        if options:
            requests.append(tuple(_request(f"{name}/{option.get('name')}", option, catalog) for option in options))
        else:
            requests.append((_request(name, each.get("exactly") or each, catalog),))
    constraints = []
    for each in devices.get("constraints") or ():
        attribute = each.get("matchAttribute") or each.get("distinctAttribute")
        if attribute:
            names = frozenset(map(str, each.get("requests") or ()))
            constraints.append(Constraint(str(attribute), names, "distinctAttribute" in each))
    return Ask(tuple(requests), tuple(constraints))


def _request(name: str, spec: Mapping[str, Any], catalog: Devices) -> Request:
    device_class = str(spec.get("deviceClassName") or "")
    found = catalog.device_class(device_class) or {}
    both = [*((found.get("spec") or {}).get("selectors") or ()), *(spec.get("selectors") or ())]
    return Request(
        name,
        device_class,
        tuple(str((each.get("cel") or {}).get("expression") or "false") for each in both),
        0 if spec.get("allocationMode") == "All" else max(int(spec.get("count") or 1), 1),
        bool(spec.get("adminAccess")),
        tuple(tuple(sorted((str(k), str(v)) for k, v in each.items())) for each in spec.get("tolerations") or ()),
    )


def configuration(spec: Mapping[str, Any], ask: Ask, catalog: Devices, met: set[str]) -> list[Obj]:
    """The configuration that goes with an allocation: of the classes whose requests were met, then the claim's own."""
    found: list[Obj] = []
    for request in ask.all_requests():
        if request.name in met:
            of_class = ((catalog.device_class(request.device_class) or {}).get("spec") or {}).get("config") or ()
            found += [{"source": "FromClass", "requests": [request.name], **each} for each in of_class]
    for each in (spec.get("devices") or {}).get("config") or ():
        wanted = each.get("requests") or ()
        if not wanted or any(name in met or any(m.partition("/")[0] == name for m in met) for name in wanted):
            found.append({"source": "FromClaim", **each})
    return found
