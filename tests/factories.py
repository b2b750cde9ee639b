"""Rows for tests and for looking at pages: made straight in the projection, with believable values."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster.models import Event, Node
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.models import Job, PhaseChange, Pod, PodGroup, Task
from queues.models import Queue, QueueSample, SampleTime

GPU = "nvidia.com/gpu"
MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "Tesla-V100-SXM2-32GB")
OWNERS = ("lena", "ivo", "deshi", "qiu", "hana", "yan", "marek", "sofie")
QUEUES = ("research-nlp", "research-vision", "research-speech", "robotics", "prod", "teaching", "default")


def now() -> datetime:
    """Wall time, aware."""
    return datetime.now(UTC)


def manifest(
    name: str, namespace: str = "default", queue: str = "default", replicas: int = 2, **annotations: str
) -> dict[str, Any]:
    """A small Volcano Job."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations)},
        "spec": {
            "queue": queue,
            "minAvailable": replicas,
            "schedulerName": "volcano",
            "tasks": [
                {
                    "name": "worker",
                    "replicas": replicas,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "main",
                                    "image": "pytorch/pytorch:2.4",
                                    "command": ["python", "train.py"],
                                    "resources": {"requests": {"cpu": "8", GPU: 8}, "limits": {GPU: 8}},
                                }
                            ],
                        }
                    },
                }
            ],
        },
    }


def verdict(**changes: Any) -> dict[str, Any]:
    """A gang short of H100s, or what `changes` make of it."""
    base: dict[str, Any] = {
        "stage": "node_fit", "code": "nodes.insufficient", "queue": "research-nlp", "task": "worker", "resource": GPU,
        "asked": 8000, "free": 5000, "short": 3000, "limit": 0, "needed": 8, "placeable": 5, "nodes": 32,
        "rejected": {"selector": 16, f"insufficient:{GPU}": 9, "cordoned": 2},
    }  # fmt: skip
    return base | changes


def job(name: str = "train", **values: Any) -> Job:
    """An unsaved job; `phase`, `verdict` and times as given."""
    made = values.pop("created_at", now() - timedelta(minutes=20))
    phase = values.setdefault("phase", JobPhase.PENDING)
    found = values.get("verdict")
    defaults: dict[str, Any] = {
        "uid": str(uuid.uuid4()), "name": name, "namespace": "default", "queue": "research-nlp", "owner": "lena",
        "resource_version": 1, "created_at": made, "phase_since": made, "replicas": 2, "min_available": 2, "gpus": 16,
        "gpu_model": MODELS[0], "cpu_milli": 16_000, "memory_bytes": 64 << 30,
        "verdict_stage": found["stage"] if found else "",
        "group_phase": GroupPhase.RUNNING if phase == JobPhase.RUNNING else GroupPhase.PENDING,
    }  # fmt: skip
    made_job = Job(**(defaults | values))
    if not made_job.manifest:
        made_job.manifest = manifest(name, made_job.namespace, made_job.queue, made_job.replicas)
    return made_job


def pods(of: Job, count: int, task: str = "worker", **values: Any) -> list[Pod]:
    """Unsaved pods of a job, on nodes n-000 upward unless `node` says otherwise."""
    made = values.pop("created_at", of.created_at + timedelta(seconds=2))
    nodes = "node" not in values and values.get("phase", PodPhase.RUNNING) != PodPhase.PENDING
    return [
        Pod(
            **(
                {
                    "uid": str(uuid.uuid4()),
                    "name": f"{of.name}-{task}-{i}",
                    "namespace": of.namespace,
                    "job_uid": of.uid,
                    "queue": of.queue,
                    "task": task,
                    "index": i,
                    "resource_version": 1,
                    "created_at": made,
                    "phase": PodPhase.RUNNING,
                    "node": f"n-{i % 32:03}" if nodes else "",
                    "requests": {GPU: 1000, "cpu": 4000},
                }
                | values
            )
        )
        for i in range(count)
    ]


def node(name: str, gpus: int = 8, **values: Any) -> Node:
    """An unsaved, ready node."""
    defaults: dict[str, Any] = {
        "uid": str(uuid.uuid4()), "name": name, "resource_version": 1, "created_at": now() - timedelta(days=30), "ready": True,
        "gpu_count": gpus, "gpu_model": MODELS[0] if gpus else "", "gpu_memory_mib": 81_920 if gpus else 0, "seen_at": now(),
        "allocatable": {"cpu": 96_000, "memory": 1 << 40, "pods": 110} | ({GPU: gpus * 1000} if gpus else {}),
        "rack": "s1r1", "spine": "spine-1",
    }  # fmt: skip
    return Node(**(defaults | values))


def queue(name: str, **values: Any) -> Queue:
    """An unsaved queue below root."""
    defaults: dict[str, Any] = {
        "uid": str(uuid.uuid4()), "name": name, "resource_version": 1, "created_at": now() - timedelta(days=30),
        "parent": "" if name == "root" else "root",
    }  # fmt: skip
    return Queue(**(defaults | values))


def event(about: Job, reason: str = "Scheduled", message: str = "", **values: Any) -> Event:
    """An unsaved event about a job."""
    at = values.pop("at", now())
    defaults: dict[str, Any] = {
        "uid": str(uuid.uuid4()), "name": f"{about.name}.{uuid.uuid4().hex[:8]}", "resource_version": 1, "created_at": at,
        "namespace": about.namespace, "about_kind": "Job", "about_name": about.name, "about_uid": about.uid, "reason": reason,
        "message": message, "first_seen": at, "last_seen": at,
    }  # fmt: skip
    return Event(**(defaults | values))


def many_jobs(count: int, seed: int = 1) -> list[Job]:
    """Unsaved jobs of all kinds over the last two days, the same for the same seed."""
    rng = random.Random(seed)
    weights = {
        JobPhase.COMPLETED: 60, JobPhase.RUNNING: 14, JobPhase.PENDING: 14, JobPhase.FAILED: 5, JobPhase.ABORTED: 3,
        JobPhase.RESTARTING: 1, JobPhase.TERMINATING: 1, JobPhase.TERMINATED: 2,
    }  # fmt: skip
    present = now()
    return [_random_job(rng, i, rng.choices(list(weights), list(weights.values()))[0], present) for i in range(count)]


_HELD: tuple[dict[str, Any], ...] = (
    {},
    {"stage": "queue_limit", "code": "queue.capability", "asked": 8000, "free": 0, "limit": 16_000, "short": 8000},
    {"stage": "admission", "code": "overcommit", "resource": "cpu", "asked": 96_000, "free": 12_000, "short": 84_000},
    {"stage": "node_fit", "code": "pod.too_large", "asked": 12_000, "limit": 8000, "short": 4000},
    {"stage": "gang", "code": "gang.too_few_pods", "resource": "", "asked": 0, "needed": 8, "placeable": 3},
)


def _random_job(rng: random.Random, i: int, phase: JobPhase, present: datetime) -> Job:
    made = present - timedelta(minutes=rng.randint(1, 2880))
    replicas = rng.choice((1, 1, 2, 4, 8, 8, 16))
    waited, ran = timedelta(seconds=rng.randint(1, 900)), timedelta(minutes=rng.randint(1, 400))
    start = None if phase == JobPhase.PENDING else min(made + waited, present)
    end = min(start + ran, present) if start and (phase.is_final or phase == JobPhase.ABORTED) else None
    name = rng.choice(("llm-pretrain", "vit-sweep", "asr-large", "eval-nightly", "ocr-train", "graph-embed", "tok-bench"))
    queue_name = rng.choice(QUEUES)
    per_pod = rng.choice((0, 1, 8))
    held = verdict(**rng.choice(_HELD), queue=queue_name) if phase == JobPhase.PENDING and rng.random() < 0.9 else None
    return job(
        f"{name}-{i:05}",
        uid=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        namespace=rng.choice(("nlp", "vision", "default")),
        queue=queue_name, owner=rng.choice(OWNERS), phase=phase, created_at=made, started_at=start, finished_at=end,
        phase_since=end or start or made, replicas=replicas, min_available=rng.choice((1, replicas)), gpus=replicas * per_pod,
        gpu_model=rng.choice(MODELS), running=replicas if phase == JobPhase.RUNNING else 0,
        succeeded=replicas if phase == JobPhase.COMPLETED else 0, failed=1 if phase == JobPhase.FAILED else 0,
        pending=replicas if phase == JobPhase.PENDING else 0, verdict=held,
        group_phase=rng.choice((GroupPhase.PENDING, GroupPhase.INQUEUE)) if phase == JobPhase.PENDING else GroupPhase.RUNNING,
    )  # fmt: skip


def save(*rows: Iterable[Any]) -> None:
    """Insert lists of unsaved rows, each list of one model."""
    for found in rows:
        batch = list(found)
        if batch:
            type(batch[0]).objects.bulk_create(batch, batch_size=500)
        if batch and isinstance(batch[0], QueueSample):
            moments = [SampleTime(at=at, run=1) for at in sorted({sample.at for sample in batch})]
            SampleTime.objects.bulk_create(moments, ignore_conflicts=True)


def fleet() -> None:
    """32 nodes in racks, queues with shares, an hour of samples."""
    nodes = [
        node(
            f"n-{i:03}",
            8,
            rack=f"s{i // 16 + 1}r{i // 4 % 4 + 1}",
            spine=f"spine-{i // 16 + 1}",
            gpu_model=MODELS[0 if i < 16 else 1],
        )
        for i in range(30)
    ]
    nodes += [
        node("n-030", 8, rack="s2r4", spine="spine-2", ready=False),
        node("n-031", 8, rack="s2r4", spine="spine-2", cordoned=True),
    ]
    nodes[5].gpu_unhealthy = [3]
    rng = random.Random(2)
    queues = [queue("root")]
    for i, name in enumerate(QUEUES):
        deserved, allocated = (48 - 5 * i) * 1000, rng.randint(4, 50) * 1000
        queues.append(
            queue(
                name,
                groups_pending=rng.randint(0, 9),
                groups_running=rng.randint(1, 30),
                capability={GPU: 72_000},
                guarantee={GPU: 8000} if i % 2 else {},
                share_allocated={GPU: allocated},
                share_deserved={GPU: deserved},
                share_request={GPU: allocated + 8000},
                share_inqueue={GPU: 4000},
            )
        )
    present = now()
    samples = []
    for name in QUEUES:
        level = rng.randint(8, 40)
        for step in range(120):
            level = max(2, min(60, level + rng.randint(-2, 2)))
            at = present - timedelta(seconds=30 * (120 - step))
            samples.append(QueueSample(queue=name, at=at, allocated={GPU: level * 1000}, request={GPU: level * 1300}))
    save(nodes, queues, samples)


__all__ = [
    "PhaseChange", "PodGroup", "Task", "event", "fleet", "job", "manifest", "many_jobs", "node", "now", "pods", "queue", "save",
    "verdict",
]  # fmt: skip
