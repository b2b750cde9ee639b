"""The checks of volumes: that claims exist and are bound or can be, zones, attach limits, claims for one pod alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cluster import objects
from cluster.port import Obj
from cluster.volumes import is_bound, modes
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import Event
from scheduler.model.nodes import Block
from scheduler.model.resources import Mask
from scheduler.model.tasks import NO_NODE, TaskInfo, TaskStatus
from scheduler.plugins.kube.columns import Columns
from scheduler.volumes.catalog import driver_of, is_ephemeral, mounted
from scheduler.volumes.places import Places, unbound

if TYPE_CHECKING:
    from scheduler.framework.session import Session

logger = logging.getLogger(__name__)

_ALONE = "ReadWriteOncePod"
_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
Attached = dict[str, set[str]]
"""Handles of volumes by CSI driver."""


class VolumeRules:
    """Registered for a session in which some pod mounts a claim; `checks` says which of the arguments are on."""

    def __init__(self, ssn: Session, plugin: str, checks: dict[str, bool], columns: Columns) -> None:
        self._ssn, self._storage, self._nodes = ssn, ssn.estate.storage, len(ssn.nodes)
        self._storage.settle(ssn.estate.tasks)
        self._places = _places(ssn, columns)
        self._limits = self._storage.limits() if checks["NodeVolumeLimits"] else {}
        self._users: dict[str, dict[str, TaskInfo]] | None = None
        self._last: tuple[str, int, Mask, Mask] | None = None
        if checks["VolumeBinding"]:
            ssn.add_pre_predicate(plugin, self._claims_are_there)
            ssn.add_task_predicate(plugin, "volume_in_use", self._alone_later, _mounts, now=self._alone_now)
        if self._limits:
            ssn.add_task_predicate(plugin, "volume_limit", self._few_later, _mounts, now=self._few_now)
        if checks["VolumeZone"]:
            ssn.add_task_predicate(plugin, "volume_zone", self._in_zone, _mounts, resolvable=False)
        if checks["VolumeBinding"]:
            ssn.add_task_predicate(plugin, "volume_node", self._reachable, _mounts, resolvable=False)
            ssn.add_task_predicate(plugin, "volume_capacity", self._has_capacity, _mounts, resolvable=False)
            ssn.add_task_predicate(plugin, "volume_bind", self._bindable, _mounts, resolvable=False)
            ssn.add_handlers(self._allocated, self._deallocated)

    def _claims(self, task: TaskInfo) -> dict[str, Obj]:
        """The claims of a task that exist, by `namespace/name`."""
        keys = (f"{task.namespace}/{name}" for name in mounted(task.pod))
        return {key: claim for key in keys if (claim := self._storage.claim(key)) is not None}

    # -- before any node -------------------------------------------------------------------------------------------------

    def _claims_are_there(self, task: TaskInfo) -> Verdict | None:
        if not task.cls.mounts:
            return None
        for name in mounted(task.pod):
            claim = self._storage.claim(f"{task.namespace}/{name}")
            code = None
            if claim is None:
                code = Code.VOLUME_MISSING
            elif objects.is_deleting(claim):
                code = Code.VOLUME_LEAVING
            elif (claim.get("status") or {}).get("phase") == "Lost":
                code = Code.VOLUME_LOST
            elif is_ephemeral(task.pod, name) and (objects.owner(claim) or {}).get("uid") != task.uid:
                code = Code.VOLUME_FOREIGN
            elif not is_bound(claim) and not self._storage.is_delayed(claim):
                code = Code.VOLUME_UNBOUND
            if code is not None:
                return Verdict(Stage.NODE_FIT, code, task=task.role or task.name, resource=name, nodes=self._nodes)
        return None

    # -- where the volumes are, or can be ----------------------------------------------------------------------------------

    def _bound(self, task: TaskInfo) -> Iterator[Obj]:
        for claim in self._claims(task).values():
            if is_bound(claim) and (volume := self._storage.volume(claim["spec"]["volumeName"])) is not None:
                yield volume

    def _reachable(self, task: TaskInfo, at: Block) -> Mask:
        return self._all(at, [self._places.reached(volume) for volume in self._bound(task)])

    def _in_zone(self, task: TaskInfo, at: Block) -> Mask:
        return self._all(at, [self._places.in_zone(volume) for volume in self._bound(task)])

    def _has_capacity(self, task: TaskInfo, at: Block) -> Mask:
        return ~self._waiting(task)[1][at.rows]

    def _bindable(self, task: TaskInfo, at: Block) -> Mask:
        claims = self._claims(task).values()
        if any(is_bound(claim) and self._storage.volume(claim["spec"]["volumeName"]) is None for claim in claims):
            return np.zeros(len(at.rows), np.bool_)
        return self._waiting(task)[0][at.rows]

    def _waiting(self, task: TaskInfo) -> tuple[Mask, Mask]:
        """As `Places.waiting`; two checks after each other ask it of the same task."""
        moment = (task.uid, self._storage.version)
        if self._last is None or self._last[:2] != moment:
            claims = {key: claim for key, claim in unbound(self._claims(task)).items() if self._storage.is_delayed(claim)}
            self._last = *moment, *self._places.waiting(claims)
        return self._last[2:]

    @staticmethod
    def _all(at: Block, masks: list[Mask]) -> Mask:
        fits: Mask = np.ones(len(at.rows), np.bool_)
        for mask in masks:
            fits &= mask[at.rows]
        return fits

    # -- claims that one pod alone may use ---------------------------------------------------------------------------------

    def _alone_now(self, task: TaskInfo, at: Block) -> Mask:
        return self._alone(task, at, later=False)

    def _alone_later(self, task: TaskInfo, at: Block) -> Mask:
        return self._alone(task, at, later=True)

    def _alone(self, task: TaskInfo, at: Block, *, later: bool) -> Mask:
        for key, claim in self._claims(task).items():
            if _ALONE in modes(claim["spec"]) and any(
                other is not task and other.node != NO_NODE and not (later and other.status is TaskStatus.RELEASING)
                for other in self._used().get(key, {}).values()
            ):
                return np.zeros(len(at.rows), np.bool_)
        return np.ones(len(at.rows), np.bool_)

    def _used(self) -> dict[str, dict[str, TaskInfo]]:
        """Tasks by claim, those that have no node included."""
        if self._users is None:
            self._users = {}
            for task in self._ssn.estate.tasks.values():
                if task.cls.mounts and task.status not in _ENDED:
                    for name in mounted(task.pod):
                        self._users.setdefault(f"{task.namespace}/{name}", {})[task.uid] = task
        return self._users

    # -- how many volumes a node takes -------------------------------------------------------------------------------------

    def _few_now(self, task: TaskInfo, at: Block) -> Mask:
        return self._few(task, at, later=False)

    def _few_later(self, task: TaskInfo, at: Block) -> Mask:
        return self._few(task, at, later=True)

    def _few(self, task: TaskInfo, at: Block, *, later: bool) -> Mask:
        wanted = self._attached([task])
        names = self._ssn.nodes.names
        return np.array([not wanted or self._has_slots(names[row], row, wanted, later) for row in at.rows.tolist()], np.bool_)

    def _has_slots(self, node: str, row: int, wanted: Attached, later: bool) -> bool:
        limits = self._limits.get(node)
        if limits is None:
            return True
        tasks = [
            task
            for task in self._ssn.nodes.tasks[row].values()
            if task.cls.mounts and not (later and task.status is TaskStatus.RELEASING)
        ]
        there = self._attached(tasks)
        return all(
            driver not in limits or not (new - there.get(driver, set())) or len(there.get(driver, set()) | new) <= limits[driver]
            for driver, new in wanted.items()
        )

    def _attached(self, tasks: list[TaskInfo]) -> Attached:
        found: Attached = {}
        for task in tasks:
            for key, claim in self._claims(task).items():
                driver, handle = self._handle(key, claim)
                if driver:
                    found.setdefault(driver, set()).add(handle)
        return found

    def _handle(self, key: str, claim: Obj) -> tuple[str, str]:
        """Driver and handle of a claim's volume; of one that is still to be made, its class's driver and the claim itself."""
        promise = self._storage.promises.get(key)
        name = claim["spec"].get("volumeName") or (promise.choice.volume if promise is not None else "")
        if name:
            volume = self._storage.volume(name)
            return driver_of(volume) if volume is not None else ("", "")
        found = self._storage.storage_class(claim)
        return (str(found.get("provisioner") or ""), key) if found is not None else ("", "")

    # -- what is given -----------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        if not event.cls.mounts:
            return
        for task in event.tasks:
            if task.supply.volumes:
                continue
            claims = unbound(self._claims(task))
            if not claims or task.status not in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED):
                continue
            chosen = self._places.choose(claims, task.node)
            if chosen is None:
                logger.error("%s was placed on %s, where its claims cannot be met", task.key, self._ssn.nodes.names[task.node])
                continue
            task.supply = replace(task.supply, volumes=tuple(chosen))
            for choice in chosen:
                self._storage.promise(choice, task.uid)

    def _deallocated(self, event: Event) -> None:
        """Promises to tasks that were let go, which hold nothing any more."""
        if not event.cls.mounts:
            return
        for task in event.tasks:
            if not task.supply.volumes:
                for name in mounted(task.pod):
                    self._storage.withdraw(f"{task.namespace}/{name}", task.uid)


def _mounts(task: TaskInfo) -> bool:
    return task.cls.mounts


def _places(ssn: Session, columns: Columns) -> Places:
    """The answers by labels alone are kept until a label changes."""
    key = ("volumes", "places")
    found = ssn.memo.get(key)
    if not isinstance(found, Places) or found.columns is not columns:
        found = ssn.memo[key] = Places(ssn.estate.storage, columns)
    return found
