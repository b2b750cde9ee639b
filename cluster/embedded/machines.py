"""The machine types of the demo fleet: what their data sheets say, as node objects.

Amounts are what a node of that type offers to pods after the system's share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from cluster.objects import GPU_COUNT_LABEL, GPU_MEMORY_LABEL, GPU_PRODUCT_LABEL, GPU_TOPOLOGY, HOSTNAME_LABEL
from cluster.port import Obj
from cluster.topology import GpuTopology, format_topology, from_pairs

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Machine:
    """One type. `memory` and `disk` in GiB, `gpu_memory` in MiB as the driver reports it."""

    kind: str
    cpus: int
    memory: int
    disk: int
    product: str = ""
    family: str = ""
    gpu_memory: int = 0
    topology: GpuTopology | None = field(default=None, repr=False)

    @property
    def gpus(self) -> int:
        """GPUs in the box."""
        return self.topology.gpus if self.topology else 0

    @cached_property
    def _topology_text(self) -> str:
        return format_topology(self.topology) if self.topology else ""

    def node(self, name: str, labels: dict[str, str] | None = None) -> Obj:
        """A node of this type, ready and empty."""
        amounts = {
            "cpu": str(self.cpus),
            "memory": f"{self.memory}Gi",
            "ephemeral-storage": f"{self.disk}Gi",
            "pods": "110",
            **({GPU: str(self.gpus)} if self.gpus else {}),
        }
        return make_node(
            name,
            capacity={**amounts, "cpu": str(self.cpus + 2), "memory": f"{self.memory + 16}Gi"},
            allocatable=amounts,
            labels={"node.kubernetes.io/instance-type": self.kind, **self._gpu_labels(), **(labels or {})},
            annotations={GPU_TOPOLOGY: self._topology_text} if self.topology else {},
        )

    def _gpu_labels(self) -> dict[str, str]:
        """The labels that NVIDIA's GPU feature discovery would put on."""
        if not self.gpus:
            return {}
        return {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.family": self.family,
            GPU_PRODUCT_LABEL: self.product,
            GPU_MEMORY_LABEL: str(self.gpu_memory),
            GPU_COUNT_LABEL: str(self.gpus),
        }


def make_node(
    name: str, *, capacity: dict[str, str], allocatable: dict[str, str], labels: dict[str, str], annotations: dict[str, str]
) -> Obj:
    """A ready node; the stamps of its conditions are put on when a fleet is loaded."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {HOSTNAME_LABEL: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **labels},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [ready_condition()],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }


def ready_condition() -> Obj:
    """What a healthy kubelet says of its node."""
    return {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}


# The DGX-1 mesh of eight V100: within each half a square with one diagonal pair doubled, and four pairs across.
_CUBE_MESH = {
    (0, 1): "NV1", (0, 2): "NV1", (0, 3): "NV2", (0, 4): "NV2", (1, 2): "NV2", (1, 3): "NV1", (1, 5): "NV2",
    (2, 3): "NV2", (2, 6): "NV1", (3, 7): "NV1", (4, 5): "NV1", (4, 6): "NV1", (4, 7): "NV2", (5, 6): "NV2",
    (5, 7): "NV1", (6, 7): "NV2",
}  # fmt: skip
_SWITCHED_PAIRS = {(0, 1): "PIX", (2, 3): "PIX"}

H100 = Machine(
    "hgx-h100-8", 190, 2000, 13000, "NVIDIA-H100-80GB-HBM3", "hopper", 81559,
    from_pairs(8, {}, "NV18", sockets=("0-47,96-143", "48-95,144-191")),
)  # fmt: skip
A100 = Machine(
    "hgx-a100-8", 126, 1000, 13000, "NVIDIA-A100-SXM4-80GB", "ampere", 81920,
    from_pairs(8, {}, "NV12", sockets=("0-31,64-95", "32-63,96-127")),
)  # fmt: skip
V100 = Machine(
    "dgx-1-v100-8", 78, 488, 6500, "Tesla-V100-SXM2-32GB", "volta", 32768,
    from_pairs(8, _CUBE_MESH, "SYS", sockets=("0-19,40-59", "20-39,60-79")),
)  # fmt: skip
L40S = Machine(
    "pcie-l40s-4", 62, 488, 3500, "NVIDIA-L40S", "ada-lovelace", 46068,
    from_pairs(4, _SWITCHED_PAIRS, "SYS", sockets=("0-15,32-47", "16-31,48-63")),
)  # fmt: skip
CPU_ONLY = Machine("cpu-128", 126, 488, 1700)
