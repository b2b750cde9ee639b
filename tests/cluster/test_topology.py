"""GPU topologies: every real table at hand is read, and wrong ones are refused by line."""

from __future__ import annotations

import contextlib
import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.embedded.machines import V100
from cluster.topology import GpuTopology, TopologyError, format_topology, parse_topology

TABLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "topologies"
INDEX = list(csv.DictReader((TABLES / "index.csv").open())) if TABLES.is_dir() else []


@pytest.mark.parametrize("row", INDEX, ids=[row["file"] for row in INDEX])
def test_a_real_table_is_read(row: dict[str, str]) -> None:
    topology = parse_topology((TABLES / row["file"]).read_text())
    assert topology.gpus == int(row["gpus"])
    assert len(topology.nics) == int(row["nics"])
    assert " ".join(sorted(topology.kinds)) == row["gpu_link_kinds"]
    assert all(topology.links[i][i] == "X" for i in range(topology.gpus))


def test_all_real_tables_were_there(shared_dir: Path) -> None:
    assert len(INDEX) == 24


def test_affinity_tells_sockets_apart_where_paths_do_not(shared_dir: Path) -> None:
    topology = parse_topology((shared_dir / "data/topologies/rtx4090-8x-all-sys.txt").read_text())
    assert topology.cpus == ("0-55,112-167",) * 4 + ("56-111,168-223",) * 4
    assert topology.numa == ("0",) * 4 + ("1",) * 4


def test_the_demo_cube_mesh_is_the_real_one(shared_dir: Path) -> None:
    real = parse_topology((shared_dir / "data/topologies/v100-8x-hybrid-cube-mesh-mlx1.txt").read_text())
    assert V100.topology is not None
    assert V100.topology.links == real.links


@st.composite
def topologies(draw: st.DrawFn) -> GpuTopology:
    gpus = draw(st.integers(1, 8))
    paths = st.sampled_from(["NV1", "NV12", "PIX", "PXB", "PHB", "NODE", "SYS"])
    pairs = {(a, b): draw(paths) for a in range(gpus) for b in range(a + 1, gpus)}
    links = tuple(tuple("X" if a == b else pairs[min(a, b), max(a, b)] for b in range(gpus)) for a in range(gpus))
    sockets = draw(st.booleans())
    return GpuTopology(links, cpus=("0-7,16-23",) * gpus if sockets else (), numa=("0",) * gpus if sockets else ())


@given(topologies())
def test_what_is_written_is_read_back(topology: GpuTopology) -> None:
    assert parse_topology(format_topology(topology)) == topology


@given(topologies())
def test_columns_count_and_not_widths(topology: GpuTopology) -> None:
    text = format_topology(topology).replace("\t", "    ")
    assert parse_topology("\x1b[4m" + text).links == topology.links


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no table"),
        ("hello\n", "there is no table"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\n", "without a row for GPU1"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\n", "line 3: GPU1 has 1 columns, and the table has 2 devices"),
        ("\tGPU0\tGPU1\nGPU0\tX\tFOO\nGPU1\tNV4\tX\n", "line 2: 'FOO' between GPU0 and GPU1 is no path"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tSYS\tX\n", "GPU1 to GPU0 is SYS, and the way back is NV4"),
        ("\tGPU0\tGPU2\nGPU0\tX\tNV4\nGPU2\tNV4\tX\n", "line 1: the header names GPU0 GPU2"),
        ("\tGPU0\nGPU0\tSYS\n", "line 2: GPU0 to itself is X, not 'SYS'"),
        ("=== Hops between two GPUs ===\n GPU0\nGPU0 0\n", "no block 'Link Type"),
        ("=== Link Type between two GPUs ===\n GPU0 GPU1\nGPU0 0 XGMI\n", "expected a row for GPU1"),
        ("=== Link Type between two GPUs ===\n GPU0 GPU1\nGPU0 0 WIFI\nGPU1 WIFI 0\n", "'WIFI' between GPU0 and GPU1"),
        ("x" * 300_000, "at most 262144 characters"),
    ],
)
def test_a_wrong_table_is_refused(text: str, says: str) -> None:
    with pytest.raises(TopologyError) as caught:
        parse_topology(text)
    assert says in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, "\tGPU0\tGPU1\n" + text, "== Link Type between two GPUs ==\n" + text):
        with contextlib.suppress(TopologyError):
            links = parse_topology(candidate).links
            assert all(len(row) == len(links) for row in links), "a table is square"
