"""Many queues at once, with nodes, pods and samples over time, written straight as rows: for query counts and benches."""

from __future__ import annotations

import random
import uuid
from datetime import datetime, timedelta

from cluster.models import Node
from jobs.choices import PodPhase
from jobs.models import Pod
from queues.integrals import PARTS
from queues.models import Queue, QueueSample, SampleTime

GPU = "nvidia.com/gpu"
MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
FINE = timedelta(hours=1)


def make_queues(count: int, now: datetime, *, nodes: int = 50, window: timedelta = timedelta(minutes=10), seed: int = 1) -> None:
    """`root`, a tenth of `count` below it, the rest below these; nodes full of their pods; samples as thinned over a window."""
    rng = random.Random(seed)
    parents = [f"group-{number}" for number in range(max(1, count // 10))]
    leaves = [f"queue-{number}" for number in range(count - len(parents) - 1)]
    rows = [_queue("root", "", now, rng), *(_queue(name, "root", now, rng) for name in parents)]
    rows += [_queue(name, rng.choice(parents), now, rng) for name in leaves]
    Queue.objects.bulk_create(rows, batch_size=500)
    Node.objects.bulk_create([_node(number, now) for number in range(nodes)], batch_size=500)
    Pod.objects.bulk_create([_pod(number, nodes, leaves, now, rng) for number in range(nodes * 8)], batch_size=500)
    names = [row.name for row in rows]
    for at in _instants(now, window):
        _sample(names, at, now - window, rng)


def _queue(name: str, parent: str, now: datetime, rng: random.Random) -> Queue:
    held = {GPU: rng.randint(0, 64) * 1000, "cpu": rng.randint(0, 512) * 1000, "memory": rng.randint(0, 4096) << 30}
    return Queue(
        uid=str(uuid.UUID(int=rng.getrandbits(128), version=4)), name=name, resource_version=1, created_at=now, parent=parent,
        capability={GPU: 96_000}, guarantee={GPU: 8000}, deserved={GPU: 32_000}, share_allocated=held,
        share_deserved={GPU: 32_000, "cpu": 400_000, "memory": 2 << 40}, share_request=held, share_inqueue={GPU: 1000},
        groups_running=rng.randint(0, 40), groups_pending=rng.randint(0, 20),
    )  # fmt: skip


def _node(number: int, now: datetime) -> Node:
    return Node(
        uid=f"node-{number}", name=f"n{number:05}", resource_version=1, created_at=now, ready=True, gpu_count=8,
        gpu_model=MODELS[number % 3], allocatable={GPU: 8000, "cpu": 128_000, "memory": 1 << 40},
    )  # fmt: skip


def _pod(number: int, nodes: int, queues: list[str], now: datetime, rng: random.Random) -> Pod:
    return Pod(
        uid=f"pod-{number}", name=f"p{number}", namespace="default", resource_version=1, created_at=now, phase=PodPhase.RUNNING,
        queue=rng.choice(queues), node=f"n{number % nodes:05}", gpus=[number // nodes], requests={GPU: 1000, "cpu": 8000},
    )  # fmt: skip


def _instants(now: datetime, window: timedelta) -> list[datetime]:
    """As samples are kept: every ten seconds of the last hour, one a minute before."""
    found, at = [], now - window
    while at <= now:
        found.append(at)
        at += timedelta(seconds=10) if at >= now - FINE else timedelta(minutes=1)
    return found


def _sample(names: list[str], at: datetime, begin: datetime, rng: random.Random) -> None:
    passed = round((at - begin).total_seconds() * 1000)
    level = {GPU: rng.randint(0, 64) * 1000, "cpu": 64_000, "memory": 1 << 40}
    sums = {resource: [units * passed] * len(PARTS) for resource, units in level.items()}
    QueueSample.objects.bulk_create(
        [
            QueueSample(queue=name, at=at, allocated=level, deserved=level, request=level, inqueue={}, totals=sums)
            for name in names
        ],
        batch_size=500,
    )
    run = round(begin.timestamp() * 1000)
    SampleTime.objects.create(at=at, run=run, cycle=passed, capacity={GPU: 400_000}, total={GPU: 400_000 * passed})
