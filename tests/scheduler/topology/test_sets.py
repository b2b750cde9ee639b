"""Sets of a node's GPUs for people: on real tables, as the scheduler itself would choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.topology import parse_topology
from scheduler.topology.gpu import LinkMatrix, best_set, mask
from scheduler.topology.sets import islands, of_node
from scheduler.topology.worth import judge


def table(shared_dir: Path, name: str) -> tuple[tuple[str, ...], ...]:
    return parse_topology((shared_dir / "data" / "topologies" / f"{name}.txt").read_text("utf-8")).links


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a100-8x-nvswitch", [(0, 1, 2, 3, 4, 5, 6, 7)]),
        ("v100-8x-hybrid-cube-mesh-mlx1", [(0, 1, 2, 3, 4, 5, 6, 7)]),
        ("rtx3090-4x-bridged-pairs", [(0, 2), (1, 3)]),
        ("nv3-pairs-4x-mlx4", [(0, 1), (2, 3)]),
        ("amd-8x-two-xgmi-hives", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ("rtx-2x-phb", [(0,), (1,)]),
        ("rtx4090-8x-all-sys", [(gpu,) for gpu in range(8)]),
    ],
)
def test_islands_are_what_nvlink_or_xgmi_joins(shared_dir: Path, name: str, expected):
    links = table(shared_dir, name)
    assert list(islands(links, len(links))) == expected


def test_free_sets_are_the_schedulers_choice_with_link_and_bandwidth(shared_dir: Path):
    links = table(shared_dir, "rtx3090-4x-bridged-pairs")
    found = of_node(links, 4, {0, 1, 2}, {0, 1, 2, 3}, [])
    assert found.known
    by_size = dict(found.free)
    assert by_size[1].gpus == (1,)  # from where the bridge's other end is taken
    assert (by_size[1].slowest, by_size[1].bandwidth, by_size[1].score) == ("", 0, 100.0)
    assert (by_size[2].gpus, by_size[2].slowest, by_size[2].bandwidth) == ((0, 2), "NV4", 100)
    assert by_size[4] is None
    assert 8 not in by_size


def test_every_real_table_gives_what_best_set_gives_and_the_plugins_own_judgement(shared_dir: Path):
    for file in sorted((shared_dir / "data" / "topologies").glob("*.txt")):
        links = parse_topology(file.read_text("utf-8")).links
        gpus, matrix = len(links), LinkMatrix.of(links)
        for free in (range(gpus), range(1, gpus), range(0, gpus, 2)):
            for size, given in of_node(links, gpus, set(free), set(range(gpus)), []).free:
                if given is None:
                    assert len(free) < size
                    continue
                assert given.gpus == best_set(matrix, mask(list(free)), size)
                link, bandwidth, _ = judge(matrix, mask(list(free)), mask(given.gpus))
                assert given.score == pytest.approx(100 * (4 * link + 2 * bandwidth) / 6, abs=0.05)
                assert (given.slowest == "") == (size == 1)


def test_a_held_set_is_compared_with_the_best_of_its_size(shared_dir: Path):
    links = table(shared_dir, "rtx3090-4x-bridged-pairs")
    apart, bridged = of_node(links, 4, (), {0, 1, 2, 3}, [[0, 1], [2, 0]]).held
    assert (apart.had.gpus, apart.best.gpus, apart.is_best) == ((0, 1), (0, 2), False)
    assert apart.had.slowest in ("NODE", "PHB")
    assert apart.had.score < apart.best.score
    assert (bridged.had.gpus, bridged.is_best) == ((0, 2), True)


def test_an_ill_gpu_is_no_part_of_the_best_that_could_have_been(shared_dir: Path):
    links = table(shared_dir, "rtx3090-4x-bridged-pairs")
    (held,) = of_node(links, 4, (), {1, 2, 3}, [[1, 2]]).held
    assert held.best.gpus == (1, 3)


def test_without_a_table_sets_are_by_index_and_nothing_is_said_of_links():
    found = of_node([], 4, {1, 2, 3}, {0, 1, 2, 3}, [[0]])
    assert (found.known, found.islands) == (False, ())
    assert [(size, given.gpus if given else None) for size, given in found.free] == [(1, (1,)), (2, (1, 2)), (4, None)]
    assert found.held[0].had.score is None


def test_a_table_of_fewer_gpus_than_the_node_has_counts_as_none():
    assert of_node([["X", "NV4"], ["NV4", "X"]], 4, {0}, {0}, []).known is False


def test_indices_that_make_no_sense_and_machines_without_end_break_nothing():
    found = of_node([], 2, {-1, 0, 9}, {0, 1, 70}, [[-3, 1, 500], [7]])
    assert found.free[0][1].gpus == (0,)
    assert [held.had.gpus for held in found.held] == [(1,), ()]
    assert of_node([], 100_000, {0}, {0}, [[1]]).held == ()
