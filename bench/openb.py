"""Place the whole openb trace at once: 1,523 nodes, 8,152 pods, each with a PodGroup of one.

Run it as `python -m bench.openb [--data DIR] [--runs N] [--profile FILE]`. The trace is Alibaba's GPU cluster of 2023; a share of
a GPU is counted as a plain amount (`basalt.dev/gpu-milli`, 1,000 a GPU), and a wanted GPU model is a node affinity.
"""

from __future__ import annotations

import argparse
import cProfile
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.table import PACKING, best_of, place_all, rows_of, show
from cluster.objects import GPU_PRODUCT_LABEL, HOSTNAME_LABEL, stamp
from cluster.port import Obj
from scheduler.conf import DEFAULT
from scheduler.snapshot import Offline, Snapshot

GPU_MILLI = "basalt.dev/gpu-milli"
DATA = Path(__file__).parents[2] / "shared" / "data" / "traces" / "openb"


def read(path: Path) -> Iterator[dict[str, str]]:
    """Rows of one CSV file of the trace."""
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def node(row: dict[str, str]) -> Obj:
    """A node of the trace as Kubernetes has it."""
    name, gpus = row["sn"], int(row["gpu"])
    labels = {HOSTNAME_LABEL: name}
    allocatable = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110"}
    if gpus:
        labels[GPU_PRODUCT_LABEL] = row["model"]
        allocatable[GPU_MILLI] = str(1000 * gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "uid": name},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod_and_group(row: dict[str, str]) -> tuple[Obj, Obj]:
    """A pod of the trace, pending, and its PodGroup of one."""
    name, share = row["name"], int(row["num_gpu"] or 0) * int(row["gpu_milli"] or 0)
    requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    spec: Obj = {
        "schedulerName": "volcano",
        "containers": [{"name": "main", "image": "job", "resources": {"requests": requests}}],
    }
    if share:
        requests[GPU_MILLI] = str(share)
    if row["gpu_spec"]:
        wanted = {"key": GPU_PRODUCT_LABEL, "operator": "In", "values": row["gpu_spec"].split("|")}
        required = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    meta = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": stamp(float(row["creation_time"]))}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "annotations": {"scheduling.k8s.io/group-name": name}},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 1, "queue": "default", "minResources": {**requests, "pods": "1"}},
        "status": {"phase": "Pending"},
    }
    return pod, group


def snapshot(data: Path = DATA, pods: str = "openb_pod_list_default.csv", conf: str = DEFAULT) -> Snapshot:
    """The trace as a snapshot of Kubernetes objects."""
    objs = [node(row) for row in read(data / "openb_node_list_all_node.csv")]
    for row in read(data / pods):
        objs += pod_and_group(row)
    return Snapshot.of(objs, conf)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the CSV files of openb")
    parser.add_argument("--profile", type=Path, help="write a profile of the first cycle to this file instead")
    parser.add_argument("--runs", type=int, default=3, help="how often to measure; the quickest is shown")
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data} is no folder: name the one with openb_node_list_all_node.csv by --data")
    if given.runs < 1:
        parser.error("--runs is a whole number from 1 on")
    configurations = {"default": DEFAULT, "default + binpack": PACKING.format(resources=GPU_MILLI)}
    if given.profile:
        place_all(snapshot(given.data), lambda offline: profiled(offline, given.profile))
        return
    pods = sum(1 for _ in read(given.data / "openb_pod_list_default.csv"))
    runs = [best_of(given.runs, snapshot(given.data, conf=conf)) for conf in configurations.values()]
    show(f"openb: 1,523 nodes, {pods:,} pods, all pending at once", rows_of(runs, pods), list(configurations))


def profiled(offline: Offline, to: Path) -> None:
    """Profile one cycle."""
    profile = cProfile.Profile()
    profile.runcall(offline.decide)
    profile.dump_stats(to)


if __name__ == "__main__":
    main()
