"""The keys and names that tie a job's objects together; they are Volcano's own, but for `basalt.dev/`."""

from __future__ import annotations

from cluster import objects
from cluster.kinds import JOB, Kind
from cluster.port import Obj

FIELD_MANAGER = "basalt-controller"
"""Who wrote what the controllers wrote, in `metadata.managedFields`."""

# On pods, as annotation and mostly as label too.
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
QUEUE_NAME = "volcano.sh/queue-name"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
TEMPLATE_UID = "volcano.sh/template-uid"
PARTITION_ID = "volcano.sh/partition-id"
NUMA_POLICY = "volcano.sh/numa-topology-policy"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
"""The controller itself decided to delete this pod, so that its going is no eviction."""

# Handed on from jobs to pods, and from bare pods to their PodGroups.
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN_TIME = "volcano.sh/cooldown-time"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"

# On bare pods, their owners and namespaces.
BARE_QUEUE_NAME = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"

# On jobs that a flow or a cron job made.
CREATED_BY_TEMPLATE = "volcano.sh/createdByJobTemplate"
CREATED_BY_FLOW = "volcano.sh/createdByJobFlow"
SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
SCHEDULE_SINCE = "basalt.dev/schedule-since"
"""On cron jobs: since when it has which schedule, as `<instant> <zone> <schedule>`."""
TRIGGERED_BY = "basalt.dev/triggered-by"
"""On jobs that a cron job made out of turn: who asked for it."""

OWNER = "basalt.dev/owner"
"""On jobs: the user who submitted it. Set by the portal, never taken from a manifest."""
CLONED_FROM = "basalt.dev/cloned-from"
"""On jobs: uid of the job that it is a copy of, as its author says."""

BLUEPRINT = "basalt.dev/blueprint"
"""On jobs: name and version of the blueprint that it was filled out from, `<name>@<version>`; looked at when it is submitted."""
BLUEPRINT_PARAMETERS = "basalt.dev/blueprint-parameters"
"""On the same: the values that were filled in, as JSON."""

PLUGIN = "plugin-"
"""In a job's `status.controlledResources`: before the name of each plugin that has prepared the job, as Volcano writes it."""

FORWARDING = "volcano.sh/job-forwarding"
"""`true` on a job, and on its pods, whose queue reaches into other clusters (`spec.extendClusters`)."""

LAST_COMMAND = "basalt.dev/command"
"""In a job's `status.controlledResources`: uid of the last Command that was carried out, written together with its effect."""

PENDING_ACTION = "basalt.dev/action"
"""In a job's `status.controlledResources`: the action that a policy has begun and that is not finished yet, with its target."""

MEMORY = "basalt.dev/memory"
"""In a job's `status.controlledResources`: what has to be remembered for its policies (`jobs.controller.memory`)."""

MADE_CLAIM = "volume-pvc-"
"""Before a claim's name, in `status.controlledResources`: a claim that the job's pods mount."""


def owner_of(kind: Kind, obj: Obj) -> Obj | None:
    """The owner reference to the object of this kind that controls another; None when none of it does."""
    owner = objects.owner(obj)
    return owner if owner and (owner.get("apiVersion"), owner.get("kind")) == (kind.api_version, kind.kind) else None


def owning_job(obj: Obj) -> Obj | None:
    """The owner reference to the Job that controls a pod or a PodGroup; None when no Job does."""
    return owner_of(JOB, obj)


def pod_name(job: str, role: str, index: int) -> str:
    """The name of a role's index-th pod."""
    return f"{job}-{role}-{index}"


def index_of(pod: str) -> int:
    """The index in its role that ends a pod's name, -1 when none does."""
    index = pod.rpartition("-")[2]
    return int(index) if index.isascii() and index.isdigit() else -1


def group_name(job: Obj) -> str:
    """The name of a job's PodGroup."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"
