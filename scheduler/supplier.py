"""Writes what a task was given into the cluster before its pod is bound, and takes it back when the bind fails.

As Kubernetes's scheduler does it: an existing volume is reserved by its claimRef, one that is still to be made is asked for
by the claim's selected-node; devices go into the status of the resource claim, which is reserved for the pod.
"""

from __future__ import annotations

from cluster import objects, volumes
from cluster.errors import ApiError, Conflict, NotFound
from cluster.kinds import CLAIM, RESOURCE_CLAIM, VOLUME
from cluster.port import Binding, Cluster, Obj
from scheduler.model.supply import DeviceChoice, Supply, VolumeChoice

_TRIES = 5


class Supplier:
    """Over one cluster. Everything may be written twice: what is there already is left as it is."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def write(self, binding: Binding, supply: Supply) -> None:
        """All that a pod was given; on a refusal its devices are let go again. Raises ApiError."""
        done: list[DeviceChoice] = []
        try:
            for choice in supply.devices:
                done.append(choice)
                self._reserve(binding, choice)
            for volume in supply.volumes:
                self._volume(volume, binding.node)
        except ApiError:
            self.take_back(binding, Supply(devices=tuple(done)))
            raise

    def take_back(self, binding: Binding, supply: Supply) -> None:
        """The pod does not run there after all. Claims keep volumes that were reserved or asked for, as in Kubernetes."""
        for choice in supply.devices:
            try:
                self._unreserve(binding, choice)
            except ApiError:
                continue  # the controller of resource claims lets go what nobody uses

    # -- volumes -----------------------------------------------------------------------------------------------------------

    def _volume(self, choice: VolumeChoice, node: str) -> None:
        namespace, _, name = choice.claim.partition("/")
        claim = self._cluster.get(CLAIM, name, namespace)
        if (claim.get("spec") or {}).get("volumeName"):
            return
        if choice.volume:
            volume = self._cluster.get(VOLUME, choice.volume)
            owner = (volume.get("spec") or {}).get("claimRef")
            if owner and owner.get("uid") not in (None, "", objects.uid(claim)):
                raise Conflict(f"volume {choice.volume} belongs to {owner.get('namespace')}/{owner.get('name')}")
            version = volume["metadata"]["resourceVersion"]
            body = volumes.reserving(claim)
            self._cluster.patch(VOLUME, choice.volume, "", _at(body, version))
            return
        selected = objects.annotations(claim).get(volumes.SELECTED_NODE)
        if selected and selected != node:
            raise Conflict(f"the volume of claim {choice.claim} is being made for node {selected}")
        if not selected:
            body = {"metadata": {"annotations": {volumes.SELECTED_NODE: node}}}
            self._cluster.patch(CLAIM, name, namespace, _at(body, claim["metadata"]["resourceVersion"]))

    # -- devices -----------------------------------------------------------------------------------------------------------

    def _reserve(self, binding: Binding, choice: DeviceChoice) -> None:
        namespace, _, name = choice.claim.partition("/")
        for left in range(_TRIES - 1, -1, -1):
            claim = self._cluster.get(RESOURCE_CLAIM, name, namespace)
            status = claim.get("status") or {}
            users = list(status.get("reservedFor") or ())
            if any(user.get("uid") == binding.uid for user in users):
                return
            there = status.get("allocation")
            if there is None and choice.allocation is None:
                raise Conflict(f"resource claim {choice.claim} lost its devices")
            if there is not None and choice.allocation is not None and there != choice.allocation:
                raise Conflict(f"resource claim {choice.claim} was given other devices")
            if objects.CLAIM_PROTECTION not in (claim["metadata"].get("finalizers") or ()):
                finalizers = [*(claim["metadata"].get("finalizers") or ()), objects.CLAIM_PROTECTION]
                body: Obj = {"metadata": {"finalizers": finalizers}}
                claim = self._cluster.patch(RESOURCE_CLAIM, name, namespace, _at(body, claim["metadata"]["resourceVersion"]))
            user = {"resource": "pods", "name": binding.name, "uid": binding.uid}
            new = {"allocation": there or choice.allocation, "reservedFor": [*users, user]}
            try:
                self._status(claim, new)
                return
            except Conflict:
                if not left:
                    raise

    def _unreserve(self, binding: Binding, choice: DeviceChoice) -> None:
        namespace, _, name = choice.claim.partition("/")
        for _ in range(_TRIES):
            try:
                claim = self._cluster.get(RESOURCE_CLAIM, name, namespace)
                users = [user for user in (claim.get("status") or {}).get("reservedFor") or () if user.get("uid") != binding.uid]
                mine = not users and choice.allocation is not None
                self._status(claim, {"reservedFor": users, **({"allocation": None} if mine else {})})
                return
            except Conflict:
                continue
            except NotFound:
                return

    def _status(self, claim: Obj, status: Obj) -> None:
        meta = claim["metadata"]
        version, uid = meta["resourceVersion"], meta["uid"]
        self._cluster.patch_status(RESOURCE_CLAIM, meta["name"], meta["namespace"], status, resource_version=version, uid=uid)


def _at(body: Obj, version: str) -> Obj:
    """A merge patch that holds only for this version of the object."""
    return {**body, "metadata": {**(body.get("metadata") or {}), "resourceVersion": version}}
