"""What the database keeps of a cluster: the embedded store's objects, and the projection of nodes and events."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from cluster.said import unpacked


class StoredObject(models.Model):
    """One object of the embedded store, written through before any watcher sees it."""

    kind = models.CharField(max_length=120)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    resource_version = models.BigIntegerField(db_index=True)
    body = models.BinaryField(help_text="the object as JSON")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "namespace", "name"], name="stored_object_name"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Projected(models.Model):
    """A row made from one object of the cluster.

    It moves only forward by `resource_version`; `deleted_at` is the tombstone that keeps a late event from bringing it back.
    """

    uid = models.CharField(primary_key=True, max_length=36)
    name = models.CharField(max_length=253)
    resource_version = models.BigIntegerField()
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Node(Projected):
    """A machine. Amounts are as in the cluster's own arithmetic: milli-CPU, bytes, milli-units of other resources."""

    ready = models.BooleanField(default=False)
    heard = models.BooleanField(default=True, help_text="whether its kubelet is heard: of a silent one nothing is known")
    cordoned = models.BooleanField(default=False)
    draining = models.BooleanField(default=False, help_text="it is cordoned and its pods are to leave it")
    labels = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    allocatable = models.JSONField(default=dict, help_text="resource to smallest unit")
    gpu_count = models.PositiveIntegerField(default=0)
    gpu_model = models.CharField(max_length=80, blank=True, db_index=True)
    gpu_memory_mib = models.PositiveIntegerField(default=0)
    gpu_unhealthy = models.JSONField(default=list, help_text="indices")
    gpu_cards = models.JSONField(default=list, help_text="cards that pods share: [UUID, MiB] by index")
    gpu_usage = models.JSONField(default=dict, help_text="measured: at (epoch), load (percent) and memory (MiB) by index")
    gpu_links = models.JSONField(default=list, help_text="link names, [gpu][gpu], as nvidia-smi topo -m prints them")
    rack = models.CharField(max_length=120, blank=True)
    spine = models.CharField(max_length=120, blank=True)
    conditions = models.JSONField(default=list, help_text="as the node says: type, status, reason, message, since")
    seen_at = models.DateTimeField(null=True, help_text="last heartbeat of the node's kubelet")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class HyperNode(Projected):
    """A network domain: nodes or smaller domains that are `tier` switches apart."""

    tier = models.PositiveIntegerField()
    tier_name = models.CharField(max_length=253, blank=True)
    members = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["tier", "name"]

    def __str__(self) -> str:
        return self.name


class Event(Projected):
    """A Kubernetes event about one object."""

    namespace = models.CharField(max_length=63, blank=True)
    about_kind = models.CharField(max_length=63)
    about_name = models.CharField(max_length=253)
    about_uid = models.CharField(max_length=36, db_index=True)
    type = models.CharField(max_length=16, default="Normal")
    reason = models.CharField(max_length=128)
    message = models.TextField(blank=True)
    said = models.TextField(blank=True, default="", help_text="template and values of the message, where it was made of some")
    count = models.PositiveIntegerField(default=1)
    source = models.CharField(max_length=128, blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField(db_index=True)

    class Meta:
        ordering: ClassVar = ["-last_seen"]

    def __str__(self) -> str:
        return f"{self.reason} {self.about_kind} {self.namespace}/{self.about_name}"

    @property
    def sentence(self) -> str:
        """The message, as a sentence where its template is known."""
        return unpacked(self.said, self.message)


class IdempotentRequest(models.Model):
    """The answer to a request that its sender named by an Idempotency-Key; `status` 0 while it is being worked on."""

    user = models.CharField(max_length=150)
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, help_text="what was asked, hashed")
    status = models.PositiveSmallIntegerField(default=0)
    body = models.JSONField(null=True)
    location = models.CharField(max_length=400, blank=True)
    at = models.DateTimeField(db_index=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "key"], name="idempotent_request_key")]

    def __str__(self) -> str:
        return f"{self.user} {self.key}"
