"""Under which names a job's pods find each other: `<hostname>.<subdomain>`, resolved by the headless Service of svc."""

from __future__ import annotations

from typing import Any

from jobs.keys import pod_name

Task = dict[str, Any]

_TENS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)


def host(job: str, task: Task, index: int) -> tuple[str, str]:
    """Short name and subdomain of one pod: what its template says, else the pod's name and the job's."""
    spec = (task.get("template") or {}).get("spec") or {}
    return spec.get("hostname") or pod_name(job, task["name"], index), spec.get("subdomain") or job


def domain(job: str, task: Task, index: int) -> str:
    """The full name of one pod, as others address it."""
    return ".".join(host(job, task, index))


def hosts(job: str, task: Task) -> list[tuple[str, str]]:
    """All pods of a role. Those of a template with a hostname share it, so that it stands there once."""
    replicas = int(task.get("replicas") or 0)
    named = bool(((task.get("template") or {}).get("spec") or {}).get("hostname"))
    return [host(job, task, index) for index in range(min(replicas, 1) if named else replicas)]


def domains(job: str, task: Task) -> list[str]:
    """The full names of a role's pods, in order."""
    return [".".join(each) for each in hosts(job, task)]


def joined_length(job: str, task: Task) -> int:
    """Characters of a role's full names joined by commas, reckoned without making them."""
    count = int(task.get("replicas") or 0)
    if ((task.get("template") or {}).get("spec") or {}).get("hostname"):
        return len(domain(job, task, 0)) if count else 0
    digits = sum(max(count - each, 0) for each in _TENS)  # what the longer numbers have more than one
    return count * len(domain(job, task, 0)) + digits + max(count - 1, 0)


def named(spec: dict[str, Any], role: str) -> Task | None:
    """The role of that name, None when the job has none."""
    return next((task for task in spec.get("tasks") or () if task.get("name") == role), None)
