"""The pod that a job makes for one copy of one role. Pure: the same job gives the same pod."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from cluster import objects
from cluster.port import Obj
from jobs import keys
from jobs.keys import group_name, pod_name
from jobs.roles import partition_of

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_FROM_ANNOTATIONS = (keys.PREEMPTABLE, keys.COOLDOWN_TIME, keys.REVOCABLE_ZONE)
_FROM_LABELS = (keys.PREEMPTABLE, keys.COOLDOWN_TIME)


def build_pod(job: Obj, task: Obj, index: int) -> Obj:
    """The pod of a role's index-th copy: the template, named, owned, labelled and with the job's volumes.

    `restartPolicy` stays as the template gives it.
    """
    template = objects.clone(task.get("template") or {})
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    name = pod_name(objects.name(job), task["name"], index)
    spec["schedulerName"] = spec.get("schedulerName") or job["spec"].get("schedulerName") or ""
    if not spec.get("priorityClassName") and job["spec"].get("priorityClassName"):
        spec["priorityClassName"] = job["spec"]["priorityClassName"]
    mount_volumes(job, spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": objects.namespace(job),
            "labels": (meta.get("labels") or {}) | _labels(job, task, index),
            "annotations": (meta.get("annotations") or {}) | _annotations(job, task, index),
            "ownerReferences": [objects.owner_reference(job)],
        },
        "spec": spec,
    }


def claim_name(job: Obj, position: int) -> str:
    """The claim behind a job's volume: the one it names, or the one that is made for it.

    A made one's name is drawn from the job's uid, so that a controller that begins anew comes to the same.
    """
    volume = job["spec"]["volumes"][position]
    named = volume.get("volumeClaimName")
    return str(named) if named else f"{objects.name(job)}-pvc-{_letters(objects.uid(job), str(position))}"


def mount_volumes(job: Obj, spec: Obj) -> None:
    """Add the job's volumes to a pod spec; of two that name the same claim only the first is mounted."""
    mounted: set[str] = set()
    for position, volume in enumerate(job["spec"].get("volumes") or []):
        claim = claim_name(job, position)
        if claim in mounted:
            continue
        mounted.add(claim)
        name = f"{objects.name(job)}-{_letters(objects.uid(job), claim)}"
        spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in spec.get("containers") or ():
            container.setdefault("volumeMounts", []).append({"name": name, "mountPath": volume["mountPath"]})


def _labels(job: Obj, task: Obj, index: int) -> dict[str, str]:
    labels = {
        keys.TASK_INDEX: str(index),
        keys.TASK_SPEC: task["name"],
        keys.JOB_NAME: objects.name(job),
        keys.JOB_NAMESPACE: objects.namespace(job),
        keys.QUEUE_NAME: job["spec"]["queue"],
    }
    if partition := partition_of(task, index):
        labels[keys.PARTITION_ID] = partition
    given = objects.labels(job)
    if is_forwarded(job):
        labels[keys.FORWARDING] = "true"
    return labels | {key: given[key] for key in _FROM_LABELS if key in given}


def _annotations(job: Obj, task: Obj, index: int) -> dict[str, str]:
    status = job.get("status") or {}
    annotations = {
        keys.TASK_INDEX: str(index),
        keys.TASK_SPEC: task["name"],
        keys.GROUP_NAME: group_name(job),
        keys.JOB_NAME: objects.name(job),
        keys.QUEUE_NAME: job["spec"]["queue"],
        keys.JOB_VERSION: str(status.get("version") or 0),
        keys.JOB_RETRY_COUNT: str(status.get("retryCount") or 0),
        keys.TEMPLATE_UID: f"{objects.name(job)}-{task['name']}",
    }
    if task.get("topologyPolicy"):
        annotations[keys.NUMA_POLICY] = task["topologyPolicy"]
    if is_forwarded(job):
        annotations[keys.FORWARDING] = "true"
    return annotations | inherited(objects.annotations(job))


def is_forwarded(job: Obj) -> bool:
    """Whether the job may be run by other clusters too."""
    return objects.annotations(job).get(keys.FORWARDING) == "true"


def inherited(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations that a job hands on to its pods, and a bare pod to its PodGroup."""
    found = {key: annotations[key] for key in _FROM_ANNOTATIONS if key in annotations}
    for key in (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE):
        if key in annotations:
            found[key] = annotations[key]
            break
    return found


def _letters(*parts: str) -> str:
    """Twelve characters of 0-9a-z, always the same for the same parts."""
    number = int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:10])
    letters = []
    for _ in range(12):
        number, rest = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[rest])
    return "".join(letters)
