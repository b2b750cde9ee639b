"""A demo fleet with work on it, for page tests and for looking: the real demo objects, projected, and random gangs in rows."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from datetime import timedelta

from cluster.admission import admission
from cluster.embedded import fleets
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import NODE, QUEUE
from cluster.models import Node
from cluster.projection import Batch, project_nodes
from jobs.choices import JobPhase, PodPhase
from jobs.models import Job, Pod
from queues.models import Queue, QueueSample
from queues.projection import project as project_queues
from tests import factories
from tests.factories import GPU


def demo_cluster(seed: int = 1) -> EmbeddedCluster:
    """The demo fleet in memory, with its nodes and queues projected; nobody runs in it."""
    cluster = EmbeddedCluster(admission=admission.copy(), random=random.Random(seed))
    fleets.load(cluster, fleets.demo())
    project_nodes(Batch(upserts=cluster.list(NODE).items))
    project_queues(Batch(upserts=cluster.list(QUEUE).items))
    return cluster


def large_fleet(nodes: int, gpus: int = 8) -> None:
    """Rows of many nodes in racks of eight and spines of thirty-two racks."""
    rows = [
        factories.node(
            f"n{i:05}", gpus, rack=f"r{i // 8:04}", spine=f"spine-{i // 256 + 1:02}", gpu_model=factories.MODELS[i // 256 % 3]
        )
        for i in range(nodes)
    ]
    factories.save(rows)


def occupy(share: float = 0.75, seed: int = 7) -> None:
    """Running gangs on about a share of the GPUs; a few releasing, unhealthy, cordoned and lost."""
    rng = random.Random(seed)
    nodes = list(Node.objects.filter(gpu_count__gt=0).order_by("spine", "rack", "name"))
    queues = [name for name in Queue.objects.values_list("name", flat=True) if name != "root"] or ["default"]
    jobs: list[Job] = []
    pods: list[Pod] = []
    current: Job | None = None
    left = 0
    for node in nodes:
        free = list(range(node.gpu_count))
        while free and rng.random() < share + 0.15:
            if current is None or left == 0:
                name = rng.choice(("clip-retrain", "llm-pretrain", "asr-large", "det-finetune", "probe-attn", "tts-vocoder"))
                left = rng.choice((1, 1, 2, 4, 6, 9))
                current = factories.job(
                    f"{name}-{len(jobs)}",
                    phase=JobPhase.RUNNING,
                    queue=rng.choice(queues),
                    owner=rng.choice(factories.OWNERS),
                    replicas=left,
                    running=left,
                )
                jobs.append(current)
            take = len(free) if rng.random() < 0.7 else rng.randint(1, len(free))
            held, free = free[:take], free[take:]
            phase = PodPhase.TERMINATING if rng.random() < 0.03 else PodPhase.RUNNING
            pods.append(
                Pod(
                    uid=str(uuid.UUID(int=rng.getrandbits(128), version=4)), namespace="default",
                    resource_version=1, created_at=current.created_at, job_uid=current.uid, queue=current.queue,
                    name=f"{current.name}-worker-{left}", task="worker", index=left,
                    phase=phase, node=node.name, gpus=held, started_at=factories.now() - timedelta(minutes=rng.randint(1, 300)),
                    requests={GPU: take * 1000, "cpu": take * 8000, "memory": take * (64 << 30)},
                )
            )  # fmt: skip
            left -= 1
    factories.save(jobs, pods)
    if len(nodes) > 8:
        Node.objects.filter(pk__in=[nodes[5].pk, nodes[-2].pk]).update(gpu_unhealthy=[2])
        Node.objects.filter(pk=nodes[-3].pk).update(cordoned=True)
        Node.objects.filter(pk=nodes[len(nodes) // 2].pk).update(ready=False)


def shares(seed: int = 3, steps: int = 118) -> None:
    """Figures of the scheduler for every leaf queue, now and over the last hour."""
    rng = random.Random(seed)
    used: Counter[str] = Counter()
    for queue, requests in Pod.objects.values_list("queue", "requests"):
        used[queue] += requests.get(GPU, 0)
    samples = []
    for queue in Queue.objects.exclude(name="root"):
        allocated = used[queue.name]
        cpu = allocated * 8
        queue.share_allocated = {GPU: allocated, "cpu": cpu, "memory": allocated // 1000 * (64 << 30)}
        queue.share_deserved = {GPU: 24_000, "cpu": 300_000, "memory": 2 << 40}
        queue.share_request = {GPU: allocated + 8000, "cpu": cpu + 64_000}
        queue.share_inqueue = {GPU: rng.choice((0, 4000, 8000))}
        queue.share = allocated / 24_000
        queue.groups_running, queue.groups_pending, queue.groups_inqueue = allocated // 9000, rng.randint(0, 5), rng.randint(0, 2)
        queue.save()
        level = allocated // 1000
        for step in range(steps):
            level = max(0, level + rng.choice((-2, 0, 0, 1, 2)))
            at = factories.now() - timedelta(seconds=30 * step)
            samples.append(
                QueueSample(
                    queue=queue.name, at=at, allocated={GPU: level * 1000, "cpu": level * 8000, "memory": level << 36},
                    deserved={GPU: 24_000}, request={GPU: (level + 6) * 1000}, inqueue={GPU: 2000},
                )
            )  # fmt: skip
    factories.save(samples)
