"""A new draft from a job that ran: the manifest less what the cluster and the portal put into it, under a free name."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection

from cluster.embedded.patches import merge
from cluster.port import Obj
from cluster.said import said
from jobs import keys
from jobs.models import Job
from jobs.pages.yamlview import dump

_MADE_BY_CLUSTER = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "ownerReferences", "finalizers", "selfLink", "generateName",
)  # fmt: skip
_OURS = (keys.OWNER, keys.CLONED_FROM, "kubectl.kubernetes.io/last-applied-configuration")
MAX_NAME = 63


def manifest(job: Job, patch: Obj | None = None) -> str:
    """The draft's YAML, changed by a merge patch. Raises ValueError for what is no Volcano Job, such as a group of bare pods."""
    if job.manifest.get("kind") != "Job" or not isinstance(job.manifest.get("spec"), dict):
        raise ValueError(said("%(job)s was not submitted as a Job", job=job))
    taken = Job.objects.filter(namespace=job.namespace, deleted_at=None).values_list("name", flat=True)
    clone = stripped(job.manifest, next_name(job.name, set(taken)))
    clone["metadata"].setdefault("annotations", {})[keys.CLONED_FROM] = job.uid
    return dump(merge(clone, patch or {}))


def written(job: Job) -> str:
    """The YAML of a job as its author would have written it, under its own name."""
    return dump(stripped(job.manifest, job.name)) if isinstance(job.manifest.get("spec"), dict) else dump(job.manifest)


def stripped(obj: Obj, name: str) -> Obj:
    """The object as somebody would have written it, with another name."""
    clone = copy.deepcopy(obj)
    clone.pop("status", None)
    meta = clone["metadata"] = {key: value for key, value in clone["metadata"].items() if key not in _MADE_BY_CLUSTER}
    meta["name"] = name
    for part in ("annotations", "labels"):
        kept = {key: value for key, value in (meta.get(part) or {}).items() if key not in _OURS}
        meta[part] = kept
        if not kept:
            del meta[part]
    for volume in clone["spec"].get("volumes") or ():
        if isinstance(volume, dict) and volume.get("volumeClaim"):
            volume.pop("volumeClaimName", None)  # the controller invented it
    return clone


def next_name(name: str, taken: Collection[str]) -> str:
    """The next free number behind the name: `clip-3` gives `clip-4`, `clip` gives `clip-2`."""
    found = re.fullmatch(r"(.*?)-?(\d{1,6})?", name)
    stem, number = (found[1] or name, int(found[2] or 1)) if found else (name, 1)
    while True:
        number += 1
        tail = f"-{number}"
        candidate = stem[: MAX_NAME - len(tail)].rstrip("-.") + tail
        if candidate not in taken:
            return candidate
