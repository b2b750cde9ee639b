"""What people do with jobs: submit, change, act, delete. Pages, REST and the command line call these, nobody else's."""

from __future__ import annotations

import copy
from typing import Any

from cluster import commands
from cluster.errors import BadRequest, Conflict, FieldError, Invalid
from cluster.kinds import JOB, Kind
from cluster.port import Cluster, Obj
from cluster.said import said
from jobs import keys
from jobs.choices import JobPhase
from jobs.manifest import default
from jobs.schedulers import scheduler_names

MANAGER = "basalt"

ACTIONS: dict[str, str] = {
    "suspend": "AbortJob",
    "resume": "ResumeJob",
    "restart": "RestartJob",
    "terminate": "TerminateJob",
    "complete": "CompleteJob",
}
"""The words that people use, and Volcano's actions."""

_OURS = ("ownerReferences", "finalizers")
_NOT_YOURS = said("is set by controllers: leave it out")

_LIVE = frozenset({JobPhase.PENDING, JobPhase.RUNNING})
_ALLOWED: dict[str, frozenset[JobPhase]] = {
    "suspend": _LIVE,
    "resume": frozenset({JobPhase.ABORTING, JobPhase.ABORTED}),
    "restart": _LIVE,
    "terminate": _LIVE,
    "complete": _LIVE,
}


_REACHED: dict[str, frozenset[JobPhase]] = {
    "suspend": frozenset({JobPhase.ABORTING, JobPhase.ABORTED}),
    "resume": frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING}),
    "restart": frozenset({JobPhase.RESTARTING}),
    "terminate": frozenset({JobPhase.TERMINATING, JobPhase.TERMINATED}),
    "complete": frozenset({JobPhase.COMPLETING, JobPhase.COMPLETED}),
}
"""Phases in which an action has been done or is under way: asking for it once more is no fault and changes nothing."""


def is_done(action: str, phase: str) -> bool:
    """Whether a job in this phase is where the action leads."""
    return (phase or JobPhase.PENDING) in _REACHED.get(action, ())


def allowed_actions(phase: str) -> list[str]:
    """The actions that a job in this phase answers to; an empty phase is a job that no controller has seen yet."""
    return [action for action, phases in _ALLOWED.items() if (phase or JobPhase.PENDING) in phases]


def submit(cluster: Cluster, manifest: Any, *, owner: str = "", dry_run: bool = False) -> Obj:
    """Create a Job from its manifest and return it as stored (with `dry_run`: as it would be).

    `owner` is the user name to keep on it. Raises BadRequest when it is no Job manifest, Invalid with every fault,
    AlreadyExists when the name is taken.
    """
    return submit_kind(cluster, JOB, manifest, owner=owner, dry_run=dry_run)


def submit_kind(cluster: Cluster, kind: Kind, manifest: Any, *, owner: str = "", dry_run: bool = False) -> Obj:
    """The same for an object of any kind that makes jobs: a Job, a JobFlow, a JobTemplate, a CronJob."""
    obj = prepared(manifest, owner, kind)
    if faults := [FieldError(f"/metadata/{field}", _NOT_YOURS, "forbidden") for field in _OURS if obj["metadata"].get(field)]:
        raise Invalid("; ".join(f"{fault.pointer} {fault.message}" for fault in faults), faults)
    return cluster.create(kind, obj, field_manager=MANAGER, dry_run=dry_run)


def replace(cluster: Cluster, manifest: Any, *, dry_run: bool = False) -> Obj:
    """Change a Job to what the manifest says; its owner stays.

    What the manifest leaves out counts as it did when the job was made, so that the same manifest again is no change.
    Raises BadRequest, NotFound, Conflict, and Invalid for what may not change.
    """
    obj = prepared(manifest, "")
    default(obj, scheduler_names()[0])
    meta = obj["metadata"]
    current = cluster.get(JOB, meta.get("name", ""), meta["namespace"])
    for field in _OURS:
        meta.pop(field, None)
        if field in current["metadata"]:
            meta[field] = current["metadata"][field]
    if owner := current["metadata"].get("annotations", {}).get(keys.OWNER):
        meta.setdefault("annotations", {})[keys.OWNER] = owner
    return cluster.replace(JOB, obj, field_manager=MANAGER, dry_run=dry_run)


def act(cluster: Cluster, namespace: str, name: str, action: str, *, uid: str = "", user: str = "") -> Obj | None:
    """Ask the controller for an action, by a Command, and return the Command; None when the job is so already.

    `action` is one of ACTIONS. An equal Command that still waits is returned instead of a second one, so that a double
    click does nothing twice. Raises BadRequest (unknown action), NotFound, Conflict (other uid, or the phase forbids it).
    """
    if action not in ACTIONS:
        raise BadRequest(said("unknown action %(action)r; known are %(actions)s", action=action, actions=", ".join(ACTIONS)))
    job = cluster.get(JOB, name, namespace)
    meta = job["metadata"]
    if uid and meta["uid"] != uid:
        raise Conflict(
            said(
                "job %(namespace)s/%(name)s is not the one that was meant: it was deleted and made anew",
                namespace=namespace,
                name=name,
            )
        )
    if meta.get("deletionTimestamp"):
        raise Conflict(said("job %(namespace)s/%(name)s is being deleted", namespace=namespace, name=name))
    phase = job.get("status", {}).get("state", {}).get("phase", "") or JobPhase.PENDING
    if phase not in _ALLOWED[action]:
        if is_done(action, phase) and not commands.waiting(cluster, job, namespace):
            return None
        possible = ", ".join(allowed_actions(phase)) or "none"
        raise Conflict(
            said(
                "cannot %(action)s job %(namespace)s/%(name)s: it is %(phase)s (possible now: %(possible)s)",
                action=action,
                namespace=namespace,
                name=name,
                phase=phase,
                possible=possible,
            )
        )
    return commands.ask(cluster, job, ACTIONS[action], namespace=namespace, user=user, field_manager=MANAGER)


def delete(cluster: Cluster, namespace: str, name: str, *, uid: str = "", version: str = "") -> None:
    """Delete a job; its pods and everything else that it owns go with it. Raises NotFound, Conflict (other uid or version)."""
    cluster.delete(JOB, name, namespace, uid=uid, resource_version=version)


def prepared(manifest: Any, owner: str, kind: Kind = JOB) -> Obj:
    """A private copy, in a namespace, with the owner that we say and no status. Raises BadRequest."""
    if not isinstance(manifest, dict):
        raise BadRequest(said("a %(kind)s manifest is a mapping with apiVersion, kind, metadata and spec", kind=kind.kind))
    wrong = [
        FieldError(f"/{field}", said("must be %(right)s, not %(given)r", right=right, given=manifest.get(field)))
        for field, right in (("apiVersion", kind.api_version), ("kind", kind.kind))
        if manifest.get(field) != right
    ]
    if wrong:
        raise BadRequest("; ".join(f"{fault.pointer} {fault.message}" for fault in wrong), wrong)
    obj = copy.deepcopy(manifest)
    obj.pop("status", None)
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise BadRequest(said("metadata must be a mapping"), [FieldError("/metadata", said("must be a mapping with a name"))])
    meta["namespace"] = meta.get("namespace") or "default"
    annotations = meta.get("annotations")
    if annotations is None:
        annotations = {}
    if isinstance(annotations, dict):  # else admission says what is wrong with it
        annotations.pop(keys.OWNER, None)
        if owner:
            annotations[keys.OWNER] = owner
        if annotations:
            meta["annotations"] = annotations
    return obj
