"""Place gangs of 100 on 10,000 nodes at once.

Run it as `python -m bench.gangs [--nodes N] [--gangs N] [--size N] [--runs N]`. Nodes have 64 CPUs, 512 GiB and
8 GPUs; a pod takes 8 CPUs, 48 GiB and one whole GPU, and all gangs are alike but for their names, in four queues of
different weight.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bench.table import PACKING, best_of, rows_of, show
from cluster.objects import HOSTNAME_LABEL, stamp
from cluster.port import Obj
from scheduler.conf import DEFAULT
from scheduler.snapshot import Snapshot

QUEUES = {"research": 1, "vision": 2, "language": 3, "serving": 4}
REQUESTS = {"cpu": "8", "memory": "48Gi", "nvidia.com/gpu": "1"}


def nodes(count: int) -> Iterator[Obj]:
    """Equal GPU nodes."""
    allocatable = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    for i in range(count):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i:05}", "uid": f"node-{i:05}", "labels": {HOSTNAME_LABEL: f"node-{i:05}"}},
            "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
        }


def queues() -> Iterator[Obj]:
    """Queues that share by weight."""
    for name, weight in QUEUES.items():
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name, "uid": name},
            "spec": {"weight": weight},
            "status": {"state": "Open"},
        }


def gang(number: int, size: int) -> Iterator[Obj]:
    """A PodGroup of `size` pods, all needed at once, and its pods."""
    name, queue = f"gang-{number:05}", list(QUEUES)[number % len(QUEUES)]
    created = stamp(float(number))
    total = {"cpu": str(8 * size), "memory": f"{48 * size}Gi", "nvidia.com/gpu": str(size), "pods": str(size)}
    yield {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "bench", "uid": name, "creationTimestamp": created},
        "spec": {"minMember": size, "queue": queue, "minResources": total},
        "status": {"phase": "Pending"},
    }
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "job", "resources": {"requests": REQUESTS}}]}
    annotations = {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": "worker"}
    for i in range(size):
        pod = f"{name}-worker-{i}"
        meta = {"name": pod, "namespace": "bench", "uid": pod, "creationTimestamp": created, "annotations": annotations}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def snapshot(node_count: int, gangs: int, size: int, conf: str) -> Snapshot:
    """The whole bench as objects."""
    objs = [*nodes(node_count), *queues()]
    for number in range(gangs):
        objs += gang(number, size)
    return Snapshot.of(objs, conf)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000, help="number of nodes")
    parser.add_argument("--gangs", type=int, default=500, help="number of gangs")
    parser.add_argument("--size", type=int, default=100, help="pods in a gang")
    parser.add_argument("--runs", type=int, default=3, help="how often to measure; the quickest is shown")
    given = parser.parse_args()
    if min(given.nodes, given.gangs, given.size, given.runs) < 1:
        parser.error("--nodes, --gangs, --size and --runs are whole numbers from 1 on")
    configurations = {"default": DEFAULT, "default + binpack": PACKING.format(resources="nvidia.com/gpu")}
    pods = given.gangs * given.size
    runs = [best_of(given.runs, snapshot(given.nodes, given.gangs, given.size, conf)) for conf in configurations.values()]
    title = f"gangs: {given.nodes:,} nodes, {given.gangs:,} gangs of {given.size}, {pods:,} pods, all pending at once"
    show(title, rows_of(runs, pods), list(configurations))


if __name__ == "__main__":
    main()
