"""Many jobs at once, written straight as rows: for query counts and the bench of the job list."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.choices import GroupPhase, JobPhase
from jobs.models import Job, JobLabel

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
VERDICT = {
    "stage": "node_fit", "code": "nodes.insufficient", "queue": "default", "task": "worker", "resource": "nvidia.com/gpu",
    "asked": 64000, "free": 40000, "short": 24000, "limit": 0, "needed": 8, "placeable": 5, "nodes": 32,
    "rejected": {"insufficient:nvidia.com/gpu": 27},
}  # fmt: skip


def make_jobs(count: int, seed: int = 1, *, queues: int = 12, owners: int = 20, labels: bool = False) -> None:
    """`count` jobs of every phase, in twelve queues, of twenty people, unless it is said otherwise."""
    rng = random.Random(seed)
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {},
        "spec": {"tasks": [{"name": "x" * 40}] * 20},
    }
    Job.objects.bulk_create((_job(rng, number, manifest, queues, owners) for number in range(count)), batch_size=500)
    if labels:
        rows = (JobLabel(job_id=_uid(number), key="app", value=f"a{number % 100}") for number in range(count))
        JobLabel.objects.bulk_create(rows, batch_size=500)


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _job(rng: random.Random, number: int, manifest: dict[str, Any], queues: int, owners: int) -> Job:
    phase = rng.choice(list(JobPhase))
    at = BEGIN + timedelta(seconds=number * 7)
    waits = phase == JobPhase.PENDING
    return Job(
        uid=_uid(number),
        name=f"job-{number:06d}",
        namespace=f"team-{number % 5}",
        resource_version=number + 1,
        created_at=at,
        queue=f"queue-{number % queues}",
        owner=f"user-{number % owners}",
        phase=phase,
        group_phase=GroupPhase.INQUEUE if waits and number % 2 else "",
        phase_since=at,
        replicas=rng.randint(1, 64),
        min_available=1,
        gpus=rng.choice((0, 1, 2, 8, 64)),
        gpu_model="NVIDIA-H100-80GB-HBM3",
        verdict=VERDICT | {"short": rng.randint(1, 64) * 1000} if waits else None,
        verdict_stage="node_fit" if waits else "",
        manifest=manifest,
    )
