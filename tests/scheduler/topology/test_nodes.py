"""Link matrices of real machines, and the GPUs that are chosen on them."""

from __future__ import annotations

import csv
import logging
from itertools import combinations
from pathlib import Path

import pytest

from cluster.objects import GPU_TOPOLOGY
from scheduler.topology.gpu import LinkMatrix, best_set, indices
from scheduler.topology.nodes import of_node


def node(text: str) -> dict[str, object]:
    return {"metadata": {"name": "n", "annotations": {GPU_TOPOLOGY: text}}}


def worst(matrix: LinkMatrix, gpus: tuple[int, ...]) -> int:
    return min((int(matrix.strength[a, b]) for a, b in combinations(gpus, 2)), default=0)


def test_every_real_table_gives_sets_that_no_other_beats(shared_dir: Path) -> None:
    folder = shared_dir / "data" / "topologies"
    with (folder / "index.csv").open(newline="") as file:
        tables = list(csv.DictReader(file))
    for table in tables:
        matrix = of_node(node((folder / table["file"]).read_text()), int(table["gpus"]))
        assert matrix.size == int(table["gpus"]), table["file"]
        assert matrix is not LinkMatrix.unknown(matrix.size) or table["gpu_link_kinds"] == "SYS", table["file"]
        everything = (1 << matrix.size) - 1
        for k in range(1, min(matrix.size, 8) + 1):
            best = best_set(matrix, everything, k)
            assert len(set(best)) == k
            if matrix.size <= 8:
                assert worst(matrix, best) == max(worst(matrix, other) for other in combinations(range(matrix.size), k))


def test_pairs_come_from_one_bridge_and_quads_from_one_board(shared_dir: Path) -> None:
    folder = shared_dir / "data" / "topologies"
    bridged = of_node(node((folder / "rtx3090-4x-bridged-pairs.txt").read_text()), 4)
    assert best_set(bridged, 0b1111, 2) == (0, 2)
    assert best_set(bridged, 0b1110, 2) == (1, 3)
    cube = of_node(node((folder / "v100-8x-hybrid-cube-mesh-mlx1.txt").read_text()), 8)
    quad = best_set(cube, 0xFF, 4)
    assert worst(cube, quad) >= 25, "four that are all joined by NVLink"
    assert worst(cube, best_set(cube, 0xFF & ~sum(1 << gpu for gpu in quad), 4)) >= 25, "and so are the four that stay"


def test_a_node_that_says_nothing_or_too_little_has_links_alike() -> None:
    assert of_node({"metadata": {"name": "n"}}, 4) is LinkMatrix.unknown(4)
    two = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
    assert of_node(node(two), 2).size == 2
    assert of_node(node(two), 4) is LinkMatrix.unknown(4)
    assert indices(0b101) == (0, 2)


def test_a_table_that_cannot_be_read_is_told_once_and_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert of_node(node("no table at all, by any means"), 2) is LinkMatrix.unknown(2)
    assert len(caplog.records) == 1
    assert "nvidia-smi topo -m" in caplog.text
