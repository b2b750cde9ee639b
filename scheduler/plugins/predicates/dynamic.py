"""Dynamic resources: whether the devices that a pod's claims ask for are to be had on a node, and which it is given.

Claims that are alike are answered together, and a node is searched again only when one of its devices changed hands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster import objects
from cluster.port import Obj
from scheduler.dynamic import allocator
from scheduler.dynamic.asks import Ask, configuration, read
from scheduler.dynamic.catalog import Device, Devices, Key, allocation_of, given, used_claims, users_of
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Event
from scheduler.model.nodes import Block
from scheduler.model.resources import Ints, Mask
from scheduler.model.supply import DeviceChoice
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.plugins.kube.columns import Columns

if TYPE_CHECKING:
    from scheduler.framework.session import Session

logger = logging.getLogger(__name__)

CAUSE = "devices"
_EVERYWHERE = -1
_NOBODY: frozenset[str] = frozenset()
_PLACED = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


@dataclass(slots=True)
class _Answers:
    """By row, whether some asks can be met there, and of which moment the answer is."""

    fits: Mask
    at: Ints


class DeviceRules:
    """Registered for a session in which some pod has resource claims.

    A device has two owners while a task waits for it that another is about to leave.
    """

    def __init__(self, ssn: Session, plugin: str, columns: Columns) -> None:
        self._ssn, self._catalog, self._columns, self._nodes = ssn, ssn.estate.devices, columns, len(ssn.nodes)
        self._tasks = ssn.estate.tasks
        self._catalog.settle(self._tasks)
        self._inventory = _inventory(ssn, self._catalog, columns)
        self._owners: dict[Key, set[str]] = {}
        self._moment = 1
        self._touched: Ints = np.ones(ssn.nodes.rows, np.int64)
        self._answers: dict[tuple[Any, bool], _Answers] = {}
        self._asks: dict[str, Ask] = {}
        for key, allocation in self._allocations():
            for device in given(allocation):
                self._owners.setdefault(device, set()).add(key)
        self._leaving = {key for key in set().union(*self._owners.values()) if self._is_leaving(key)}
        ssn.add_pre_predicate(plugin, self._claims_are_there)
        ssn.add_task_predicate(plugin, CAUSE, self._later, _claims, now=self._now, explain=self._explained)
        ssn.add_handlers(self._allocated, self._deallocated)

    def _allocations(self) -> Iterator[tuple[str, Any]]:
        for key, claim in self._catalog.claims().items():
            found = allocation_of(claim)
            if found is not None:
                yield key, found
        for key, grant in self._catalog.grants.items():
            if grant.choice.allocation is not None:
                yield key, grant.choice.allocation

    def _is_leaving(self, key: str) -> bool:
        """Whether all that use a claim's devices are on their way out."""
        claim = self._catalog.claim(key)
        users = set(users_of(claim)) if claim is not None else set()
        if key in self._catalog.grants:
            users |= self._catalog.grants[key].holders
        tasks = [self._tasks.get(uid) for uid in users]
        return all(
            task is None or task.status in (TaskStatus.RELEASING, TaskStatus.SUCCEEDED, TaskStatus.FAILED) for task in tasks
        )

    # -- before any node -------------------------------------------------------------------------------------------------

    def _claims_are_there(self, task: TaskInfo) -> Verdict | None:
        if not task.cls.claims:
            return None
        for name, (claim, made) in used_claims(task.pod).items():
            found = self._catalog.claim(f"{task.namespace}/{claim}") if claim else None
            if found is None:
                return self._refused(task, Code.DEVICE_CLAIM_MISSING, claim or name)
            if objects.is_deleting(found):
                return self._refused(task, Code.DEVICE_CLAIM_LEAVING, claim)
            if made and (objects.owner(found) or {}).get("uid") != task.uid:
                return self._refused(task, Code.DEVICE_CLAIM_FOREIGN, claim)
            if allocation_of(found) is None:
                for request in self._ask(f"{task.namespace}/{claim}", found).all_requests():
                    if self._catalog.device_class(request.device_class) is None:
                        return self._refused(task, Code.DEVICE_CLASS_MISSING, request.device_class)
        return None

    def _refused(self, task: TaskInfo, code: Code, resource: str) -> Verdict:
        return Verdict(Stage.NODE_FIT, code, task=task.role or task.name, resource=resource, nodes=self._nodes)

    # -- what a task's claims ask ------------------------------------------------------------------------------------------

    def _claims(self, task: TaskInfo) -> dict[str, Obj]:
        keys = (f"{task.namespace}/{claim}" for claim, _ in used_claims(task.pod).values())
        return {key: claim for key in keys if (claim := self._catalog.claim(key)) is not None}

    def _ask(self, key: str, claim: Obj) -> Ask:
        found = self._asks.get(key)
        if found is None:
            found = self._asks[key] = read(claim.get("spec") or {}, self._catalog)
        return found

    def _split(self, task: TaskInfo) -> tuple[list[Any], dict[str, Ask]]:
        """Allocations that a task's claims have, and what the others ask."""
        has, asks = [], {}
        for key, claim in self._claims(task).items():
            grant = self._catalog.grants.get(key)
            found = allocation_of(claim) or (grant.choice.allocation if grant is not None else None)
            if found is not None:
                has.append(found)
            else:
                asks[key] = self._ask(key, claim)
        return has, asks

    # -- nodes -----------------------------------------------------------------------------------------------------------

    def _now(self, task: TaskInfo, at: Block) -> Mask:
        return self._fits(task, at, later=False)

    def _later(self, task: TaskInfo, at: Block) -> Mask:
        return self._fits(task, at, later=True)

    def _fits(self, task: TaskInfo, at: Block, *, later: bool) -> Mask:
        has, asks = self._split(task)
        fits: Mask = np.ones(len(at.rows), np.bool_)
        for allocation in has:
            terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms")
            if terms:
                fits &= np.logical_or.reduce([self._columns.matches(term) for term in terms])[at.rows]
        if asks:
            fits[fits] = self._met(tuple(asks.values()), at.rows[fits], later=later)
        return fits

    def _met(self, asks: tuple[Ask, ...], rows: Any, *, later: bool) -> Mask:
        later = later and bool(self._leaving)
        found = self._answers.get((asks, later))
        if found is None:
            blank = np.zeros(len(self._touched), np.int64)
            found = self._answers[asks, later] = _Answers(blank.astype(np.bool_), blank)
        for row in rows[found.at[rows] < self._touched[rows]].tolist():
            found.fits[row] = self._solve(asks, row, later=later) is not None
            found.at[row] = self._moment
        met: Mask = found.fits[rows]
        return met

    def _solve(self, asks: tuple[Ask, ...], row: int, *, later: bool) -> list[allocator.Result] | None:
        devices = self._inventory.of(row)
        return allocator.allocate(asks, devices, self._is_gone_by if later else self._owners.__contains__)

    def _is_gone_by(self, device: Key) -> bool:
        """Whether somebody has the device who stays."""
        return not self._owners.get(device, _NOBODY) <= self._leaving

    # -- why not -----------------------------------------------------------------------------------------------------------

    def _explained(self, task: TaskInfo) -> Verdict | None:
        """The first request that no node can meet: how many devices it asks, and how many the best node has free."""
        for ask in self._split(task)[1].values():
            for request in ask.all_requests():
                matching = [allocator.matching(request, self._inventory.of(row)) for row in self._ssn.nodes.live_rows()]
                counts = (sum(not self._is_gone_by(device.key) for device in found) for found in matching)
                asked, free = max(request.count, 1), max(counts, default=0)
                if free < asked:
                    code = Code.DEVICES_INSUFFICIENT if any(matching) else Code.DEVICE_SELECTOR
                    verdict = self._refused(task, code, request.device_class)
                    return replace(verdict, asked=asked * 1000, free=free * 1000, short=(asked - free) * 1000)
        return None

    # -- what is given -----------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        if not event.cls.claims:
            return
        for task in event.tasks:
            if task.status in _PLACED and not task.supply.devices:
                self._give(task)
            else:
                self._note(task)

    def _give(self, task: TaskInfo) -> None:
        claims, asks = self._claims(task), self._split(task)[1]
        results = self._solve(tuple(asks.values()), task.node, later=task.status is TaskStatus.PIPELINED) if asks else []
        if results is None:
            logger.error("%s was placed on %s, where its devices are not to be had", task.key, self._ssn.nodes.names[task.node])
            return
        choices = {key: DeviceChoice(key) for key in claims}
        for key, result in zip(asks, results, strict=True):
            config = configuration(claims[key].get("spec") or {}, asks[key], self._catalog, {r.name for r, _ in result})
            choices[key] = DeviceChoice(key, allocator.allocation(result, self._ssn.nodes.names[task.node], config))
        for key, choice in choices.items():
            grant = self._catalog.grants.get(key)
            choices[key] = choice = grant.choice if grant is not None else choice
            if choice.allocation is not None:
                self._catalog.grant(choice, task.uid)
                self._own(key, choice.allocation)
        task.supply = replace(task.supply, devices=tuple(choices.values()))
        self._note(task)

    def _deallocated(self, event: Event) -> None:
        if not event.cls.claims:
            return
        for task in event.tasks:
            if not task.supply.devices:
                for key in self._claims(task):
                    grant = self._catalog.grants.get(key)
                    if grant is not None and self._catalog.withdraw(key, task.uid) and grant.choice.allocation is not None:
                        self._disown(key, grant.choice.allocation)
            self._note(task)

    def _own(self, key: str, allocation: Any) -> None:
        for device in given(allocation):
            self._owners.setdefault(device, set()).add(key)
            self._touch(device)

    def _disown(self, key: str, allocation: Any) -> None:
        for device in given(allocation):
            self._owners[device].discard(key)
            if not self._owners[device]:
                del self._owners[device]
            self._touch(device)

    def _note(self, task: TaskInfo) -> None:
        """A task came, went, or is on its way out: so may be what its claims hold."""
        for key, claim in self._claims(task).items():
            leaving = self._is_leaving(key)
            if leaving is not (key in self._leaving):
                (self._leaving.add if leaving else self._leaving.discard)(key)
                grant = self._catalog.grants.get(key)
                for device in given(allocation_of(claim) or (grant.choice.allocation if grant is not None else None) or {}):
                    self._touch(device)

    def _touch(self, device: Key) -> None:
        self._moment += 1
        row = self._inventory.row_of.get(device, _EVERYWHERE)
        if row == _EVERYWHERE:
            self._touched[:] = self._moment
        else:
            self._touched[row] = self._moment


class _Inventory:
    """The devices that each row reaches, as they are published and nodes are labelled now."""

    def __init__(self, catalog: Devices, columns: Columns) -> None:
        self.columns, self.version = columns, catalog.pools_version
        rows = {name: row for row, name in enumerate(columns.names) if name}
        self.row_of: dict[Key, int] = {}
        self._own: dict[int, list[Device]] = {}
        self._shared: list[tuple[Device, Mask | None]] = []
        for device in catalog.devices():
            if device.node:
                if device.node in rows:
                    self.row_of[device.key] = rows[device.node]
                    self._own.setdefault(rows[device.node], []).append(device)
            elif device.terms:
                self._shared.append((device, np.logical_or.reduce([columns.matches(term) for term in device.terms])))
            else:
                self._shared.append((device, None))

    def of(self, row: int) -> list[Device]:
        """Devices of the node itself first."""
        shared = [device for device, mask in self._shared if mask is None or mask[row]]
        own = self._own.get(row, [])
        return own + shared if shared else own


def _inventory(ssn: Session, catalog: Devices, columns: Columns) -> _Inventory:
    key = ("devices", "inventory")
    found = ssn.memo.get(key)
    if not isinstance(found, _Inventory) or found.columns is not columns or found.version != catalog.pools_version:
        found = ssn.memo[key] = _Inventory(catalog, columns)
    return found


def _claims(task: TaskInfo) -> bool:
    return task.cls.claims
