"""The kinds of objects that Basalt reads and writes, by their Kubernetes names.

A `Kind` is the only way in which code names a kind; it is hashable and carries what the API server's
discovery would say (plural, scope, status subresource). Volcano's PodGroup CRD has no status subresource.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object in one group and version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    has_status: bool = False

    @property
    def api_version(self) -> str:
        """`v1` for the core group, `group/version` elsewhere."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


POD = Kind("", "v1", "Pod", "pods", has_status=True)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False, has_status=True)
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False, has_status=True)
SERVICE = Kind("", "v1", "Service", "services", has_status=True)
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
SECRET = Kind("", "v1", "Secret", "secrets")
EVENT = Kind("", "v1", "Event", "events")
CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", has_status=True)
VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False, has_status=True)
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
CSI_NODE = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
CSI_DRIVER = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
CSI_CAPACITY = Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities")
DEVICE_CLASS = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIM = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", has_status=True)
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas", has_status=True)
LIMIT_RANGE = Kind("", "v1", "LimitRange", "limitranges")
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", has_status=True)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
JOB = Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs", has_status=True)
QUEUE = Kind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False, has_status=True)
POD_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
COMMAND = Kind("bus.volcano.sh", "v1alpha1", "Command", "commands")
HYPER_NODE = Kind("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", namespaced=False, has_status=True)
NUMATOPOLOGY = Kind("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", namespaced=False)
JOB_FLOW = Kind("flow.volcano.sh", "v1alpha1", "JobFlow", "jobflows", has_status=True)
JOB_TEMPLATE = Kind("flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates", has_status=True)
CRON_JOB = Kind("batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs", has_status=True)
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets", has_status=True)
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets", has_status=True)
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets", has_status=True)
PLAIN_JOB = Kind("batch", "v1", "Job", "jobs", has_status=True)
"""Kubernetes's own Job. Like the three above it is only read: what pods of theirs are given follows from their owner."""

KINDS: tuple[Kind, ...] = (
    POD, NODE, NAMESPACE, SERVICE, CONFIG_MAP, SECRET, EVENT, CLAIM, RESOURCE_QUOTA, LIMIT_RANGE, PRIORITY_CLASS,
    NETWORK_POLICY, DISRUPTION_BUDGET, LEASE, JOB, QUEUE, POD_GROUP, COMMAND, HYPER_NODE, NUMATOPOLOGY,
    VOLUME, STORAGE_CLASS, CSI_NODE, CSI_DRIVER, CSI_CAPACITY,
    DEVICE_CLASS, RESOURCE_SLICE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE,
    JOB_FLOW, JOB_TEMPLATE, CRON_JOB, REPLICA_SET, STATEFUL_SET, DAEMON_SET, PLAIN_JOB,
)  # fmt: skip

_BY_API = {(k.api_version, k.kind): k for k in KINDS}


def by_api(api_version: str, kind: str) -> Kind | None:
    """The kind of an object's `apiVersion` and `kind`, or None when Basalt does not know it."""
    return _BY_API.get((api_version, kind))
