"""What the cluster says of volumes, and what tasks were promised that it does not say yet.

A promise is an unbound claim met by a volume, or by one to be made for a node. It is held by the tasks that use the claim
and goes with the last of them, so promises may be taken back in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster import objects
from cluster.kinds import CLAIM, CSI_CAPACITY, CSI_DRIVER, CSI_NODE, STORAGE_CLASS, VOLUME, Kind
from cluster.port import Obj
from cluster.volumes import DELAYED, SELECTED_NODE, capacity_of, claim_class, is_bound, size_of, volume_class
from scheduler.model.supply import VolumeChoice
from scheduler.model.tasks import TaskInfo

KINDS = (STORAGE_CLASS, CSI_DRIVER, CSI_NODE, CSI_CAPACITY, VOLUME, CLAIM)


@dataclass(slots=True)
class Promise:
    """How an unbound claim will be met, and for which tasks (uids)."""

    choice: VolumeChoice
    holders: set[str] = field(default_factory=set)


class Storage:
    """Objects about volumes by kind and key.

    `version` moves with each of them and with every promise, `volumes_version` with volumes alone.
    """

    def __init__(self) -> None:
        self._found: dict[Kind, dict[str, Obj]] = {kind: {} for kind in KINDS}
        self._by_class: dict[str, dict[str, Obj]] = {}
        self._sorted: dict[str, list[Obj]] = {}
        self._taken: dict[str, str] = {}
        self._reserved: dict[str, dict[str, Obj]] = {}
        self.promises: dict[str, Promise] = {}
        self.version = self.volumes_version = 0

    def apply(self, kind: Kind, obj: Obj, gone: bool) -> None:
        """Take one object in. Raises ValueError for amounts that make no sense; it counts as gone then."""
        key = objects.key(obj) if kind.namespaced else objects.name(obj)
        old = self._found[kind].pop(key, None)
        self.version += 1
        self.volumes_version += kind == VOLUME
        if kind == VOLUME and old is not None:
            self._unfile(key, old)
        if gone:
            return
        if kind == VOLUME:
            capacity_of(obj)
            self._file(key, obj)
        elif kind == CLAIM:
            size_of(obj)
        self._found[kind][key] = obj

    def _file(self, name: str, volume: Obj) -> None:
        self._by_class.setdefault(volume_class(volume), {})[name] = volume
        self._sorted.pop(volume_class(volume), None)
        if owner := _owner(volume):
            self._reserved.setdefault(owner, {})[name] = volume

    def _unfile(self, name: str, volume: Obj) -> None:
        del self._by_class[volume_class(volume)][name]
        self._sorted.pop(volume_class(volume), None)
        if owner := _owner(volume):
            del self._reserved[owner][name]
            if not self._reserved[owner]:
                del self._reserved[owner]

    # -- look-ups --------------------------------------------------------------------------------------------------------

    def claim(self, key: str) -> Obj | None:
        """A claim by `namespace/name`."""
        return self._found[CLAIM].get(key)

    def volume(self, name: str) -> Obj | None:
        """A volume by its name."""
        return self._found[VOLUME].get(name)

    def volume_count(self) -> int:
        """How many volumes there are."""
        return len(self._found[VOLUME])

    def storage_class(self, claim: Obj) -> Obj | None:
        """The StorageClass of a claim; None when it names none, or one that is not there."""
        return self._found[STORAGE_CLASS].get(claim_class(claim))

    def volumes(self, storage_class: str) -> list[Obj]:
        """The volumes of a class, smallest first, ties by name."""
        found = self._sorted.get(storage_class)
        if found is None:
            members = self._by_class.get(storage_class, {}).values()
            found = self._sorted[storage_class] = sorted(members, key=lambda each: (capacity_of(each), objects.name(each)))
        return found

    def reserved(self, claim: str) -> list[Obj]:
        """The volumes that name a claim as theirs, smallest first."""
        members = self._reserved.get(claim, {}).values()
        return sorted(members, key=lambda each: (capacity_of(each), objects.name(each)))

    def is_delayed(self, claim: Obj) -> bool:
        """Whether the claim is bound only once a pod that uses it has a node."""
        found = self.storage_class(claim)
        return found is not None and found.get("volumeBindingMode") == DELAYED

    def tracks_capacity(self, driver: str) -> bool:
        """Whether a driver says by CSIStorageCapacity objects how much it has left where."""
        found = self._found[CSI_DRIVER].get(driver)
        return found is not None and bool((found.get("spec") or {}).get("storageCapacity"))

    def capacities(self, storage_class: str) -> Iterator[Obj]:
        """What is left of a class, segment by segment."""
        return (each for each in self._found[CSI_CAPACITY].values() if each.get("storageClassName") == storage_class)

    def limits(self) -> dict[str, dict[str, int]]:
        """By node and CSI driver how many volumes may be attached, where the node says so."""
        found: dict[str, dict[str, int]] = {}
        for node, obj in self._found[CSI_NODE].items():
            for driver in (obj.get("spec") or {}).get("drivers") or ():
                count = (driver.get("allocatable") or {}).get("count")
                if isinstance(count, int) and not isinstance(count, bool):
                    found.setdefault(node, {})[str(driver.get("name"))] = count
        return found

    # -- promises --------------------------------------------------------------------------------------------------------

    def owner_of(self, volume: str) -> str:
        """The claim that a volume is promised to; empty for none."""
        return self._taken.get(volume, "")

    def promise(self, choice: VolumeChoice, holder: str) -> None:
        """A task will have its claim met in this way."""
        found = self.promises.get(choice.claim)
        if found is None:
            found = self.promises[choice.claim] = Promise(choice)
            if choice.volume:
                self._taken[choice.volume] = choice.claim
            self.version += 1
        found.holders.add(holder)

    def withdraw(self, claim: str, holder: str) -> None:
        """A task does not need the promise any more."""
        found = self.promises.get(claim)
        if found is None:
            return
        found.holders.discard(holder)
        if not found.holders:
            del self.promises[claim]
            self._taken.pop(found.choice.volume, None)
            self.version += 1

    def settle(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Forget promises that the cluster keeps by now, or that were made to tasks that do not count on them any more."""
        for claim, promise in list(self.promises.items()):
            kept = self._is_kept(promise.choice)
            for holder in list(promise.holders):
                task = tasks.get(holder)
                if kept or task is None or promise.choice not in task.supply.volumes:
                    self.withdraw(claim, holder)

    def _is_kept(self, choice: VolumeChoice) -> bool:
        claim = self.claim(choice.claim)
        if claim is None or is_bound(claim):
            return True
        if not choice.volume:
            return bool(objects.annotations(claim).get(SELECTED_NODE))
        volume = self.volume(choice.volume)
        return volume is None or bool((volume.get("spec") or {}).get("claimRef"))


def _owner(volume: Obj) -> str:
    """The claim that a volume names as its own; empty for none."""
    owner = (volume.get("spec") or {}).get("claimRef")
    return f"{owner.get('namespace')}/{owner.get('name')}" if owner else ""


# -- reading objects -------------------------------------------------------------------------------------------------------


def mounted(pod: Mapping[str, Any]) -> list[str]:
    """The names of the claims that a pod mounts, those made for its ephemeral volumes included, each once."""
    found: dict[str, None] = {}
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            found[str(name)] = None
        elif volume.get("ephemeral"):
            found[f"{pod['metadata']['name']}-{volume.get('name')}"] = None
    return list(found)


def is_ephemeral(pod: Mapping[str, Any], claim: str) -> bool:
    """Whether a claim of this name is one made for an ephemeral volume of the pod."""
    name = pod["metadata"]["name"]
    return any(v.get("ephemeral") and claim == f"{name}-{v.get('name')}" for v in pod["spec"].get("volumes") or ())


def driver_of(volume: Obj) -> tuple[str, str]:
    """CSI driver and handle of a volume; empty texts when it is of another make."""
    csi = (volume.get("spec") or {}).get("csi") or {}
    return str(csi.get("driver") or ""), str(csi.get("volumeHandle") or "")
