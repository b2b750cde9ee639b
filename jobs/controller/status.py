"""A job's status, computed from its pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cluster import objects
from cluster.durations import format_duration
from cluster.port import Obj
from jobs.lifecycle import FINAL, Counts, Facts, Phase, Role, Step
from jobs.roles import phase_of, role_of, tasks_of, told_phase

_COUNTED = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}
_CONDITIONS = 10
COUNTS = frozenset(
    {"pending", "running", "succeeded", "failed", "unknown", "terminating", "taskStatusCount", "runningDuration"}
)  # fmt: skip
"""What of a status only counts: nothing is decided by it, and it follows from the pods at any time."""


def job_phase(job: Obj) -> Phase:
    """The phase that the status gives; a new job is Pending. Raises ValueError for one that there is not."""
    return Phase(told_phase(job))


def count(pods: Iterable[Obj], going: Iterable[Obj] = ()) -> Counts:
    """Pods by phase; those with a deletion timestamp, and those in `going`, are terminating."""
    gone = {objects.uid(pod) for pod in going}
    found = dict.fromkeys(("pending", "running", "succeeded", "failed", "unknown", "terminating"), 0)
    for pod in pods:
        ends = objects.is_deleting(pod) or objects.uid(pod) in gone
        found["terminating" if ends else _COUNTED.get(phase_of(pod), "unknown")] += 1
    return Counts(**found)


def count_roles(pods: Iterable[Obj], going: Iterable[Obj] = ()) -> dict[str, dict[str, dict[str, int]]]:
    """`taskStatusCount`: role → {"phase": {pod phase: count}}; a role without a pod that stays is absent."""
    gone = {objects.uid(pod) for pod in going}
    found: dict[str, dict[str, dict[str, int]]] = {}
    for pod in pods:
        if not objects.is_deleting(pod) and objects.uid(pod) not in gone:
            phases = found.setdefault(role_of(pod), {"phase": {}})["phase"]
            phases[phase_of(pod)] = phases.get(phase_of(pod), 0) + 1
    return found


def facts(job: Obj, counts: Counts, roles: dict[str, dict[str, dict[str, int]]]) -> Facts:
    """What the life cycle looks at."""
    spec, status = job["spec"], job.get("status") or {}
    minimum = int(spec.get("minAvailable") or 0)
    return Facts(
        counts=counts,
        roles={
            task["name"]: Role(
                replicas=int(task.get("replicas") or 0),
                min_available=task.get("minAvailable"),
                succeeded=roles[task["name"]]["phase"].get("Succeeded", 0) if task["name"] in roles else None,
            )
            for task in tasks_of(job)
        },
        min_available=minimum,
        status_min_available=int(status.get("minAvailable") or minimum),
        min_success=spec.get("minSuccess"),
        retry_count=int(status.get("retryCount") or 0),
        max_retry=int(spec.get("maxRetry") or 3),
    )


def new_status(job: Obj, counts: Counts, roles: dict[str, Any], step: Step, now: float) -> dict[str, Any]:
    """The whole status after a pass; the caller adds what only it knows (version, controlledResources).

    What a job that ended had reached stays, also when its pods are cleared away.
    """
    old = job.get("status") or {}
    was, succeeded, failed = job_phase(job), counts.succeeded, counts.failed
    if was in FINAL:
        succeeded, failed = max(succeeded, int(old.get("succeeded") or 0)), max(failed, int(old.get("failed") or 0))
        roles = roles or old.get("taskStatusCount") or {}
    status = {key: value for key, value in old.items() if key != "runningDuration"}
    status |= {
        "pending": counts.pending,
        "running": counts.running,
        "succeeded": succeeded,
        "failed": failed,
        "unknown": counts.unknown,
        "terminating": counts.terminating,
        "taskStatusCount": roles,
        "retryCount": step.retry_count,
        "version": int(old.get("version") or 0),
    }
    if step.phase != was or not (old.get("state") or {}).get("phase"):
        stamp = objects.stamp(now)
        status["state"] = {"phase": str(step.phase), "lastTransitionTime": stamp}
        conditions = [c for c in old.get("conditions") or () if c.get("status") != step.phase]
        status["conditions"] = [*conditions, {"status": str(step.phase), "lastTransitionTime": stamp}][-_CONDITIONS:]
    return status


def lasted(job: Obj, status: dict[str, Any]) -> str:
    """`runningDuration`: from a job's creation until it came into the phase of this status."""
    since = objects.parse_time(status["state"]["lastTransitionTime"])
    created = objects.parse_time(job["metadata"]["creationTimestamp"])
    return format_duration(max(since - created, 0.0))


def last_transition(job: Obj) -> float | None:
    """When the job came into its phase, None for a new one."""
    text = ((job.get("status") or {}).get("state") or {}).get("lastTransitionTime")
    return objects.parse_time(text) if text else None


def difference(old: Any, new: Any) -> dict[str, Any]:
    """The merge patch that turns one mapping into another; empty when they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        was = old.get(key)
        if isinstance(value, dict) and isinstance(was, dict):
            if inner := difference(was, value):
                patch[key] = inner
        elif value != was or key not in old:
            patch[key] = value
    return patch
