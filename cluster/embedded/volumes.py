"""The controllers of volumes of the embedded cluster: claims are bound, volumes made for them, and both cleaned up.

A small part of what Kubernetes does: any provisioner of a StorageClass is played, at once. A cluster in which no
StorageClass exists makes `standard` for the first claim that names none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from cluster import objects, volumes
from cluster.errors import AlreadyExists, Conflict, NotFound
from cluster.kinds import CLAIM, NODE, STORAGE_CLASS, VOLUME
from cluster.port import Cluster, Obj, WatchEvent

KINDS = (STORAGE_CLASS, VOLUME, CLAIM)
STANDARD = "standard"
_MANAGER = "volume-controller"


class VolumeKeeper:
    """Brings claims and volumes together. `take` notes what changed, `work` acts on it; all in one thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: set[tuple[str, str]] = set()
        self._claims: dict[tuple[str, str], None] = {}
        self._volumes: dict[str, None] = {}

    def take(self, event: WatchEvent) -> None:
        """Note what an event may have made possible."""
        obj = event.object
        if event.kind == CLAIM:
            key = objects.namespace(obj), objects.name(obj)
            if event.type == "DELETED":
                self._waiting.discard(key)
                if name := (obj.get("spec") or {}).get("volumeName"):
                    self._volumes[name] = None
            elif not volumes.is_bound(obj):
                self._claims[key] = None
                self._waiting.add(key)
            else:
                self._waiting.discard(key)
        elif event.kind == VOLUME and event.type != "DELETED":
            self._volumes[objects.name(obj)] = None
            owner = (obj.get("spec") or {}).get("claimRef")
            if owner:
                self._claims[str(owner.get("namespace")), str(owner.get("name"))] = None
            else:
                self._claims.update(dict.fromkeys(sorted(self._waiting)))
        elif event.kind == STORAGE_CLASS:
            self._claims.update(dict.fromkeys(sorted(self._waiting)))

    def work(self) -> int:
        """Do all that is noted; how many objects were written."""
        claims, self._claims = self._claims, {}
        names, self._volumes = self._volumes, {}
        return sum(self._tried(self._claim, key) for key in claims) + sum(self._tried(self._volume, name) for name in names)

    def make_for(self, pod: Obj) -> int:
        """The claims of a pod's ephemeral volumes; how many were made."""
        made = 0
        for claim in ephemeral_claims(pod):
            with contextlib.suppress(AlreadyExists):
                self._cluster.create(CLAIM, claim, field_manager=_MANAGER)
                made += 1
        return made

    @staticmethod
    def _tried(work: Any, key: Any) -> int:
        """How many objects were written; one that changed meanwhile comes again by its event."""
        try:
            return int(work(key))
        except (NotFound, Conflict):
            return 0

    # -- claims ----------------------------------------------------------------------------------------------------------

    def _claim(self, key: tuple[str, str]) -> int:
        claim = self._cluster.get(CLAIM, key[1], key[0])
        if volumes.is_bound(claim) or objects.is_deleting(claim):
            return 0
        written = 0
        if claim["spec"].get("storageClassName") is None and (default := self._default_class()):
            body = {"spec": {"storageClassName": default}}
            claim = self._cluster.patch(CLAIM, key[1], key[0], body, field_manager=_MANAGER)
            written = 1
        volume = self._reserved(claim) or self._chosen(claim)
        return written if volume is None else written + self._bind(claim, volume)

    def _reserved(self, claim: Obj) -> Obj | None:
        """The volume that names the claim, or that the claim names and nobody else has."""
        key = objects.key(claim)
        named = claim["spec"].get("volumeName")
        for volume in self._cluster.list(VOLUME).items:
            owner = (volume.get("spec") or {}).get("claimRef")
            if (
                owner
                and f"{owner.get('namespace')}/{owner.get('name')}" == key
                and owner.get("uid") in (None, "", objects.uid(claim))
            ):
                return volume
            if not owner and named == objects.name(volume):
                return volume
        return None

    def _chosen(self, claim: Obj) -> Obj | None:
        """The volume for a claim that need not wait any more: the smallest that fits, or one made for it."""
        if claim["spec"].get("volumeName"):
            return None
        name = volumes.claim_class(claim)
        storage_class = self._get_class(name) if name else None
        node = objects.annotations(claim).get(volumes.SELECTED_NODE)
        if storage_class is not None and storage_class.get("volumeBindingMode") == volumes.DELAYED:
            return self._provision(claim, storage_class, node) if node else None
        fitting = [
            v for v in self._cluster.list(VOLUME).items if volumes.volume_class(v) == name and volumes.would_do(v, claim, "")
        ]
        if fitting:
            return min(fitting, key=lambda each: (volumes.capacity_of(each), objects.name(each)))
        return self._provision(claim, storage_class, node) if storage_class is not None else None

    def _provision(self, claim: Obj, storage_class: Obj, node: str | None) -> Obj | None:
        if (storage_class.get("provisioner") or volumes.NO_PROVISIONER) == volumes.NO_PROVISIONER:
            return None
        keys = [
            str(each.get("key"))
            for term in storage_class.get("allowedTopologies") or ()
            for each in term.get("matchLabelExpressions") or ()
        ]
        labels = objects.labels(self._cluster.get(NODE, node)) if node and keys else {}
        volume = volumes.provisioned(claim, storage_class, labels, keys)
        try:
            return self._cluster.create(VOLUME, volume, field_manager=_MANAGER)
        except AlreadyExists:
            return self._cluster.get(VOLUME, objects.name(volume))

    def _bind(self, claim: Obj, volume: Obj) -> int:
        owner = (volume.get("spec") or {}).get("claimRef") or {}
        if owner.get("uid") != objects.uid(claim):
            body = volumes.reserving(claim)
            body["metadata"]["resourceVersion"] = volume["metadata"]["resourceVersion"]
            volume = self._cluster.patch(VOLUME, objects.name(volume), "", body, field_manager=_MANAGER)
        self._cluster.patch_status(VOLUME, objects.name(volume), "", {"phase": "Bound"})
        name, namespace = objects.name(claim), objects.namespace(claim)
        self._cluster.patch(CLAIM, name, namespace, volumes.binding(volume), field_manager=_MANAGER)
        self._cluster.patch_status(CLAIM, name, namespace, volumes.bound_status(volume), uid=objects.uid(claim))
        return 3

    def _get_class(self, name: str) -> Obj | None:
        try:
            return self._cluster.get(STORAGE_CLASS, name)
        except NotFound:
            return None

    def _default_class(self) -> str:
        """The StorageClass of claims that name none: the youngest of the default ones."""
        found = self._cluster.list(STORAGE_CLASS).items
        if not found:
            found = [self._cluster.create(STORAGE_CLASS, standard_class(), field_manager=_MANAGER)]
        default = [each for each in found if objects.annotations(each).get(volumes.DEFAULT_CLASS) == "true"]
        youngest = max(
            default, key=lambda each: (each["metadata"].get("creationTimestamp") or "", objects.name(each)), default=None
        )
        return objects.name(youngest) if youngest is not None else ""

    # -- volumes -----------------------------------------------------------------------------------------------------------

    def _volume(self, name: str) -> int:
        """Say that a new volume is available; clean up after a claim that is gone."""
        volume = self._cluster.get(VOLUME, name)
        spec, phase = volume.get("spec") or {}, (volume.get("status") or {}).get("phase")
        owner = spec.get("claimRef")
        if not owner:
            return self._phase(volume, "Available") if phase is None else 0
        try:
            claim = self._cluster.get(CLAIM, str(owner.get("name")), str(owner.get("namespace")))
            if owner.get("uid") in (None, "", objects.uid(claim)):
                return 0
        except NotFound:
            if not owner.get("uid"):
                return self._phase(volume, "Available") if phase is None else 0  # reserved for a claim to come
        if spec.get("persistentVolumeReclaimPolicy") == "Delete" and volumes.PROVISIONED_BY in objects.annotations(volume):
            self._cluster.delete(VOLUME, name, uid=objects.uid(volume))
            return 1
        return self._phase(volume, "Released") if phase != "Released" else 0

    def _phase(self, volume: Obj, phase: str) -> int:
        self._cluster.patch_status(VOLUME, objects.name(volume), "", {"phase": phase}, uid=objects.uid(volume))
        return 1


def standard_class() -> Obj:
    """The StorageClass of a cluster in which nobody made one."""
    return {
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.kind,
        "metadata": {"name": STANDARD, "annotations": {volumes.DEFAULT_CLASS: "true"}},
        "provisioner": "sim.basalt.dev/disk",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": volumes.DELAYED,
    }


def ephemeral_claims(pod: Obj) -> Iterator[Obj]:
    """The claims to be made for a pod's ephemeral volumes."""
    for volume in pod["spec"].get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            meta = template.get("metadata") or {}
            yield {
                "apiVersion": CLAIM.api_version,
                "kind": CLAIM.kind,
                "metadata": {
                    "name": f"{objects.name(pod)}-{volume.get('name')}",
                    "namespace": objects.namespace(pod),
                    "labels": dict(meta.get("labels") or {}),
                    "annotations": dict(meta.get("annotations") or {}),
                    "ownerReferences": [objects.owner_reference(pod)],
                },
                "spec": template.get("spec") or {},
            }
