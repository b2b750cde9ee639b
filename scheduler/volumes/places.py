"""On which nodes the claims of a pod can be met, as masks over the rows of the node table.

Bound claims keep a pod where their volumes are. Unbound ones that wait for a consumer take, on each node, the smallest
volume there that fits, smaller claims first; what is left must be made by its class's provisioner for that node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster import objects
from cluster.port import Obj
from cluster.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    capacity_of,
    claim_class,
    is_bound,
    modes,
    size_of,
    volume_class,
    would_do,
)
from scheduler.model.resources import Mask
from scheduler.model.supply import VolumeChoice
from scheduler.volumes.catalog import Storage

if TYPE_CHECKING:
    from scheduler.plugins.kube.columns import Columns

_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_SPARE = 64
"""Answers about volumes that are gone which may stay in any case."""
_RENAMED = ("failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/")


@dataclass(slots=True, eq=False)
class Places:
    """Answers over the nodes as they are labelled now; what depends on labels alone is kept."""

    storage: Storage
    columns: Columns
    _masks: dict[str, Mask] = field(default_factory=dict)
    _reached: dict[str, tuple[Obj, Mask]] = field(default_factory=dict)
    _alike: dict[str, list[Obj]] = field(default_factory=dict)
    _free_at: int = -1

    # -- bound claims ----------------------------------------------------------------------------------------------------

    def reached(self, volume: Obj) -> Mask:
        """`[rows]`: the nodes from which a volume can be reached, by its node affinity."""
        found = self._reached.get(objects.name(volume))
        if found is None or found[0] is not volume:
            if len(self._reached) > 2 * self.storage.volume_count() + _SPARE:
                self._forget_gone()
            found = self._reached[objects.name(volume)] = volume, self._reaches(volume)
        return found[1]

    def _forget_gone(self) -> None:
        """Keep only answers about volumes that are there: those made for pods come and go with them."""
        self._reached = {name: found for name, found in self._reached.items() if self.storage.volume(name) is found[0]}

    def _reaches(self, volume: Obj) -> Mask:
        required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
        if required is None:
            return self._everywhere()
        return self._kept(
            repr(required), lambda: self._any(self.columns.matches(t) for t in required.get("nodeSelectorTerms") or ())
        )

    def in_zone(self, volume: Obj) -> Mask:
        """`[rows]`: the nodes in a volume's zones and regions, by its labels; nodes that name none at all are in all."""
        labels = {key: value for key, value in objects.labels(volume).items() if key in _ZONES}
        if not labels:
            return self._everywhere()

        def ask() -> Mask:
            homeless = ~self._any(self.columns.matches(_has(key)) for key in _ZONES)
            inside = self._everywhere()
            for key, value in labels.items():
                named = key if self.columns.matches(_has(key)).any() else key.replace(*_RENAMED)
                inside &= self.columns.matches(_in(named, value.split("__")))
            return homeless | inside

        return self._kept(f"zone {sorted(labels.items())}", ask)

    # -- claims that wait for a consumer -----------------------------------------------------------------------------------

    def waiting(self, claims: Mapping[str, Obj]) -> tuple[Mask, Mask]:
        """`[rows]`: where all of some unbound claims can be met; and where only what is left there is too little.

        Keys are `namespace/name`.
        """
        wanted = [_Want(key, claim, self._offers(key, claim), *self._provision(key, claim)) for key, claim in _by_size(claims)]
        fits, short = self._everywhere(), np.zeros(len(self.columns), np.bool_)
        for want in wanted:
            fits &= want.any_offer | want.made
            short |= want.short & ~want.any_offer
        rivals = [want for want in wanted if want.offers]
        if len(rivals) > 1:
            for row in np.flatnonzero(fits):
                taken: set[str] = set()
                for want in rivals:
                    if (name := want.first(int(row), taken)) is not None:
                        taken.add(name)
                    elif not want.made[row]:
                        fits[row] = False
        return fits, short & ~fits

    def choose(self, claims: Mapping[str, Obj], row: int) -> list[VolumeChoice] | None:
        """How unbound claims are met on a row; None when one cannot be."""
        taken: set[str] = set()
        found = []
        for key, claim in _by_size(claims):
            promise = self.storage.promises.get(key)
            if promise is not None:
                found.append(promise.choice)
                continue
            want = _Want(key, claim, self._offers(key, claim), *self._provision(key, claim))
            if (name := want.first(row, taken)) is not None:
                taken.add(name)
                found.append(VolumeChoice(key, volume=name))
            elif want.made[row]:
                found.append(VolumeChoice(key, node=self.columns.names[row]))
            else:
                return None
        return found

    def _offers(self, key: str, claim: Obj) -> list[tuple[str, Mask]]:
        """Volumes that would do for a claim, smallest first, each with the nodes that reach it."""
        promise = self.storage.promises.get(key)
        if promise is not None:
            volume = self.storage.volume(promise.choice.volume) if promise.choice.volume else None
            return [(promise.choice.volume, self.reached(volume))] if volume is not None else []
        if objects.annotations(claim).get(SELECTED_NODE):
            return []
        named, storage = (claim.get("spec") or {}).get("volumeName"), self.storage
        mine = [volume for volume in storage.reserved(key) if volume_class(volume) == claim_class(claim)]
        offers = [volume for volume in mine if would_do(volume, claim, key)]
        offers += [volume for volume in self._free(claim) if storage.owner_of(objects.name(volume)) in ("", key)]
        return [(name, self.reached(volume)) for volume in offers if (name := objects.name(volume)) and named in (None, "", name)]

    def _free(self, claim: Obj) -> list[Obj]:
        """The volumes of nobody that would do for a claim, and for all that ask alike, smallest first."""
        if self._free_at != self.storage.volumes_version:
            self._free_at = self.storage.volumes_version
            self._alike.clear()
        spec = claim.get("spec") or {}
        alike = repr([claim_class(claim), size_of(claim), sorted(modes(spec)), spec.get("volumeMode"), spec.get("selector")])
        found = self._alike.get(alike)
        if found is None:
            volumes = self.storage.volumes(claim_class(claim))
            found = self._alike[alike] = [
                volume for volume in volumes if not (volume.get("spec") or {}).get("claimRef") and would_do(volume, claim, "")
            ]
        return found

    def _provision(self, key: str, claim: Obj) -> tuple[Mask, Mask]:
        """`[rows]`: where a volume can be made for the claim, and where there is only too little room left for it."""
        nowhere: Mask = np.zeros(len(self.columns), np.bool_)
        found, promise = self.storage.storage_class(claim), self.storage.promises.get(key)
        if promise is not None:
            return (self._at(promise.choice.node) if promise.choice.node else nowhere), nowhere
        if found is None or (found.get("provisioner") or NO_PROVISIONER) == NO_PROVISIONER:
            return nowhere, nowhere
        if selected := objects.annotations(claim).get(SELECTED_NODE):
            return self._at(selected), nowhere
        if (claim.get("spec") or {}).get("volumeName"):
            return nowhere, nowhere
        allowed = self._allowed(found)
        enough = self._has_room(found, size_of(claim))
        return allowed & enough, allowed & ~enough

    def _allowed(self, storage_class: Obj) -> Mask:
        terms = storage_class.get("allowedTopologies") or ()
        if not terms:
            return self._everywhere()

        def ask() -> Mask:
            found = []
            for term in terms:
                inside = self._everywhere()
                for each in term.get("matchLabelExpressions") or ():
                    inside &= self.columns.matches(_in(str(each.get("key")), list(map(str, each.get("values") or ()))))
                found.append(inside)
            return self._any(found)

        return self._kept(f"allowed {terms!r}", ask)

    def _has_room(self, storage_class: Obj, size: int) -> Mask:
        """`[rows]`: where the driver says that it has room for so many bytes; everywhere, for one that says nothing."""
        if not self.storage.tracks_capacity(str(storage_class["provisioner"])):
            return self._everywhere()
        enough = []
        for each in self.storage.capacities(objects.name(storage_class)):
            most = each.get("maximumVolumeSize") or each.get("capacity")
            topology = each.get("nodeTopology")
            if most is None or topology is None or capacity_of({"spec": {"capacity": {"storage": most}}}) < size:
                continue
            enough.append(self._kept(f"segment {topology!r}", lambda topology=topology: self._selected(topology)))
        return self._any(enough)

    def _selected(self, selector: Mapping[str, Any]) -> Mask:
        """`[rows]`: nodes whose labels a LabelSelector takes."""
        pairs = [{"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()]
        expressions = [*pairs, *(selector.get("matchExpressions") or ())]
        return self.columns.matches({"matchExpressions": expressions}) if expressions else self._everywhere()

    # -- masks -----------------------------------------------------------------------------------------------------------

    def _everywhere(self) -> Mask:
        return np.ones(len(self.columns), np.bool_)

    def _at(self, node: str) -> Mask:
        return np.array([name == node for name in self.columns.names], np.bool_)

    def _any(self, masks: Iterable[Mask]) -> Mask:
        found: Mask = np.zeros(len(self.columns), np.bool_)
        for mask in masks:
            found |= mask
        return found

    def _kept(self, key: str, ask: Any) -> Mask:
        found = self._masks.get(key)
        if found is None:
            found = self._masks[key] = ask()
        return found


@dataclass(slots=True)
class _Want:
    """One unbound claim: volumes that would do, where one can be made, where there is too little room for one."""

    key: str
    claim: Obj
    offers: list[tuple[str, Mask]]
    made: Mask
    short: Mask
    any_offer: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.any_offer = np.zeros(len(self.made), np.bool_)
        for _, mask in self.offers:
            self.any_offer |= mask

    def first(self, row: int, taken: set[str]) -> str | None:
        """The first volume that is to be had on a row."""
        return next((name for name, mask in self.offers if mask[row] and name not in taken), None)


def _by_size(claims: Mapping[str, Obj]) -> Sequence[tuple[str, Obj]]:
    return sorted(claims.items(), key=lambda each: (size_of(each[1]), each[0]))


def _in(key: str, values: list[str]) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}


def _has(key: str) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


def unbound(claims: Mapping[str, Obj]) -> dict[str, Obj]:
    """Those of some claims that have no volume yet."""
    return {key: claim for key, claim in claims.items() if not is_bound(claim)}
