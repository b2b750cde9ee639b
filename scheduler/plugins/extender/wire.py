"""What an extender is told: the model in the shapes, and under the names, in which Volcano sends its own.

Fields that Volcano names without a JSON tag keep their Go names. Kubernetes objects go as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster import objects
from scheduler.model.jobs import JobInfo
from scheduler.model.nodes import NodeTable
from scheduler.model.numa import POLICY
from scheduler.model.queues import QueueInfo
from scheduler.model.quotas import Quota
from scheduler.model.resources import CPU, MEMORY, PODS, Dimensions, Ints
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.plugins.tdm import ZONE, is_lent, is_revocable

Json = dict[str, Any]

_FLAG = {status: 1 << place for place, status in enumerate(TaskStatus)}
"""Volcano's statuses are bits, in the same order as here."""
_READY, _NOT_READY = 1, 2


class Wire:
    """Writes one session's model."""

    def __init__(self, dims: Dimensions, nodes: NodeTable) -> None:
        self._dims, self._nodes = dims, nodes

    def resource(self, values: Ints, most_pods: int = 0) -> Json:
        """An amount: milli-cpu, bytes, whole pods, and thousandths of everything else."""
        scalars = {}
        for place in values.nonzero()[0].tolist():
            if place not in (CPU, MEMORY):
                name = self._dims.names[place]
                scalars[name] = int(values[place]) * (1000 if name == "ephemeral-storage" else 1)
        return {
            "MilliCPU": int(values[CPU]),
            "Memory": int(values[MEMORY]),
            "ScalarResources": scalars or None,
            "MaxTaskNum": most_pods,
        }

    def task(self, task: TaskInfo) -> Json:
        """A pod. What it was given in this session is among its annotations."""
        marks = objects.annotations(task.pod)
        asked = self.resource(task.request)
        node = self._nodes.names[task.node] if task.node >= 0 else str(task.pod["spec"].get("nodeName") or "")
        init = task.pod["spec"].get("initContainers") or ()
        return {
            "UID": task.uid,
            "Job": task.job.uid if task.job is not None else "",
            "Name": task.name,
            "Namespace": task.namespace,
            "TaskRole": task.role,
            "Resreq": asked,
            "InitResreq": asked,
            "DRAResreq": None,
            "ResourceClaimKeys": None,
            "ResourceClaimDRAResreq": None,
            "NodeName": node,
            "EvictionOccurred": False,
            "JobAllocatedHyperNode": "",
            "Status": _FLAG[task.status],
            "LastTransaction": None,
            "Priority": task.priority,
            "VolumeReady": False,
            "Preemptable": task.preemptable,
            "BestEffort": task.cls.best_effort,
            "HasRestartableInitContainer": any(each.get("restartPolicy") == "Always" for each in init),
            "SchGated": task.gated,
            "RevocableZone": "*" if is_revocable(task) else "",
            "NumaInfo": {"Policy": marks.get(POLICY, ""), "ResMap": None},
            "Pod": task.pod,
            "PodAnnotations": {**marks, **task.marks},
            "CustomBindErrHandlerSucceeded": False,
        }

    def node(self, row: int) -> Json:
        """A node with the pods on it."""
        nodes = self._nodes
        most = int(nodes.allocatable[row, PODS])
        labels = nodes.labels[row]
        return {
            "Name": nodes.names[row],
            "Node": nodes.objects[row],
            "State": {"Phase": _READY if nodes.ready[row] else _NOT_READY, "Reason": ""},
            "Releasing": self.resource(nodes.releasing[row]),
            "Pipelined": self.resource(nodes.pipelined[row]),
            "Idle": self.resource(nodes.allocatable[row] - nodes.used[row], most),
            "Used": self.resource(nodes.used[row]),
            "Allocatable": self.resource(nodes.allocatable[row], most),
            "Capacity": self._capacity(row),
            "ResourceUsage": None,
            "Tasks": {uid: self.task(task) for uid, task in nodes.tasks[row].items()},
            "NumaInfo": None,
            "UnassignedNumaPods": None,
            "NumaSchedulerInfo": None,
            "RevocableZone": labels.get(ZONE, ""),
            "Others": None,
            "OversubscriptionNode": False,
            "OfflineJobEvicting": False,
            "OversubscriptionResource": self.resource(nodes.allocatable[row] * 0),
            "ImageStates": None,
            "Generation": 0,
            "BindGeneration": 0,
        }

    def _capacity(self, row: int) -> Json:
        units = objects.resource_units((self._nodes.objects[row].get("status") or {}).get("capacity"))
        if not units:
            return self.resource(self._nodes.allocatable[row], int(self._nodes.allocatable[row, PODS]))
        scalars = {
            name: amount * (1000 if name == "ephemeral-storage" else 1)
            for name, amount in units.items()
            if name not in ("cpu", "memory")
        }
        return {
            "MilliCPU": units.get("cpu", 0),
            "Memory": units.get("memory", 0),
            "ScalarResources": scalars or None,
            "MaxTaskNum": units.get("pods", 0),
        }

    def job(self, job: JobInfo) -> Json:
        """A PodGroup with its pods."""
        tasks = {uid: self.task(task) for uid, task in job.tasks.items()}
        marks = {**job.labels, **job.annotations}
        status = {**(job.obj.get("status") or {}), "phase": job.phase}
        return {
            "UID": job.uid,
            "PgUID": objects.uid(job.obj) if job.obj else "",
            "Name": job.name,
            "Namespace": job.namespace,
            "Queue": job.queue,
            "Priority": job.priority,
            "MinAvailable": job.min_available,
            "WaitingTime": None,
            "JobFitErrors": "",
            "NodesFitErrors": {},
            "AllocatedHyperNode": job.annotations.get("volcano.sh/job-allocated-hypernode", ""),
            "NetworkTopology": (job.obj.get("spec") or {}).get("networkTopology"),
            "SubJobs": {},
            "TaskToSubJob": {},
            "MinSubJobs": {},
            "TaskStatusIndex": {
                str(_FLAG[state]): {uid: tasks[uid] for uid in job.by_status[state]}
                for state in TaskStatus
                if job.by_status[state]
            },
            "Tasks": tasks,
            "TaskMinAvailable": job.role_min,
            "TaskMinAvailableTotal": sum(job.role_min.values()),
            "Allocated": self.resource(job.allocated),
            "TotalRequest": self.resource(sum((task.request for task in job.tasks.values()), job.allocated * 0)),
            "CreationTimestamp": objects.stamp(job.creation),
            "PodGroup": {**job.obj, "status": status, "Version": "v1beta1"},
            "ScheduleStartTimestamp": None,
            "Preemptable": is_lent(job),
            "RevocableZone": "*" if marks.get(ZONE) == "*" or is_lent(job) else "",
            "Budget": {
                "MinAvailable": marks.get("volcano.sh/jdb-min-available", ""),
                "MaxUnavailable": marks.get("volcano.sh/jdb-max-unavailable", ""),
            },
        }

    def queue(self, queue: QueueInfo) -> Json:
        """A queue."""
        return {
            "UID": queue.name,
            "Name": queue.name,
            "Weight": queue.weight,
            "Weights": queue.annotations.get("volcano.sh/hierarchy-weights", ""),
            "Hierarchy": queue.annotations.get("volcano.sh/hierarchy", ""),
            "Queue": queue.obj,
        }

    def namespaces(self, quotas: Mapping[str, tuple[Quota, ...]]) -> Json:
        """Namespaces that have quotas, with what these say."""
        return {
            name: {"Name": name, "QuotaStatus": {each.name: _quota_status(each) for each in found}}
            for name, found in quotas.items()
        }


def _quota_status(quota: Quota) -> Json:
    return {
        "hard": {each.resource: objects.format_units(each.resource, each.hard) for each in quota.limits},
        "used": {each.resource: objects.format_units(each.resource, each.used) for each in quota.limits if each.used is not None},
    }
