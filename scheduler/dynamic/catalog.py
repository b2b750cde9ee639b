"""What the cluster says of devices and of claims to them, and what tasks were given that it does not say yet.

A grant is an allocation of a claim. It is held by the tasks that use the claim and goes with the last of them, so grants
may be taken back in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cluster import objects
from cluster.device_selectors import Version, compile_selector
from cluster.kinds import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE, Kind
from cluster.port import Obj
from cluster.quantities import parse_quantity
from scheduler.model.supply import DeviceChoice
from scheduler.model.tasks import TaskInfo

KINDS = (DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM_TEMPLATE, RESOURCE_CLAIM)

Key = tuple[str, str, str]
"""Driver, pool and name of a device."""

_MOST_ANSWERS = 100
"""Selectors of which a device remembers whether it meets them: claims bring ever new ones."""


@dataclass(slots=True, eq=False)
class Device:
    """One device. `node` names the node that it is on; `terms` select nodes that reach it; both empty: all nodes do."""

    key: Key
    attributes: Mapping[str, Any]
    capacity: Mapping[str, Decimal]
    taints: tuple[Mapping[str, Any], ...] = ()
    node: str = ""
    terms: tuple[Mapping[str, Any], ...] = ()
    _answers: dict[str, bool] = field(default_factory=dict, repr=False)

    def fits(self, selector: str) -> bool:
        """Whether it meets a CEL expression; one that does not compile fits nothing."""
        found = self._answers.get(selector)
        if found is None:
            try:
                found = compile_selector(selector).fits(self.key[0], self.attributes, self.capacity)
            except ValueError:
                found = False
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            self._answers[selector] = found
        return found

    def attribute(self, name: str) -> Any:
        """An attribute by its full name (`domain/name`); None where it has none."""
        found = self.attributes.get(name)
        if found is None and name.startswith(f"{self.key[0]}/"):
            found = self.attributes.get(name.partition("/")[2])
        return found


@dataclass(slots=True)
class Grant:
    """An allocation that is on its way to its claim, for some tasks (uids)."""

    choice: DeviceChoice
    holders: set[str] = field(default_factory=set)


class Devices:
    """Objects of dynamic resources. `pools_version` moves with what is published, `version` with everything."""

    def __init__(self) -> None:
        self._found: dict[Kind, dict[str, Obj]] = {kind: {} for kind in KINDS}
        self._slices: dict[str, tuple[Obj, list[Device]]] = {}
        self._pools: list[Device] | None = None
        self.grants: dict[str, Grant] = {}
        self.version = self.pools_version = 0

    def apply(self, kind: Kind, obj: Obj, gone: bool) -> None:
        """Take one object in. Raises ValueError for devices that make no sense; they count as gone then."""
        key = objects.key(obj) if kind.namespaced else objects.name(obj)
        self.version += 1
        self._found[kind].pop(key, None)
        if kind == RESOURCE_SLICE:
            self._slices.pop(key, None)
            self._pools, self.pools_version = None, self.pools_version + 1
            if not gone:
                self._slices[key] = obj, list(_devices(obj))
        elif kind == DEVICE_CLASS:
            self.pools_version += 1
        if not gone:
            self._found[kind][key] = obj

    # -- look-ups --------------------------------------------------------------------------------------------------------

    def claim(self, key: str) -> Obj | None:
        """A ResourceClaim by `namespace/name`."""
        return self._found[RESOURCE_CLAIM].get(key)

    def claims(self) -> Mapping[str, Obj]:
        """All ResourceClaims."""
        return self._found[RESOURCE_CLAIM]

    def template(self, key: str) -> Obj | None:
        """A ResourceClaimTemplate by `namespace/name`."""
        return self._found[RESOURCE_CLAIM_TEMPLATE].get(key)

    def device_class(self, name: str) -> Obj | None:
        """A DeviceClass."""
        return self._found[DEVICE_CLASS].get(name)

    def devices(self) -> list[Device]:
        """The devices of all complete pools, by driver and pool; of each pool only its newest generation."""
        if self._pools is None:
            pools: dict[tuple[str, str], list[tuple[Obj, list[Device]]]] = {}
            for _, (obj, devices) in sorted(self._slices.items()):
                spec = obj["spec"]
                pools.setdefault((str(spec.get("driver")), str(spec["pool"].get("name"))), []).append((obj, devices))
            self._pools = []
            for _, slices in sorted(pools.items()):
                newest = max(_generation(obj) for obj, _ in slices)
                current = [(obj, devices) for obj, devices in slices if _generation(obj) == newest]
                if len(current) >= int(current[0][0]["spec"]["pool"].get("resourceSliceCount") or 1):
                    self._pools += [device for _, devices in current for device in devices]
        return self._pools

    # -- grants ----------------------------------------------------------------------------------------------------------

    def grant(self, choice: DeviceChoice, holder: str) -> None:
        """A task will use a claim that is given devices for it."""
        found = self.grants.setdefault(choice.claim, Grant(choice))
        found.holders.add(holder)

    def withdraw(self, claim: str, holder: str) -> bool:
        """A task does not use a claim any more; whether that was the last one and devices came free."""
        found = self.grants.get(claim)
        if found is None:
            return False
        found.holders.discard(holder)
        if found.holders:
            return False
        del self.grants[claim]
        return True

    def settle(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Forget grants that the cluster shows by now, or that were made to tasks that do not count on them any more."""
        for key, grant in list(self.grants.items()):
            claim = self.claim(key)
            shown = claim is None or allocation_of(claim) is not None
            for holder in list(grant.holders):
                task = tasks.get(holder)
                if shown or task is None or all(choice.claim != key for choice in task.supply.devices):
                    self.withdraw(key, holder)


# -- reading objects -------------------------------------------------------------------------------------------------------


def allocation_of(claim: Obj) -> Mapping[str, Any] | None:
    """What a claim was given, by its status."""
    found: Mapping[str, Any] | None = (claim.get("status") or {}).get("allocation")
    return found


def users_of(claim: Obj) -> list[str]:
    """The uids of the pods for which a claim is reserved."""
    return [str(each.get("uid")) for each in (claim.get("status") or {}).get("reservedFor") or ()]


def given(allocation: Mapping[str, Any]) -> Iterator[Key]:
    """The devices of an allocation that nobody else may have: those given for administration are shared."""
    for result in (allocation.get("devices") or {}).get("results") or ():
        if not result.get("adminAccess"):
            yield str(result.get("driver")), str(result.get("pool")), str(result.get("device"))


def used_claims(pod: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
    """By its name in the pod, the ResourceClaim that is used (empty: not made yet) and whether it is made for the pod.

    A claim that its maker decided to be unnecessary is left out.
    """
    made = {
        each.get("name"): each.get("resourceClaimName") for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    found = {}
    for each in (pod.get("spec") or {}).get("resourceClaims") or ():
        name = str(each.get("name"))
        if each.get("resourceClaimName"):
            found[name] = str(each["resourceClaimName"]), False
        elif name not in made:
            found[name] = "", True
        elif made[name]:
            found[name] = str(made[name]), True
    return found


def _generation(obj: Obj) -> int:
    return int(obj["spec"]["pool"].get("generation") or 0)


def _devices(obj: Obj) -> Iterator[Device]:
    spec = obj.get("spec") or {}
    driver, pool = str(spec.get("driver")), str((spec.get("pool") or {}).get("name"))
    for each in spec.get("devices") or ():
        if each.get("consumesCounters"):
            continue  # parts of a device that share what it has are not divided up here
        where = each if spec.get("perDeviceNodeSelection") else spec
        yield Device(
            (driver, pool, str(each["name"])),
            {str(name): _attribute(value) for name, value in (each.get("attributes") or {}).items()},
            {str(name): parse_quantity(value["value"]) for name, value in (each.get("capacity") or {}).items()},
            tuple(each.get("taints") or ()),
            str(where.get("nodeName") or ""),
            tuple((where.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()),
        )


def _attribute(value: Mapping[str, Any]) -> Any:
    if "version" in value:
        return Version(str(value["version"]))
    return next((value[kind] for kind in ("string", "int", "bool", "strings", "ints", "bools") if kind in value), "")
