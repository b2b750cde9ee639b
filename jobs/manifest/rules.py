"""What a Job is refused for, on create and on update. Every check adds to one list, so that all faults are told at once."""

from __future__ import annotations

import re
from typing import Any

from cluster import objects
from cluster.errors import FieldError, NotFound
from cluster.kinds import QUEUE
from cluster.names import JOB_ADVICE, LABEL_ADVICE, SUBDOMAIN_ADVICE, is_dns_label, is_dns_subdomain
from cluster.objects import GPU_INDICES
from cluster.pointers import pointer
from cluster.port import Obj, Reader
from cluster.quantities import parse_quantity
from cluster.said import said
from cluster.validation import Faults, check_shape, prune
from jobs.keys import pod_name
from jobs.manifest.graph import check_dependencies
from jobs.manifest.outcome import check_made_pods
from jobs.manifest.partitions import check_partitions, check_topology
from jobs.manifest.policies import check_policies
from jobs.manifest.shapes import JobShape
from jobs.manifest.template import check_labels, check_pod_spec
from jobs.manifest.totals import check_job_totals, check_minimum
from jobs.manifest.update import check_update
from jobs.plugins import REGISTRY
from queues.tree import ROOT, Tree

_LONGEST_POD_NAME = 63
_ROLE_NAMES = re.compile(r"/spec/tasks(/[0-9]+(/name|/dependsOn.*)?)?")
_SUFFIX = "xxxxx"  # what generateName will add


def validate(obj: Obj, reader: Reader, old: Obj | None = None) -> list[FieldError]:
    """Every fault of a Job, each with its place and what would be right; an empty list lets it in.

    With `old` (an update) only what may change is looked at. `reader` is asked for the queue.
    """
    shape = check_shape(JobShape, obj)
    faults = Faults(shape)
    job = prune(obj, shape)
    if not isinstance(job.get("spec"), dict):
        return faults
    if old is not None:
        check_update(job, old, faults)
        return faults
    found = Faults()
    _check_meta(job.get("metadata") or {}, found)
    _check_tasks(job, found)
    _check_sums(job["spec"], shape, found)
    check_policies(job["spec"].get("policies") or [], "/spec/policies", found)
    check_topology(job["spec"].get("networkTopology") or {}, "/spec/networkTopology", found)
    _check_plugins(job, found)
    _check_volumes(job["spec"].get("volumes") or [], found)
    if not any(_ROLE_NAMES.fullmatch(fault.pointer) for fault in shape):  # else names that were meant would be missed
        check_dependencies(job["spec"].get("tasks") or [], found)
    if not shape and not found:
        check_made_pods(job, _name_of(job), found)
    _check_queue(job["spec"].get("queue") or "default", reader, found)
    return faults.with_apart(found)


def _check_meta(meta: dict[str, Any], faults: Faults) -> None:
    name, generated = meta.get("name") or "", meta.get("generateName") or ""
    if not name and not generated:
        faults.add("/metadata/name", said("is required: %(advice)s", advice=SUBDOMAIN_ADVICE), "required")
    elif not is_dns_subdomain(name or generated + _SUFFIX) or len(name or generated + _SUFFIX) > _LONGEST_POD_NAME:
        field = "name" if name else "generateName"
        faults.add(
            f"/metadata/{field}", said("%(name)r is no job name: %(advice)s", name=name or generated, advice=JOB_ADVICE), "format"
        )
    check_labels(meta, "/metadata", faults)


def _name_of(job: dict[str, Any]) -> str:
    """The name that the job will have, its random letters left open."""
    meta = job.get("metadata") or {}
    return meta.get("name") or (meta.get("generateName") or "") + _SUFFIX


def _check_tasks(job: dict[str, Any], faults: Faults) -> None:
    tasks = job["spec"].get("tasks") or []
    name = _name_of(job)
    if not tasks:
        faults.add("/spec/tasks", said("must have at least one task"), "required")
    seen: dict[str, int] = {}
    for index, task in enumerate(tasks):
        where, role = f"/spec/tasks/{index}", task.get("name") or f"default{index}"
        if not is_dns_label(role):
            faults.add(f"{where}/name", said("%(role)r is no DNS label: %(advice)s", role=role, advice=LABEL_ADVICE), "format")
        elif role in seen:
            faults.add(
                f"{where}/name",
                said("task %(other)s is called %(role)r too: give each its own name", other=seen[role], role=role),
                "duplicate",
            )
        elif len(probe := pod_name(name, role, index)) > _LONGEST_POD_NAME:
            over = len(probe) - _LONGEST_POD_NAME
            faults.add(
                f"{where}/name",
                said("makes pod names like %(probe)r, %(over)s characters too long: shorten a name", probe=probe, over=over),
                "range",
            )
        seen.setdefault(role, index)
        _check_task(task, where, faults)


def _check_task(task: dict[str, Any], where: str, faults: Faults) -> None:
    check_minimum(task, where, faults)
    check_policies(task.get("policies") or [], f"{where}/policies", faults)
    template = task.get("template") or {}
    check_labels(template.get("metadata") or {}, f"{where}/template/metadata", faults)
    spec = template.get("spec") or {}
    check_pod_spec(spec, f"{where}/template/spec", faults)
    _check_left_to_scheduler(template, f"{where}/template", faults)
    if task.get("topologyPolicy") not in (None, "", "none"):
        _check_numa(spec, f"{where}/template/spec", faults)
    if task.get("partitionPolicy"):
        check_partitions(task, where, faults)


def _check_left_to_scheduler(template: dict[str, Any], where: str, faults: Faults) -> None:
    """A pod that names its node would run there whether it fits or not, and one that names its GPUs would seem to hold them."""
    if (template.get("spec") or {}).get("nodeName"):
        told = said("is the scheduler's to say: narrow its choice by nodeSelector or affinity")
        faults.add(f"{where}/spec/nodeName", told, "forbidden")
    if GPU_INDICES in ((template.get("metadata") or {}).get("annotations") or {}):
        place = where + pointer("metadata", "annotations", GPU_INDICES)
        faults.add(place, said("is the scheduler's to say: ask for GPUs in the containers' resources"), "forbidden")


def _check_numa(spec: dict[str, Any], where: str, faults: Faults) -> None:
    """A NUMA policy needs whole CPUs in every container."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or []):
            resources = container.get("resources") or {}
            amounts = resources.get("requests") or resources.get("limits") or {}
            cpu = amounts.get("cpu")
            if cpu is None or not parse_quantity(cpu) or parse_quantity(cpu) % 1:
                faults.add(
                    f"{where}/{field}/{index}/resources/requests/cpu",
                    said("must be a whole number of CPUs, 1 or more, because the task has a topologyPolicy"),
                    "range",
                )


def _check_sums(spec: dict[str, Any], shape: list[FieldError], faults: Faults) -> None:
    if any(fault.pointer.endswith(("/replicas", "/minAvailable")) for fault in shape):
        return  # the sums would be of other numbers than were meant
    check_job_totals(spec, faults)


def _check_plugins(job: dict[str, Any], faults: Faults) -> None:
    spec, name = job["spec"], _name_of(job)
    for title, arguments in (spec.get("plugins") or {}).items():
        if title not in REGISTRY:
            faults.add(
                pointer("spec", "plugins", title),
                said("is no job plugin: known are %(names)s", names=", ".join(REGISTRY)),
                "unknown",
            )
        elif all(isinstance(argument, str) for argument in arguments):  # what is no text was told already
            plugin = REGISTRY[title](arguments)
            for fault in plugin.arguments.faults:
                faults.add(plugin.at(fault.index), fault.message, fault.code)
            for found in () if plugin.arguments.faults else plugin.check(spec, name):
                faults.add(found.pointer, found.message, found.code)


def _check_volumes(volumes: list[dict[str, Any]], faults: Faults) -> None:
    paths: set[str] = set()
    for index, volume in enumerate(volumes):
        where, path, name = f"/spec/volumes/{index}", volume.get("mountPath") or "", volume.get("volumeClaimName") or ""
        if not path:
            faults.add(f"{where}/mountPath", said("is required: the path at which every container gets the volume"), "required")
        elif ":" in path:
            faults.add(f"{where}/mountPath", said("%(path)r must not contain ':'", path=path), "format")
        elif path in paths:
            faults.add(f"{where}/mountPath", said("two volumes cannot both be mounted at %(path)r", path=path), "duplicate")
        paths.add(path)
        if name and "volumeClaim" in volume:
            faults.add(
                f"{where}/volumeClaimName",
                said("stands beside volumeClaim: name a claim or describe one"),
                "conflict",
            )
        elif not name and "volumeClaim" not in volume:
            faults.add(f"{where}/volumeClaimName", said("is required, or a volumeClaim that describes a new one"), "required")
        if name and not is_dns_subdomain(name):
            faults.add(
                f"{where}/volumeClaimName",
                said("%(name)r is no claim name: %(advice)s", name=name, advice=SUBDOMAIN_ADVICE),
                "format",
            )


def _check_queue(name: str, reader: Reader, faults: Faults) -> None:
    where = "/spec/queue"
    try:
        queue = reader.get(QUEUE, name)
    except NotFound:
        faults.add(where, said("there is no queue %(name)r: create it first or name another", name=name), "not_found")
        return
    state = (queue.get("status") or {}).get("state") or "Open"
    children = [] if name == ROOT else [objects.name(child) for child in Tree(reader.list(QUEUE).items).children(name)]
    if name == ROOT:
        faults.add(where, said("root only holds other queues: name one below it, such as 'default'"), "forbidden")
    elif children:
        faults.add(
            where,
            said("%(name)r only holds other queues: name one below it, such as %(child)r", name=name, child=children[0]),
            "forbidden",
        )
    if state != "Open":
        faults.add(
            where,
            said("queue %(name)r is %(state)s and takes no new jobs: open it or name another", name=name, state=state),
            "closed",
        )
