"""Rows as pages, the REST lists and the live channel carry them: one dict a job or pod, the same everywhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobs import summary
from jobs.choices import PodPhase, job_mark
from jobs.models import Job, PhaseChange, Pod, PodGroup, Task

Row = dict[str, Any]

# What a row needs of a job: lists never load whole manifests.
JOB_FIELDS = (
    "uid", "namespace", "name", "queue", "owner", "phase", "group_phase", "phase_since", "created_at", "started_at",
    "finished_at", "replicas", "min_available", "pending", "running", "succeeded", "failed", "gpus", "gpu_model",
    "cpu_milli", "memory_bytes", "priority_class", "retry_count", "max_retry", "verdict", "trouble", "labels",
)  # fmt: skip


def job_row(job: Job) -> Row:
    """One job. `mark` is the state mark; `why` is one line in each language: the verdict while it waits."""
    row = {name: getattr(job, name) for name in JOB_FIELDS}
    for name in ("phase_since", "created_at", "started_at", "finished_at"):
        row[name] = iso(row[name])
    return row | {"mark": job_mark(job.phase, job.group_phase), "why": summary.lines(job)}


def task_row(task: Task) -> Row:
    """One role of a job; `counts` maps a pod phase to pods."""
    return {
        "name": task.name,
        "replicas": task.replicas,
        "min_available": task.min_available,
        "requests": task.requests,
        "counts": task.counts,
    }


def pod_row(pod: Pod) -> Row:
    """One pod of a job."""
    return {
        "uid": pod.uid,
        "namespace": pod.namespace,
        "name": pod.name,
        "task": pod.task,
        "index": pod.index,
        "phase": pod.phase,
        "mark": PodPhase(pod.phase).mark,
        "node": pod.node,
        "gpus": pod.gpus,
        "reason": pod.reason,
        "message": pod.message,
        "exit_code": pod.exit_code,
        "restarts": pod.restarts,
        "restarted_at": iso(pod.restarted_at),
        "containers": pod.containers,
        "ready": pod.ready,
        "word": pod.word,
        "job_version": pod.job_version,
        "created_at": iso(pod.created_at),
        "scheduled_at": iso(pod.scheduled_at),
        "started_at": iso(pod.started_at),
        "finished_at": iso(pod.finished_at),
        "deleted_at": iso(pod.deleted_at),
    }


def change_row(change: PhaseChange) -> Row:
    """One step of a job's life."""
    return {"phase": change.phase, "group_phase": change.group_phase, "at": iso(change.at)}


def iso(at: datetime | None) -> str | None:
    """ISO 8601, or None."""
    return at.isoformat() if at else None


def pod_group_row(group: PodGroup) -> Row:
    """One gang; `job_uid` is empty when its pods are bare."""
    return {
        "uid": group.uid,
        "namespace": group.namespace,
        "name": group.name,
        "job_uid": group.job_uid,
        "queue": group.queue,
        "phase": group.phase,
        "min_member": group.min_member,
        "min_resources": group.min_resources,
        "conditions": group.conditions,
        "created_at": iso(group.created_at),
    }
