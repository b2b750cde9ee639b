"""A job's tasks and pods as the controller looks at them: names, minima, order, dependencies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cluster import objects
from cluster.port import Obj
from jobs import keys

FINISHED = frozenset({"Succeeded", "Failed"})


def told_phase(job: Obj) -> str:
    """The phase that a job's status tells; one that no controller has seen is Pending."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "Pending")


def phase_of(pod: Obj) -> str:
    """A pod's phase; one without a status is Pending."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def role_of(pod: Obj) -> str:
    """The name of the role that a pod belongs to."""
    return objects.annotations(pod).get(keys.TASK_SPEC) or objects.labels(pod).get(keys.TASK_SPEC) or ""


def version_of(pod: Obj) -> int:
    """The generation of the job that made the pod."""
    return int(objects.annotations(pod).get(keys.JOB_VERSION) or 0)


def belongs(pod: Obj) -> bool:
    """Whether a pod says what it is to its job: one without name, version or role is none of a job's, whoever owns it."""
    notes = objects.annotations(pod)
    version = notes.get(keys.JOB_VERSION) or ""
    return bool(notes.get(keys.JOB_NAME) and notes.get(keys.TASK_SPEC)) and version.isascii() and version.isdigit()


def partition_of(task: Obj, index: int) -> str:
    """The partition of a role's index-th pod, empty for a role without partitions."""
    policy = task.get("partitionPolicy")
    return str(index // max(int(policy.get("partitionSize") or 1), 1)) if policy else ""


def is_marked(pod: Obj) -> bool:
    """Whether the controller has decided to delete the pod."""
    return keys.OUT_OF_SYNC in objects.annotations(pod)


def is_ready(pod: Obj) -> bool:
    """Finished well, or running with every container ready."""
    if phase_of(pod) == "Succeeded":
        return True
    containers = (pod.get("status") or {}).get("containerStatuses") or []
    return phase_of(pod) == "Running" and bool(containers) and all(c.get("ready") for c in containers)


def tasks_of(job: Obj) -> list[Obj]:
    """The entries of `spec.tasks`."""
    return job["spec"].get("tasks") or []


def minimum_of(task: Obj) -> int:
    """What the gang needs of a task: its minAvailable, else its partitions' minimum, else all replicas."""
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    policy = task.get("partitionPolicy") or {}
    partitions = int(policy.get("minPartitions") or 0) * int(policy.get("partitionSize") or 0)
    return partitions or int(task.get("replicas") or 0)


@dataclass(slots=True)
class PodTable:
    """The pods of one job by role and by name, those with a deletion timestamp included."""

    by_role: Mapping[str, dict[str, Obj]] = field(default_factory=dict)

    @classmethod
    def of(cls, pods: Iterable[Obj]) -> PodTable:
        """Sort pods into their roles."""
        table: defaultdict[str, dict[str, Obj]] = defaultdict(dict)
        for pod in pods:
            table[role_of(pod)][objects.name(pod)] = pod
        return cls(table)

    def role(self, name: str) -> dict[str, Obj]:
        """The pods of one role by name."""
        return self.by_role.get(name, {})

    def is_ready(self, task: Obj) -> bool:
        """Whether a role is far enough for those that depend on it."""
        minimum = int(task.get("minAvailable") or 0)
        return sum(1 for pod in self.role(task["name"]).values() if is_ready(pod)) >= minimum


def released(job: Obj, table: PodTable) -> list[Obj]:
    """The tasks whose pods may be made now: no dependencies, or dependencies that hold; one that has begun stays released."""
    by_name = {task["name"]: task for task in tasks_of(job)}
    return [task for task in tasks_of(job) if table.role(task["name"]) or _depends_on_nothing_missing(task, by_name, table)]


def _depends_on_nothing_missing(task: Obj, by_name: Mapping[str, Obj], table: PodTable) -> bool:
    depends = task.get("dependsOn") or {}
    names = depends.get("name") or []
    ready = [table.is_ready(by_name[name]) for name in names if name in by_name]
    if depends.get("iteration") == "any" and len(names) >= 2:
        return any(ready)
    return all(ready)
