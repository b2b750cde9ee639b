"""A flow's status, computed from the jobs that it made. Pure.

Jobs that are gone leave their entry in `jobStatusList`: what a flow knows of its past is written there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from cluster import objects
from cluster.port import Obj
from cluster.validation import check_shape
from jobs.flows.parts import job_name, parts_of
from jobs.flows.shapes import EntryShape
from jobs.roles import told_phase


class FlowPhase(StrEnum):
    """Volcano's phases of a flow."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEED = "Succeed"
    FAILED = "Failed"
    TERMINATING = "Terminating"


ENDED = frozenset({FlowPhase.SUCCEED, FlowPhase.FAILED, FlowPhase.TERMINATING})
"""Phases in which a flow makes no more jobs."""

_LISTS = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
}
_IN_NO_LIST = frozenset({"Completing", "Terminating"})
_STOPPED = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
BROKEN = frozenset({"Failed", "Terminated", "Aborted"})
"""A child in one of these ends the flow: what depends on it could never start."""
_HISTORY = 50


def phase_of(flow: Obj) -> FlowPhase:
    """The phase that the status gives; a new flow is Pending, and so is one whose status names no phase."""
    phase = ((flow.get("status") or {}).get("state") or {}).get("phase")
    return FlowPhase(phase) if phase in list(FlowPhase) else FlowPhase.PENDING


def recorded(flow: Obj) -> dict[str, Obj]:
    """What the status tells of each job, by the job's name. Entries that somebody else wrote out of shape tell nothing."""
    told = (flow.get("status") or {}).get("jobStatusList")
    entries = told if isinstance(told, list) else []
    return {entry["name"]: entry for entry in entries if not check_shape(EntryShape, entry)}


def is_done(name: str, jobs: Mapping[str, Obj], told: Mapping[str, Obj]) -> bool:
    """Whether a job is Completed, or was before it went; `told` is what `recorded` gives."""
    if name in jobs:
        return told_phase(jobs[name]) == "Completed"
    return told.get(name, {}).get("state") == "Completed"


def new_status(flow: Obj, jobs: Mapping[str, Obj]) -> dict[str, Any]:
    """The whole status; `jobs` are those of the flow that exist, by name."""
    entries = recorded(flow)
    for name, job in sorted(jobs.items()):
        entries[name] = _entry(job, entries.get(name))
    phases = {name: str(entry.get("state") or "Pending") for name, entry in entries.items()}
    lists: dict[str, list[str]] = {field: [] for field in (*_LISTS.values(), "unKnowJobs")}
    for name in sorted(jobs):
        phase = phases[name]
        if phase not in _IN_NO_LIST:
            lists[_LISTS.get(phase, "unKnowJobs")].append(name)
    order = {job_name(objects.name(flow), part["name"]): place for place, part in enumerate(parts_of(flow))}
    told = sorted(entries.values(), key=lambda entry: (order.get(entry["name"], len(order)), entry["name"]))
    phase = _phase(phase_of(flow), [phases[name] for name in order if name in phases], len(order))
    conditions = {name: _condition(job) for name, job in sorted(jobs.items())}
    return {**lists, "jobStatusList": told, "conditions": conditions, "state": {"phase": str(phase)}}


def _phase(phase: FlowPhase, jobs: Iterable[str], parts: int) -> FlowPhase:
    """The flow's phase by those of its jobs. Ended is ended."""
    found = list(jobs)
    if phase in ENDED:
        return phase
    if any(job in BROKEN for job in found):
        return FlowPhase.FAILED
    if parts and found.count("Completed") == parts:
        return FlowPhase.SUCCEED
    if phase is FlowPhase.RUNNING or any(job in ("Running", "Completed") for job in found):
        return FlowPhase.RUNNING
    return FlowPhase.PENDING


def _entry(job: Obj, old: Obj | None) -> Obj:
    """What the status tells of one job; times are those of the job's own changes of phase."""
    status, created = job.get("status") or {}, job["metadata"]["creationTimestamp"]
    phase, since = told_phase(job), (status.get("state") or {}).get("lastTransitionTime") or created
    history = [dict(step) for step in (old or {}).get("runningHistories") or ()] if _is_same(job, old) else []
    if not history or history[-1].get("state") != phase:
        if history:
            history[-1]["endTimestamp"] = since
        history.append({"state": phase, "startTimestamp": since})
    entry = {
        "name": objects.name(job),
        "state": phase,
        "startTimestamp": created,
        "restartCount": int(status.get("retryCount") or 0),
        "runningHistories": history[-_HISTORY:],
    }
    return entry | ({"endTimestamp": since} if phase in _STOPPED else {})


def _is_same(job: Obj, old: Obj | None) -> bool:
    """Whether the entry is about this job, and not about one of its name that went before."""
    return old is not None and old.get("startTimestamp") == job["metadata"]["creationTimestamp"]


def _condition(job: Obj) -> Obj:
    status = job.get("status") or {}
    found = {
        "phase": told_phase(job),
        "createTime": job["metadata"]["creationTimestamp"],
        "taskStatusCount": status.get("taskStatusCount") or {},
    }
    return found | ({"runningDuration": status["runningDuration"]} if status.get("runningDuration") else {})
