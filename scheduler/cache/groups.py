"""PodGroups, queues and priority classes: events become changes of jobs and of who is in which queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster import objects
from cluster.port import Obj
from scheduler.model import build, subjobs
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Dimensions
from scheduler.model.roster import Roster

DEFAULT_QUEUE = "default"
_COUNTS = frozenset({"allocated", "pending", "running", "inqueue", "unknown", "completed"})


class Groups:
    """Keeps jobs by uid (`namespace/name`), queues by name, and the roster over both."""

    def __init__(self, dims: Dimensions) -> None:
        self.jobs: dict[str, JobInfo] = {}
        self.queues: dict[str, QueueInfo] = {}
        self.roster = Roster(self.queues, dims.width)
        self._dims = dims
        self._priorities: dict[str, Obj] = {}

    def job(self, uid: str) -> JobInfo:
        """The job of a name, made when a pod or a PodGroup is the first to say it."""
        job = self.jobs.get(uid)
        if job is None:
            namespace, _, name = uid.partition("/")
            job = self.jobs[uid] = JobInfo(uid, namespace, name, "", self._dims.width)
            self.roster.take(job)
        return job

    def group(self, obj: Obj, gone: bool) -> bool:
        """Take a PodGroup in; whether more of it changed than what its status counts and says."""
        uid = objects.key(obj)
        if gone:
            self.drop_group(uid)
            return True
        spec = build.section(obj, "spec")
        least = build.whole(spec, "minMember", 0)
        roles = {str(role): build.whole(spec["minTaskMember"], role, 0) for role in spec.get("minTaskMember") or ()}
        resources = spec.get("minResources")
        needs = build.amounts(self._dims, resources, "minResources") if resources is not None else None
        creation, phase = build.created(obj), build.section(obj, "status").get("phase") or "Pending"
        job = self.job(uid)
        known, before = job.obj, job.phase
        parts = subjobs.read(spec, job, least)
        if job.obj and objects.uid(job.obj) != objects.uid(obj):
            job.sent = None
        job.obj, job.min_available, job.role_min, job.min_resources, job.creation = obj, least, roles, needs, creation
        job.queue = spec.get("queue") or DEFAULT_QUEUE
        job.divide(parts)
        job.annotations, job.labels = objects.annotations(obj), objects.labels(obj)
        job.version += 1
        job.phase = phase if job.sent is None else str(job.sent.get("phase"))
        job.priority = self._priority(spec.get("priorityClassName") or "")
        job.touch()
        return _asks_otherwise(known, obj) or job.phase != before

    def drop_group(self, uid: str) -> None:
        """Forget a PodGroup; its pods, if any are left, only use their nodes then."""
        job = self.jobs.get(uid)
        if job is not None:
            job.obj, job.min_resources, job.phase, job.sent = {}, None, "Pending", None
            job.divide(None)
            job.touch()
            self.forget_if_empty(job)

    def forget_if_empty(self, job: JobInfo) -> None:
        """Forget a job that neither a PodGroup nor a pod names any more."""
        if not job.tasks and not job.obj:
            self.jobs.pop(job.uid, None)

    def queue(self, obj: Obj, gone: bool) -> bool:
        """Take a Queue in; whether more of it changed than what its status counts."""
        if gone:
            self.drop_queue(objects.name(obj))
            return True
        known = self.queues.get(objects.name(obj))
        found = self.queues[objects.name(obj)] = build.queue(obj, self._dims)
        self.roster.queue_came(found)
        return known is None or _asks_otherwise(known.obj, obj) or _rules(known.obj) != _rules(obj)

    def drop_queue(self, name: str) -> None:
        """Forget a queue; its jobs take part in no session until it is back."""
        if self.queues.pop(name, None) is not None:
            self.roster.queue_went(name)

    def priority_class(self, obj: Obj, gone: bool) -> None:
        """Take a PriorityClass in."""
        build.whole(obj, "value", 0)
        if gone:
            self._priorities.pop(objects.name(obj), None)
        else:
            self._priorities[objects.name(obj)] = obj
        for job in self.jobs.values():
            if job.obj:
                job.priority = self._priority(job.obj["spec"].get("priorityClassName") or "")

    def _priority(self, name: str) -> int:
        found = self._priorities.get(name)
        if found is None:
            defaults = [obj for obj in self._priorities.values() if obj.get("globalDefault")]
            found = min(defaults, key=objects.name, default=None)
        return build.whole(found, "value", 0) if found is not None else 0


def _asks_otherwise(known: Mapping[str, Any], obj: Obj) -> bool:
    """Whether two versions of an object differ in more than their status."""
    ours, theirs = known.get("metadata") or {}, obj["metadata"]
    parts = ("uid", "labels", "annotations", "deletionTimestamp")
    return known.get("spec") != obj.get("spec") or any(ours.get(part) != theirs.get(part) for part in parts)


def _rules(queue: Mapping[str, Any]) -> Obj:
    """A queue's status without what it counts."""
    return {key: value for key, value in (queue.get("status") or {}).items() if key not in _COUNTS}
