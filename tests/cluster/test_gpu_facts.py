"""What pages know of a node's GPUs, from device plugins, labels and annotations as clusters have them."""

from __future__ import annotations

from typing import Any

import pytest

from cluster import objects
from cluster.gpu_facts import GpuFacts, gpu_facts
from cluster.projection import node as project

REGISTER = "volcano.sh/node-vgpu-register"
NVIDIA = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.count": "8"}
CARDS = "GPU-a,10,24576,NVIDIA-RTX 4090,true,hami-core:GPU-b,10,24576,NVIDIA-RTX 4090,false,hami-core:"


def node(resources: dict[str, str], labels: dict[str, str] | None = None, **notes: str) -> dict[str, Any]:
    meta = {"name": "n", "uid": "n", "resourceVersion": "1", "labels": labels or {}, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": resources}}


def facts(made: dict[str, Any]) -> GpuFacts:
    return gpu_facts(made, objects.resource_units(made["status"]["allocatable"]))


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (node({"cpu": "8"}, NVIDIA), GpuFacts()),
        (node({"nvidia.com/gpu": "8"}, NVIDIA), GpuFacts(8, "NVIDIA-A100-SXM4-80GB", 81920)),
        (node({"nvidia.com/gpu": "8"}), GpuFacts(8)),
        (
            node({"amd.com/gpu": "8"}, {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}),
            GpuFacts(8, "AMD_Instinct_MI300X_OAM", 196608),
        ),
        (
            node({"amd.com/gpu": "1"}, {"beta.amd.com/gpu.product-name": "MI100", "beta.amd.com/gpu.vram": "32G"}),
            GpuFacts(1, "MI100", 32768),
        ),
        (node({"volcano.sh/gpu-number": "2", "volcano.sh/gpu-memory": "32000"}), GpuFacts(2, "", 16000)),
        (
            node({"volcano.sh/vgpu-number": "20"}, **{REGISTER: CARDS}),
            GpuFacts(2, "NVIDIA-RTX 4090", 24576, (1,), (("GPU-a", 24576), ("GPU-b", 24576))),
        ),
        (node({"nvidia.com/gpu": "4"}, **{"volcano.sh/gpu-unhealthy-ids": "3, 1"}), GpuFacts(4, "", 0, (1, 3))),
    ],
    ids=["none", "nvidia", "unlabelled", "amd", "amd-beta", "gpushare", "vgpu", "ill"],
)
def test_gpus_are_found_by_every_kind_of_plugin(made: dict[str, Any], found: GpuFacts) -> None:
    assert facts(made) == found


def test_labels_name_a_vgpu_nodes_model_where_there_are_some() -> None:
    made = node({"volcano.sh/vgpu-number": "20"}, NVIDIA, **{REGISTER: CARDS})
    assert (facts(made).model, facts(made).memory) == ("NVIDIA-A100-SXM4-80GB", 81920)


@pytest.mark.parametrize(
    "made",
    [
        node({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu.memory": "much"}),
        node({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu.memory": "٨٠"}),
        node({"amd.com/gpu": "2"}, {"amd.com/gpu.vram": "?G"}),
        node({"nvidia.com/gpu": "2"}, **{"volcano.sh/gpu-unhealthy-ids": "a,-1,,9,GPU-1"}),
        node({"nvidia.com/gpu": "2"}, **{REGISTER: "what,is:this"}),
    ],
)
def test_what_cannot_be_read_is_left_out_and_the_node_is_shown(made: dict[str, Any]) -> None:
    assert facts(made) == GpuFacts(2)
    assert (project(made).gpu_count, project(made).gpu_unhealthy) == (2, [])


def test_a_row_has_the_facts() -> None:
    row = project(node({"volcano.sh/vgpu-number": "20"}, **{REGISTER: CARDS}))
    assert (row.gpu_count, row.gpu_model, row.gpu_memory_mib, row.gpu_unhealthy) == (2, "NVIDIA-RTX 4090", 24576, [1])
