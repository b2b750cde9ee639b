"""A seeded, gentle stream of varied jobs into the queues of the cluster, so that a first look has life in it.

Trainings with parameter servers, PyTorch and MPI gangs, single GPUs, CPU batches, whole H100 nodes; a few that must wait and
a few that fail. Everything goes through the same operations that people use.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import structlog

from cluster import runtime
from cluster.clock import Clock
from cluster.errors import ApiError
from cluster.kinds import QUEUE
from cluster.objects import GPU_PRODUCT_LABEL, SIM_DURATION, SIM_EXIT_CODE
from cluster.port import Cluster, Obj
from cluster.projection import Batch
from jobs import operations
from jobs.projection import project_jobs
from portal.parts import Parts
from queues.choices import QueueState
from queues.operations import state_of
from queues.tree import ROOT, Tree

log = structlog.get_logger(__name__)
PART = "samples"
Random = random.Random

OWNERS = ("ada", "chen", "grace", "lin", "noor", "sam")
FIRST, EVERY = 14, 12.0
"""Jobs at once in the beginning, and then seconds (of the cluster's time) between two on the average."""


def pod(image: str, duration: int, resources: dict[str, str], *, exit_code: int = 0, **spec: Any) -> Obj:
    """A pod template of one container that runs for `duration` seconds."""
    notes = {SIM_DURATION: f"{duration}s"} | ({SIM_EXIT_CODE: str(exit_code)} if exit_code else {})
    container = {"name": "main", "image": image, "resources": {"limits": resources, "requests": dict(resources)}}
    return {"metadata": {"annotations": notes}, "spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def asks(cpu: int, memory: int, gpus: int = 0) -> dict[str, str]:
    """CPUs, GiB and GPUs as a resource list."""
    return {"cpu": str(cpu), "memory": f"{memory}Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})


def task(name: str, replicas: int, template: Obj, **more: Any) -> Obj:
    """One role."""
    return {"name": name, "replicas": replicas, "template": template, **more}


def tensorflow(rng: Random) -> Obj:
    """Parameter servers and workers: done when the workers are."""
    length = rng.randint(60, 240)
    done = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    servers = task("ps", rng.randint(1, 2), pod("tensorflow/tensorflow:2.16", length * 2, asks(4, 16)))
    workers = task("worker", rng.randint(2, 6), pod("tensorflow/tensorflow:2.16-gpu", length, asks(8, 32, 1)), policies=done)
    return {"tasks": [servers, workers], "plugins": {"env": [], "svc": []}}


def pytorch(rng: Random) -> Obj:
    """A master and its workers, two GPUs each."""
    template = pod("pytorch/pytorch:2.4", rng.randint(90, 300), asks(8, 64, 2))
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    return {"tasks": [task("master", 1, template), task("worker", rng.randint(1, 5), template)], "policies": policies}


def mpi(rng: Random) -> Obj:
    """A launcher that waits for its workers."""
    length = rng.randint(60, 180)
    done = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    launcher = task("mpimaster", 1, pod("openmpi:5", length, asks(1, 2)), policies=done)
    return {"tasks": [launcher, task("mpiworker", rng.randint(2, 8), pod("openmpi:5", length * 2, asks(4, 8)))]}


def notebook(rng: Random) -> Obj:
    """One GPU, one pod."""
    return {"tasks": [task("main", 1, pod("jupyter/gpu", rng.randint(60, 400), asks(4, 16, 1)))]}


def batch(rng: Random) -> Obj:
    """Many small CPU pods, of which some are enough to begin."""
    count = rng.randint(6, 24)
    return {"minAvailable": count // 3, "tasks": [task("shard", count, pod("python:3.12", rng.randint(30, 120), asks(2, 4)))]}


def whole_nodes(rng: Random) -> Obj:
    """A gang of whole H100 machines: with others about, it has to wait."""
    template = pod("nvcr.io/nvidia/nemo:24.05", rng.randint(120, 300), asks(64, 512, 8), nodeSelector={GPU_PRODUCT_LABEL: H100})
    return {"tasks": [task("rank", rng.choice((2, 3, 4, 8)), template)], "priorityClassName": "high"}


H100 = "NVIDIA-H100-80GB-HBM3"


def broken(rng: Random) -> Obj:
    """Fails after a while, retries, and gives up."""
    template = pod("busybox", rng.randint(10, 40), asks(1, 1), exit_code=rng.choice((1, 2, 137)))
    return {"tasks": [task("main", 1, template)], "maxRetry": 1, "policies": [{"event": "PodFailed", "action": "RestartJob"}]}


def too_large(rng: Random) -> Obj:
    """Asks for more GPUs than any machine has."""
    return {"tasks": [task("main", 1, pod("pytorch/pytorch:2.4", 60, asks(16, 64, 16)))]}


SHAPES: tuple[tuple[int, str, Callable[[Random], Obj]], ...] = (
    (5, "tf-train", tensorflow),
    (6, "torch-ddp", pytorch),
    (3, "mpi-solve", mpi),
    (6, "notebook", notebook),
    (5, "etl", batch),
    (2, "llm-pretrain", whole_nodes),
    (2, "flaky", broken),
    (1, "oversized", too_large),
)


def jobs(seed: int, queues: Callable[[], list[str]]) -> Iterator[tuple[str, Obj]]:
    """Owners and manifests without end; equal seeds give equal streams as long as the queues are equal."""
    rng = Random(seed)
    weights = [weight for weight, _, _ in SHAPES]
    number = 0
    while True:
        number += 1
        _, name, make = rng.choices(SHAPES, weights)[0]
        spec = {"schedulerName": "volcano", "queue": rng.choice(queues() or ["default"])} | make(rng)
        metadata = {"generateName": f"{name}-", "namespace": "demo", "labels": {"basalt.dev/sample": "true"}}
        yield rng.choice(OWNERS), {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def open_leaves(cluster: Cluster) -> list[str]:
    """Queues that take jobs, by name."""
    tree = Tree(cluster.list(QUEUE).items)
    leaves = (name for name in tree.queues if name != ROOT and not tree.children(name))
    return sorted(name for name in leaves if state_of(tree.queues[name]) == QueueState.OPEN)


def start(parts: Parts, seed: int = 1) -> bool:
    """Start the stream beside the other parts, once; whether it was started now."""
    if parts.is_running(PART):
        return False
    parts.add(PART, stream(parts.cluster, parts.clock, seed))
    return True


def stream(cluster: Cluster, clock: Clock, seed: int = 1) -> Callable[[threading.Event], None]:
    """A part that submits: some jobs at once, then one now and then."""

    def run(stop: threading.Event) -> None:
        rng = Random(seed)
        for number, (owner, manifest) in enumerate(jobs(seed, lambda: open_leaves(cluster)), 1):
            if number > FIRST and stop.wait(clock.real(rng.expovariate(1 / EVERY))):
                return
            if stop.is_set():
                return
            _submit(cluster, owner, manifest)

    return run


def _submit(cluster: Cluster, owner: str, manifest: Obj) -> None:
    try:
        obj = operations.submit(cluster, manifest, owner=owner)
    except ApiError as error:  # a queue was closed in between, or a class deleted: the stream goes on
        log.info("a sample job was refused", error=error.message)
        return
    if cluster is runtime.current():
        project_jobs(Batch(upserts=[obj]))
