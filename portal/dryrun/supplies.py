"""What the controllers of claims would add to files of objects: claims made for pods, and the class of those that name none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster import objects, volumes
from cluster.embedded.resourceclaims import claim_for
from cluster.embedded.volumes import ephemeral_claims, standard_class
from cluster.kinds import CLAIM, JOB, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, STORAGE_CLASS, Kind
from cluster.port import Obj
from jobs.pods import claim_name
from portal.dryrun.reading import Files, made_up_uid


class Claims:
    """Makes what is missing, each once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._there = {(kind, objects.key(obj)) for kind in (CLAIM, RESOURCE_CLAIM) for obj in files.of(kind)}
        self._templates = {objects.key(obj): obj for obj in files.of(RESOURCE_CLAIM_TEMPLATE)}
        classes = files.of(STORAGE_CLASS) or [standard_class()]
        default = [each for each in classes if objects.annotations(each).get(volumes.DEFAULT_CLASS) == "true"]
        self._default = objects.name(default[0]) if default else ""
        self._classes = [] if files.of(STORAGE_CLASS) else classes

    def of_files(self) -> Iterator[tuple[Kind, Obj]]:
        """The storage class of a cluster without any, and the claims that jobs make for themselves."""
        for each in self._classes:
            yield STORAGE_CLASS, each
        for claim in self._files.of(CLAIM):
            self._complete(claim)
        for job in self._files.of(JOB):
            for position, volume in enumerate((job.get("spec") or {}).get("volumes") or ()):
                if "volumeClaim" in volume:
                    meta = {"name": claim_name(job, position), "namespace": objects.namespace(job)}
                    yield from self._new(CLAIM, {"metadata": meta, "spec": dict(volume["volumeClaim"])})

    def of_pods(self, pods: Iterable[Obj]) -> Iterator[tuple[Kind, Obj]]:
        """The claims of pods that have none yet; the pods are told what theirs are called."""
        for pod in pods:
            for claim in ephemeral_claims(pod):
                yield from self._new(CLAIM, claim)
            status = pod.setdefault("status", {})
            said = list(status.get("resourceClaimStatuses") or ())
            known = {each.get("name") for each in said}
            for use in pod["spec"].get("resourceClaims") or ():
                template = self._templates.get(f"{objects.namespace(pod)}/{use.get('resourceClaimTemplateName')}")
                if template is not None and use.get("name") not in known:
                    claim = claim_for(pod, str(use.get("name")), template)
                    said.append({"name": use.get("name"), "resourceClaimName": objects.name(claim)})
                    yield from self._new(RESOURCE_CLAIM, claim)
            if said:
                status["resourceClaimStatuses"] = said

    def _new(self, kind: Kind, obj: Obj) -> Iterator[tuple[Kind, Obj]]:
        key = kind, objects.key(obj)
        if key not in self._there:
            self._there.add(key)
            obj["metadata"]["uid"] = made_up_uid(f"{kind.kind}/{objects.key(obj)}", "1")
            made = {"apiVersion": kind.api_version, "kind": kind.kind, **obj, "status": {}}
            yield kind, self._complete(made) if kind == CLAIM else made

    def _complete(self, claim: Obj) -> Obj:
        """A claim that names no class gets the default one."""
        if self._default and (claim.get("spec") or {}).get("storageClassName") is None:
            claim.setdefault("spec", {})["storageClassName"] = self._default
        return claim
