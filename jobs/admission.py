"""Admission of what makes up a job: Job, PodGroup, Pod, Command, PriorityClass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from cluster.admission import Request, Rules
from cluster.errors import FieldError, NotFound
from cluster.kinds import (
    COMMAND,
    CRON_JOB,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    NAMESPACE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from cluster.names import SUBDOMAIN_ADVICE, is_dns_subdomain
from cluster.pointers import pointer
from cluster.said import said
from cluster.validation import Faults, check_shape, prune, without_nulls
from jobs import advice, keys, manifest
from jobs.cron.admission import CronRules
from jobs.flows.admission import FlowRules, TemplateRules
from jobs.lifecycle import Action
from jobs.manifest.companions import CommandShape, GroupShape, PriorityClassShape
from jobs.manifest.partitions import check_topology
from jobs.manifest.shapes import MetaShape, PodShape
from jobs.manifest.template import check_labels, check_pod_spec
from queues.operations import ACTIONS as QUEUE_ACTIONS

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
HIGHEST_USER_PRIORITY = 1_000_000_000

_BUDGET = re.compile(r"[1-9][0-9]*|[1-9][0-9]?%")


def rules(schedulers: Sequence[str]) -> Mapping[Kind, Rules]:
    """The rules by kind; `schedulers` are our scheduler names, the first the default."""
    return {
        JOB: JobRules(schedulers[0], tuple(schedulers)),
        POD_GROUP: PodGroupRules(),
        POD: PodRules(tuple(schedulers)),
        COMMAND: CommandRules(),
        PRIORITY_CLASS: PriorityClassRules(),
        JOB_FLOW: FlowRules(schedulers[0]),
        JOB_TEMPLATE: TemplateRules(schedulers[0]),
        CRON_JOB: CronRules(schedulers[0]),
    }


def priority_of(name: str, reader: Any) -> int | None:
    """The value of a priority class (empty: the global default's, else 0); None when there is no such class."""
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name]
    if name:
        try:
            return int(reader.get(PRIORITY_CLASS, name)["value"])
        except NotFound:
            return None
    return max((int(c["value"]) for c in reader.list(PRIORITY_CLASS).items if c.get("globalDefault")), default=0)


@dataclass(frozen=True)
class JobRules:
    """Jobs: `jobs.manifest` says everything. The manifest that was submitted, sent again, is no change."""

    scheduler: str
    schedulers: tuple[str, ...] = ()
    defaults_updates: bool = True

    def default(self, request: Request) -> None:
        """Fill in what the manifest leaves out."""
        manifest.default(request.obj, self.scheduler)

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault."""
        if request.operation == "DELETE":
            return []
        return manifest.validate(request.obj, request.reader, request.old)

    def advise(self, request: Request) -> Iterable[str]:
        """What may keep it waiting."""
        return advice.of_job(request.obj, self.schedulers or (self.scheduler,), request.reader)


@dataclass(frozen=True)
class PodGroupRules:
    """PodGroups: an open queue, a minimum that is none below 0, and tier limits by number or by name."""

    def default(self, request: Request) -> None:
        """The queue: `default`, or what the namespace says instead of it."""
        spec = request.obj.setdefault("spec", {})
        if not isinstance(spec, dict):
            return
        spec["queue"] = _queue_of_bare(spec.get("queue"), request)

    def validate(self, request: Request) -> list[FieldError]:
        """On create only, but for shapes."""
        if request.operation == "DELETE":
            return []
        shape = check_shape(GroupShape, request.obj)
        spec = prune(request.obj, shape).get("spec") or {}
        found = Faults()
        check_topology(spec.get("networkTopology") or {}, "/spec/networkTopology", found)
        for index, policy in enumerate(spec.get("subGroupPolicy") or []):
            check_topology(policy.get("networkTopology") or {}, f"/spec/subGroupPolicy/{index}/networkTopology", found)
        if request.operation == "CREATE":
            _check_open(spec.get("queue") or "", "/spec/queue", request, found)
            if (spec.get("minMember") or 0) < 0:
                found.add("/spec/minMember", "must be 0 or more: so many pods start together", "range")
        return [*shape, *found]

    def advise(self, request: Request) -> Iterable[str]:
        """What may keep it waiting."""
        return advice.of_group(request.obj, request.reader)


def _queue_of_bare(named: Any, request: Request) -> Any:
    """The queue of a PodGroup or a bare pod: what it names itself, else what its namespace says, else `default`."""
    if named and named != manifest.defaults.DEFAULT_QUEUE:
        return named
    try:
        namespace = request.reader.get(NAMESPACE, request.obj["metadata"].get("namespace") or "default")
    except NotFound:
        return manifest.defaults.DEFAULT_QUEUE
    told = (namespace["metadata"].get("annotations") or {}).get(keys.BARE_QUEUE_NAME)
    return told or manifest.defaults.DEFAULT_QUEUE


def _check_open(name: str, where: str, request: Request, faults: Faults) -> None:
    if not name:
        return
    try:
        state = (request.reader.get(QUEUE, name).get("status") or {}).get("state") or "Open"
    except NotFound:
        faults.add(where, said("there is no queue %(name)r: create it first or name another", name=name), "not_found")
        return
    if state != "Open":
        faults.add(
            where,
            said("queue %(name)r is %(state)s and takes no new work: open it or name another", name=name, state=state),
            "closed",
        )


@dataclass(frozen=True)
class PodRules:
    """Pods on create: a sound spec, a priority from the class, sound disruption budgets, and an open queue for bare ones."""

    schedulers: tuple[str, ...]

    def default(self, request: Request) -> None:
        """Turn the priority class into a number, as Kubernetes's own admission does."""
        spec = request.obj.get("spec")
        if isinstance(spec, dict) and spec.get("priority") is None:
            name = spec.get("priorityClassName") or ""
            value = priority_of(name, request.reader) if isinstance(name, str) else None
            if value is not None:
                spec["priority"] = value

    def validate(self, request: Request) -> list[FieldError]:
        """On create only: what may change in a pod is metadata and status."""
        if request.operation != "CREATE":
            return []
        sound = _is_sound(request.obj.get("spec"))
        shape = check_shape(MetaShape if sound else PodShape, request.obj)
        pod = prune(request.obj, shape)
        found = Faults()
        meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        name = meta.get("name") or (meta.get("generateName") or "") + "xxxxx"
        if not is_dns_subdomain(name):
            found.add("/metadata/name", f"{name!r} is no pod name: {SUBDOMAIN_ADVICE}", "format")
        check_labels(meta, "/metadata", found)
        if not sound:
            check_pod_spec(spec, "/spec", found)
        cls = spec.get("priorityClassName") or ""
        if cls and priority_of(cls, request.reader) is None:
            found.add("/spec/priorityClassName", f"there is no priority class {cls!r}: create it or name another", "not_found")
        if spec.get("schedulerName") in self.schedulers:
            annotations = meta.get("annotations") or {}
            _check_budget(annotations, found)
            if not annotations.get(keys.GROUP_NAME) and not meta.get("ownerReferences"):
                # Nobody would make it again, and without a PodGroup it would wait without a word. Pods of a controller
                # are let in: they come as long as their owner stands.
                queue = _queue_of_bare(annotations.get(keys.BARE_QUEUE_NAME), request)
                _check_open(queue, pointer("metadata", "annotations", keys.BARE_QUEUE_NAME), request, found)
        return Faults(shape).with_apart(found)

    def advise(self, request: Request) -> Iterable[str]:
        """What may keep it waiting."""
        return advice.of_pod(request.obj, request.reader) if request.operation == "CREATE" else ()


_LONGEST_KNOWN = 2**16


def _is_sound(spec: Any) -> bool:
    """Whether nothing is wrong with a pod spec by itself. The thousands of pods of a role share one, which is looked at once."""
    try:
        text = orjson.dumps(spec)
    except TypeError:
        return False
    return len(text) <= _LONGEST_KNOWN and _is_known_sound(text)


@lru_cache(maxsize=256)
def _is_known_sound(text: bytes) -> bool:
    spec = orjson.loads(text)
    if check_shape(PodShape, {"spec": spec}):
        return False
    found = Faults()
    check_pod_spec(without_nulls(spec), "/spec", found)
    return not found


def _check_budget(annotations: dict[str, str], faults: Faults) -> None:
    given = [key for key in (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE) if key in annotations]
    if len(given) == 2:
        faults.add(
            pointer("metadata", "annotations", given[1]),
            said("stands beside %(given)s: give one of the two", given=given[0]),
            "conflict",
        )
    for key in given:
        if not _BUDGET.fullmatch(annotations[key]):
            where = pointer("metadata", "annotations", key)
            faults.add(
                where,
                said("%(budget)r is no budget: write a whole number above 0, or 1%% to 99%%", budget=annotations[key]),
                "format",
            )


@dataclass(frozen=True)
class CommandRules:
    """Commands: a known action for a Job or a Queue."""

    def default(self, request: Request) -> None:
        """Nothing to fill in."""

    def validate(self, request: Request) -> list[FieldError]:
        """The action must be one that its target knows."""
        if request.operation != "CREATE":
            return []
        faults = Faults(check_shape(CommandShape, request.obj))
        if not faults:
            kind, action = request.obj["target"]["kind"], request.obj["action"]
            known = [*Action] if kind == "Job" else [*QUEUE_ACTIONS.values()]
            if action not in known:
                faults.add(
                    "/action",
                    said(
                        "%(action)r is no action of a %(kind)s: write one of %(known)s",
                        action=action,
                        kind=kind,
                        known=", ".join(known),
                    ),
                    "choice",
                )
        return faults


@dataclass(frozen=True)
class PriorityClassRules:
    """Priority classes: users' values end at a thousand million, one default, and a value for life."""

    def default(self, request: Request) -> None:
        """A class preempts unless it says otherwise."""
        if request.obj.get("preemptionPolicy") is None:
            request.obj["preemptionPolicy"] = "PreemptLowerPriority"

    def validate(self, request: Request) -> list[FieldError]:
        """Every fault."""
        if request.operation == "DELETE":
            return []
        obj, old = request.obj, request.old
        faults = Faults(check_shape(PriorityClassShape, obj))
        name = (obj.get("metadata") or {}).get("name") or ""
        if not is_dns_subdomain(name):
            faults.add(
                "/metadata/name",
                said("%(name)r is no name: %(advice)s", name=name, advice=SUBDOMAIN_ADVICE),
                "format",
            )
        if faults:
            return faults
        if name.startswith("system-") and obj["value"] != SYSTEM_CLASSES.get(name):
            faults.add("/metadata/name", said("names that begin with 'system-' are Kubernetes's own"), "forbidden")
        elif obj["value"] > HIGHEST_USER_PRIORITY and name not in SYSTEM_CLASSES:
            faults.add(
                "/value",
                said(
                    "must be %(most)s or less: what is above is the system's",
                    most=HIGHEST_USER_PRIORITY,
                ),
                "range",
            )
        if old is not None and (old["value"], old.get("preemptionPolicy")) != (obj["value"], obj.get("preemptionPolicy")):
            faults.add("/value", said("value and preemptionPolicy cannot change: make a new class"), "immutable")
        others = [c["metadata"]["name"] for c in request.reader.list(PRIORITY_CLASS).items if c.get("globalDefault")]
        if obj.get("globalDefault") and (taken := [other for other in others if other != name]):
            faults.add("/globalDefault", said("%(name)s is the default already: only one can be", name=taken[0]), "conflict")
        return faults
