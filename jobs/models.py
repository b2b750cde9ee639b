"""The projection of jobs, their tasks, pods and PodGroups, and the history that the cluster forgets."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from cluster.models import Projected
from jobs.blueprints.models import Audience, Blueprint, BlueprintUse, BlueprintVersion
from jobs.bulk.models import BulkItem, BulkOperation
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.cron.models import CronJob
from jobs.flows.models import JobFlow, JobTemplate
from jobs.saved.models import ListColumns, SavedView

__all__ = [
    "Audience", "Blueprint", "BlueprintUse", "BlueprintVersion", "BulkItem", "BulkOperation", "CronJob", "Hold", "Job",
    "JobFlow", "JobLabel", "JobTemplate", "ListColumns", "LogTail", "PhaseChange", "Pod", "PodGroup", "SavedView", "Task",
]  # fmt: skip


_COUNTED = (
    "phase", "group_phase", "verdict_stage", "queue", "namespace", "gpu_model", "owner",
    "name", "replicas", "running", "succeeded", "gpus", "created_at", "finished_at",
)  # fmt: skip


class Job(Projected):
    """A Volcano Job, or a PodGroup of bare pods (`kind` says which). Rows stay after the object is gone.

    Amounts asked are sums over all replicas: milli-CPU, bytes, whole GPUs.
    """

    namespace = models.CharField(max_length=63)
    queue = models.CharField(max_length=253)
    owner = models.CharField(max_length=150, blank=True, help_text="the user who submitted it")
    phase = models.CharField(max_length=16, choices=JobPhase, default=JobPhase.PENDING)
    group_phase = models.CharField(max_length=16, choices=GroupPhase, blank=True)
    phase_since = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="first time in Running")
    finished_at = models.DateTimeField(null=True)
    priority_class = models.CharField(max_length=253, blank=True)
    min_available = models.PositiveIntegerField(default=0)
    replicas = models.PositiveIntegerField(default=0)
    pending = models.PositiveIntegerField(default=0)
    running = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    unknown = models.PositiveIntegerField(default=0)
    terminating = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)
    retry_count = models.PositiveIntegerField(default=0)
    max_retry = models.PositiveIntegerField(default=3)
    cpu_milli = models.BigIntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0)
    gpus = models.PositiveIntegerField(default=0)
    gpu_model = models.CharField(max_length=80, blank=True)
    labels = models.JSONField(default=dict)
    verdict = models.JSONField(null=True, help_text="why it waits, as scheduler.framework.explain.Verdict; null when it does not")
    verdict_stage = models.CharField(max_length=24, blank=True, db_index=True)
    trouble = models.JSONField(null=True, help_text="what most pods in trouble wait for: reason, pods, pod (one of them)")
    manifest = models.JSONField(default=dict, help_text="the whole object, without managed fields")
    made_by = models.CharField(max_length=36, blank=True, db_index=True, help_text="uid of the flow or cron job that made it")
    cloned_from = models.CharField(max_length=36, blank=True, db_index=True, help_text="uid of the job that it is a copy of")
    defaulted = models.JSONField(null=True, help_text="pointers of what admission filled in; null: not known")

    class Meta:
        ordering: ClassVar = ["-created_at", "uid"]
        indexes: ClassVar = [
            models.Index(fields=["namespace", "name"]),
            # Lists show what exists, newest first or by one of these columns: they read a page of an index and stop.
            *(
                models.Index(fields=[*fields, "uid"], name=name, condition=models.Q(deleted_at=None))
                for name, fields in {
                    "job_by_phase": ["phase", "-created_at"],
                    "job_by_queue": ["queue", "-created_at"],
                    "job_by_owner": ["owner", "-created_at"],
                    "job_by_name": ["name"],
                    "job_by_gpus": ["-gpus"],
                    "job_by_pods": ["-replicas"],
                    "job_by_since": ["-phase_since"],
                    "job_by_end": ["-finished_at"],
                }.items()
            ),
            # With what a text is searched in, so that a word that few jobs have is found without reading the wide rows.
            models.Index(
                fields=["-created_at", "uid", "name", "owner", "queue", "namespace"],
                name="job_by_age",
                condition=models.Q(deleted_at=None),
            ),
            # All that facets and groups count by, so that counting reads this alone and never the wide rows.
            models.Index(
                fields=[*_COUNTED],
                name="job_counts",
                condition=models.Q(deleted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class JobLabel(models.Model):
    """One label of a job, so that lists are filtered by labels without reading every row."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=317)
    value = models.CharField(max_length=63, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["job", "key"], name="job_label_key")]
        indexes: ClassVar = [models.Index(fields=["key", "value", "job"], name="job_by_label")]

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class Hold(models.Model):
    """A stretch of time in which one cause kept a job waiting; `verdict` is the first one of it, `until` null while it lasts."""

    job_uid = models.CharField(max_length=36)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    stage = models.CharField(max_length=24)
    code = models.CharField(max_length=64)
    verdict = models.JSONField()

    class Meta:
        ordering: ClassVar = ["since", "id"]
        indexes: ClassVar = [models.Index(fields=["job_uid", "since"], name="hold_by_job")]

    def __str__(self) -> str:
        return f"{self.job_uid} {self.code}"


class LogTail(models.Model):
    """The last lines of a job's log, kept for good: `[instant, pod, container, is of stderr, text]` each."""

    job_uid = models.CharField(primary_key=True, max_length=36)
    lines = models.JSONField(default=list)
    kept_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.job_uid


class Task(models.Model):
    """One role of a job. `counts` maps a pod phase to the number of pods in it."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="tasks")
    name = models.CharField(max_length=63)
    position = models.PositiveIntegerField()
    replicas = models.PositiveIntegerField(default=0)
    min_available = models.PositiveIntegerField(default=0)
    requests = models.JSONField(default=dict, help_text="of one pod, in smallest units")
    counts = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["job", "name"], name="task_name")]

    def __str__(self) -> str:
        return self.name


class PodGroup(Projected):
    """A gang as the scheduler sees it."""

    namespace = models.CharField(max_length=63)
    job_uid = models.CharField(max_length=36, blank=True, db_index=True)
    queue = models.CharField(max_length=253, db_index=True)
    phase = models.CharField(max_length=16, choices=GroupPhase, default=GroupPhase.PENDING)
    min_member = models.PositiveIntegerField(default=0)
    min_resources = models.JSONField(default=dict)
    conditions = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Pod(Projected):
    """A pod; `job_uid` is empty for pods that belong to no job. Rows stay after the pod is gone: they are the job's history."""

    namespace = models.CharField(max_length=63)
    job_uid = models.CharField(max_length=36, blank=True, db_index=True)
    group = models.CharField(max_length=253, blank=True, help_text="name of its PodGroup")
    queue = models.CharField(max_length=253, blank=True)
    task = models.CharField(max_length=63, blank=True)
    index = models.PositiveIntegerField(default=0)
    job_version = models.PositiveIntegerField(default=0)
    phase = models.CharField(max_length=16, choices=PodPhase, default=PodPhase.PENDING)
    node = models.CharField(max_length=253, blank=True, db_index=True)
    gpus = models.JSONField(default=list, help_text="indices of the node's GPUs that it holds")
    cards = models.JSONField(default=list, help_text="its parts of cards: [UUID or index, MiB, percent of cores]")
    nominated = models.CharField(max_length=253, blank=True, help_text="node where it is to have what others give up")
    requests = models.JSONField(default=dict, help_text="in smallest units")
    scheduled_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    reason = models.CharField(max_length=128, blank=True)
    message = models.TextField(blank=True)
    restarts = models.PositiveIntegerField(default=0)
    restarted_at = models.DateTimeField(null=True)
    containers = models.PositiveIntegerField(default=0)
    ready = models.PositiveIntegerField(default=0, help_text="containers that are ready")
    word = models.CharField(max_length=80, blank=True, help_text="its state as kubectl says it: the phase, or what says more")

    class Meta:
        ordering: ClassVar = ["task", "index"]
        indexes: ClassVar = [models.Index(fields=["job_uid", "task", "index"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PhaseChange(models.Model):
    """One step in a job's life: what the timeline is drawn from."""

    job_uid = models.CharField(max_length=36)
    phase = models.CharField(max_length=16)
    group_phase = models.CharField(max_length=16, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["at", "id"]
        indexes: ClassVar = [models.Index(fields=["job_uid", "at"])]

    def __str__(self) -> str:
        return f"{self.job_uid} {self.phase}"
