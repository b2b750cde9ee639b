"""Choosing GPUs by their links."""

from __future__ import annotations

from itertools import combinations
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.topology import parse_topology
from scheduler.topology.gpu import LinkMatrix, best_set, indices, link_rank, link_strength, mask

PIX_PXB = [["X" if i == j else "PIX" if i // 4 == j // 4 else "PXB" for j in range(8)] for i in range(8)]
# Real DGX-1: each GPU has NV2 to two others, NV1 to two, and reaches the rest over the host.
CUBE_MESH = [
    "X NV1 NV1 NV2 NV2 SYS SYS SYS",
    "NV1 X NV2 NV1 SYS NV2 SYS SYS",
    "NV1 NV2 X NV2 SYS SYS NV1 SYS",
    "NV2 NV1 NV2 X SYS SYS SYS NV1",
    "NV2 SYS SYS SYS X NV1 NV1 NV2",
    "SYS NV2 SYS SYS NV1 X NV2 NV1",
    "SYS SYS NV1 SYS NV1 NV2 X NV2",
    "SYS SYS SYS NV1 NV2 NV1 NV2 X",
]


def matrix(rows: list[str] | list[list[str]]) -> LinkMatrix:
    return LinkMatrix.of([row.split() if isinstance(row, str) else row for row in rows])


Worth = tuple[float, int]


def worth(links: LinkMatrix, chosen: tuple[int, ...]) -> Worth:
    pairs = list(combinations(chosen, 2))
    slowest = min((int(links.rank[a, b]) for a, b in pairs), default=inf)
    return slowest, sum(int(links.strength[a, b]) for a, b in pairs)


def brute(links: LinkMatrix, free: int, k: int, allowed: int) -> tuple[int, ...]:
    """The rule, written out one set at a time."""
    known: dict[tuple[int, ...], Worth] = {}

    def of(chosen: tuple[int, ...]) -> Worth:
        if chosen not in known:
            known[chosen] = worth(links, chosen)
        return known[chosen]

    def judged(chosen: tuple[int, ...]) -> tuple[Worth, list[Worth], tuple[int, ...]]:
        stay = [gpu for gpu in indices(free) if gpu not in chosen]
        left = [max(map(of, combinations(stay, size))) for size in range(len(stay), 0, -1)]
        return of(chosen), left, tuple(-gpu for gpu in chosen)

    return max(combinations(indices(free & allowed), k), key=judged)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[LinkMatrix, int, int, int]:
    size = draw(st.integers(1, 8))
    names = [["X"] * size for _ in range(size)]
    for i, j in combinations(range(size), 2):
        names[i][j] = names[j][i] = draw(st.sampled_from(["NV1", "NV2", "NV12", "PIX", "PXB", "PHB", "NODE", "SYS", "XGMI"]))
    free, allowed = draw(st.integers(0, 2**size - 1)), draw(st.integers(0, 2**size - 1))
    return LinkMatrix.of(names), free, allowed, draw(st.integers(0, (free & allowed).bit_count()))


@given(shapes())
def test_the_best_set_is_what_trying_every_set_finds(shape: tuple[LinkMatrix, int, int, int]) -> None:
    links, free, allowed, k = shape
    assert best_set(links, free, k, allowed) == brute(links, free, k, allowed)
    k = min(k, free.bit_count())
    assert best_set(links, free, k) == brute(links, free, k, free)
    assert best_set(links, free, k) == brute(links, free, k, free), "what is remembered is what was found"


def topologies(folder: Path) -> list[tuple[str, LinkMatrix]]:
    files = sorted(path for path in (folder / "data" / "topologies").rglob("*") if path.suffix in (".txt", ".log", ""))
    return [(path.name, LinkMatrix.of(parse_topology(path.read_text("utf-8")).links)) for path in files if path.is_file()]


def test_every_machine_on_record_gives_the_best_set_for_every_free_mask(shared_dir: Path) -> None:
    found = {links: name for name, links in topologies(shared_dir)}
    assert found
    for links, name in found.items():
        if links.size > 8:
            continue
        for free in range(1 << links.size):
            for k in range(free.bit_count() + 1):
                assert best_set(links, free, k) == brute(links, free, k, free), (name, free, k)


def test_a_single_gpu_comes_from_where_an_island_is_broken_already() -> None:
    islands = [["X" if i == j else "NV4" if i // 4 == j // 4 else "SYS" for j in range(8)] for i in range(8)]
    links = LinkMatrix.of(islands)
    assert best_set(links, mask([0, 1, 2, 3, 4, 5]), 1) == (4,)
    assert best_set(links, mask([0, 1, 2, 4, 5, 6, 7]), 2) == (0, 1)
    assert best_set(links, mask([0, 1, 2, 3, 5]), 1) == (5,)


def test_link_names_are_ordered_from_near_to_far() -> None:
    order = ["NV18", "NV12", "NV4", "NV2", "NV1", "PIX", "PXB", "PHB", "NODE", "SYS"]
    strengths = [link_strength(name) for name in order]
    ranks = [link_rank(name) for name in [*order[:5], "XGMI", *order[5:]]]
    assert strengths == sorted(strengths, reverse=True)
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == len(ranks)
    assert len(set(strengths)) == len(order)
    assert link_strength("SOC") == link_strength("SYS")


@pytest.mark.parametrize("name", ["NV0", "NV", "NVX", "", "12", "NV１"])
def test_an_unknown_link_is_refused_with_what_would_be_right(name: str) -> None:
    with pytest.raises(ValueError, match="expected one of NV1 to NV999"):
        link_strength(name)


def test_two_gpus_come_from_one_switch_and_leave_a_whole_one() -> None:
    links = matrix(PIX_PXB)
    assert best_set(links, mask([0, 1, 2, 4, 5, 6, 7]), 2) == (0, 1)
    assert best_set(links, mask([0, 4, 5, 6, 7]), 1) == (0,)
    assert best_set(links, mask([0, 1, 3, 4, 5, 6, 7]), 4) == (4, 5, 6, 7)


def test_a_pair_of_the_cube_mesh_has_two_links_and_four_form_a_clique() -> None:
    links = matrix(CUBE_MESH)
    assert best_set(links, 0xFF, 2) == (0, 3)
    assert best_set(links, mask([0, 1, 5, 6]), 2) == (5, 6), "1-5 is as strong and would tear 0-1 apart"
    assert best_set(links, 0xFF, 4) == (0, 1, 2, 3)
    assert best_set(links, mask([1, 4, 5, 6, 7]), 4) == (4, 5, 6, 7)


def test_gpus_that_are_not_allowed_are_not_given() -> None:
    assert best_set(LinkMatrix.unknown(4), 0b1111, 2, allowed=0b1010) == (1, 3)


def test_asking_for_more_than_is_free_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 GPUs asked, and 2 to choose from"):
        best_set(LinkMatrix.unknown(4), 0b0011, 3)
    with pytest.raises(ValueError, match="beyond the node's 4"):
        best_set(LinkMatrix.unknown(4), 0b10000, 1)


def test_a_table_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="the link from GPU 0 to GPU 1 is NV1, and back it is NV2"):
        LinkMatrix.of([["X", "NV1"], ["NV2", "X"]])
    with pytest.raises(ValueError, match="row 1 of the link matrix has 1 entries, not 2"):
        LinkMatrix.of([["X", "NV1"], ["NV1"]])


def test_nodes_of_one_shape_share_one_matrix() -> None:
    assert matrix(PIX_PXB) is matrix(PIX_PXB)


def test_sixteen_gpus_of_two_boards_fill_one_board() -> None:
    links = LinkMatrix.of([["NV6" if i // 8 == j // 8 else "NV3" for j in range(16)] for i in range(16)])
    assert best_set(links, 0xFFFF, 8) == tuple(range(8))
    assert best_set(links, 0xFFFF & ~0b11, 6) == tuple(range(2, 8))


def test_more_gpus_than_can_be_tried_still_come_from_one_island() -> None:
    links = LinkMatrix.of([["NV4" if i // 8 == j // 8 else "SYS" for j in range(32)] for i in range(32)])
    assert best_set(links, 2**32 - 1, 8) == tuple(range(8))
