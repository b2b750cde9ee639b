"""This machine as the one node of a fleet: what it has, as far as it can be told."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from cluster import objects
from cluster.embedded.fleets import Fleet
from cluster.embedded.machines import GPU, make_node
from cluster.kinds import NODE, QUEUE
from cluster.port import Cluster, Obj
from cluster.topology import TopologyError, parse_topology

RUNTIME = "basalt.dev/runtime"
"""On every node: which runtime its pods are for, `process` or `simulated` (absent: simulated)."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PODS = 1000


def fleet(data: Path) -> Fleet:
    """One node, named as this machine, and a queue to begin with; a tenth of the memory stays with the system."""
    labels, notes, gpus = _gpus()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    amounts = {"cpu": str(os.cpu_count() or 1), "memory": f"{memory}Mi", "pods": str(_PODS)}
    amounts |= {"ephemeral-storage": f"{shutil.disk_usage(data).total >> 20}Mi"} | ({GPU: str(gpus)} if gpus else {})
    node = make_node(
        _name(),
        capacity=amounts,
        allocatable=amounts | {"memory": f"{memory - memory // 10}Mi"},
        labels={"kubernetes.io/arch": _ARCHITECTURES.get(platform.machine(), platform.machine()), **labels},
        annotations={**notes, RUNTIME: "process"},
    )
    queue = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": "default"}, "spec": {"weight": 1}}
    return Fleet("this machine", (node, queue))


def marked(fleet: Fleet) -> Fleet:
    """A fleet of a file whose pods are to run here."""
    return Fleet(fleet.name, tuple(_marked(obj) if obj["kind"] == NODE.kind else obj for obj in fleet.objects))


def _marked(node: Obj) -> Obj:
    metadata = node["metadata"]
    return {**node, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), RUNTIME: "process"}}}


def others(cluster: Cluster, runtime: str) -> list[str]:
    """Names of the nodes that were made for another runtime than this one."""
    nodes = cluster.list(NODE).items
    return [node["metadata"]["name"] for node in nodes if objects.annotations(node).get(RUNTIME, "simulated") != runtime]


def _name() -> str:
    name = re.sub(r"[^a-z0-9.-]+", "-", platform.node().lower()).strip("-.")
    return name[:63] or "machine"


def _gpus() -> tuple[dict[str, str], dict[str, str], int]:
    """Labels, annotations and number of the GPUs that NVIDIA's tool sees; nothing without it."""
    listed = _said("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits").splitlines()
    rows = [row.rpartition(", ") for row in listed if ", " in row]
    if not rows:
        return {}, {}, 0
    product = re.sub(r"[^A-Za-z0-9_.-]+", "-", rows[0][0].strip()).strip("-_.")[:63]
    labels = {
        objects.GPU_PRODUCT_LABEL: product,
        objects.GPU_MEMORY_LABEL: rows[0][2].strip(),
        objects.GPU_COUNT_LABEL: str(len(rows)),
    }
    topology = _said("nvidia-smi", "topo", "-m")
    with contextlib.suppress(TopologyError):
        parse_topology(topology)
        return labels, {objects.GPU_TOPOLOGY: topology}, len(rows)
    return labels, {}, len(rows)


def _said(*command: str) -> str:
    """What a tool prints; nothing where there is no such tool, or it fails or takes long."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        found = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout
