"""The largest gang that fits now, and how far a placed one is spread."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.topology import largest
from scheduler.topology.fragments import Shape
from scheduler.topology.hypernodes import TOP, HyperNodes
from scheduler.topology.largest import ANY
from scheduler.topology.nearest import nearest
from scheduler.topology.spread import spread
from tests.scheduler.topology.fleets import Rows, left, stock, tree

NET = tree({"r0": ["a", "b"], "r1": ["c", "d"], "r2": ["e"]}, {"s0": ["r0", "r1"], "s1": ["r2"]})


def test_each_domain_counts_its_gpus_pods_by_size_and_whole_nodes():
    fleet = stock(left("a", 8), left("b", 5), left("c", 3, model="A100"), left("d", 8, cordoned=True), left("e", 8))
    rooms = largest.domains(fleet, NET)
    of = {domain.name: rooms[domain.number] for domain in NET.domains}
    assert (of["r0"][ANY].pods, of["r0"][ANY].whole, of["r0"][ANY].free) == ((13, 6, 3, 1), 1, 13)
    assert (of["r1"][ANY].pods, of["r1"][ANY].whole, of["r1"][ANY].gpus) == ((3, 1, 0, 0), 0, 16)
    assert (of["s0"][ANY].pods, of[TOP][ANY].pods, of[TOP][ANY].whole) == ((16, 7, 3, 1), (24, 11, 5, 2), 2)
    assert of["r1"]["A100"].nodes == 1
    assert "A100" not in of["r0"]
    best = largest.per_tier(NET, rooms)
    assert [(each.tier, each.gpus, each.domain.name, each.whole) for each in best] == [
        (1, 13, "r0", 1), (2, 16, "s0", 1), (3, 24, TOP, 2),
    ]  # fmt: skip


def test_gpus_without_cpu_memory_or_a_place_for_a_pod_are_promised_to_nobody():
    fleet = stock(left("a", 8, cpu=3), left("b", 8, memory=2), left("c", 8, pods=1), left("d", 8), left("e", 0))
    rows = largest.nodes(fleet).tolist()
    assert rows[0] == [3, 1, 0, 0, 0]
    assert rows[1] == [2, 1, 0, 0, 0]
    assert rows[2] == [1, 1, 1, 1, 1]
    assert rows[3] == [8, 4, 2, 1, 1]
    assert rows[4] == [0, 0, 0, 0, 0]


def test_nothing_free_is_nowhere():
    best = largest.per_tier(NET, largest.domains(stock(*(left(name, 0) for name in "abcde")), NET))
    assert [(each.gpus, each.domain, each.whole_domain) for each in best] == [(0, None, None)] * 3


@pytest.mark.parametrize(
    ("pods", "score", "domain", "crossed"),
    [
        ({0: 8}, 1.0, "r0", {1: 1, 2: 1, 3: 1}),
        ({0: 1, 1: 1}, 1.0, "r0", {1: 1, 2: 1, 3: 1}),
        ({0: 1, 2: 1}, 0.5, "s0", {1: 2, 2: 1, 3: 1}),
        ({0: 1, 4: 1}, 0.0, TOP, {1: 2, 2: 2, 3: 1}),
        ({0: 2, 2: 2}, (1 + 1 + 4 * 0.5) / 6, "s0", {1: 2, 2: 1, 3: 1}),
        ({3: 1}, 1.0, "r1", {1: 1, 2: 1, 3: 1}),
    ],
)
def test_a_gang_is_as_near_as_its_pairs_of_pods_are(pods, score, domain, crossed):
    found = spread(NET, pods)
    assert found.score == pytest.approx(score)
    assert (found.domain.name, found.crossed, found.nodes) == (domain, crossed, len(pods))


def test_without_domains_nothing_is_near_or_far():
    assert spread(HyperNodes([], Rows(["a", "b"])), {0: 1, 1: 1}).score is None


def pairwise(net: HyperNodes, pods: dict[int, int]) -> float:
    """The definition, pair by pair."""
    low, high = net.tiers[0], net.tiers[-1]
    each = [row for row, count in pods.items() for _ in range(count)]
    near = [1.0 if a == b else (high - net.holding([a, b]).tier) / (high - low) for a, b in combinations(each, 2)]
    return float(np.mean(near)) if near else 1.0


@given(st.dictionaries(st.integers(0, 6), st.integers(1, 4), min_size=1))
def test_counting_by_domain_gives_what_looking_at_each_pair_gives(pods: dict[int, int]):
    # f is in no rack, g in nothing at all.
    names = [*"abcdefg"]
    net = tree({"r0": ["a", "b"], "r1": ["c", "d"], "r2": ["e"]}, {"s0": ["r0", "r1"], "s1": ["r2"]}, names)
    assert spread(net, pods).score == pytest.approx(pairwise(net, pods))


# -- the domain that comes nearest ---------------------------------------------------------------------------------------


def test_the_domain_that_comes_nearest_is_told_for_each_tier():
    fleet = stock(left("a", 8), left("b", 5), left("c", 8), left("d", 8, cordoned=True), left("e", 8))
    found = nearest(fleet, NET, [(Shape(8), 4)])
    assert [(near.domain.name, near.pods, near.gpus, near.short, near.fits) for near in found] == [
        ("r0", 1, 8, 24, False), ("s0", 2, 16, 16, False), (TOP, 3, 24, 8, False),
    ]  # fmt: skip


def test_other_resources_and_models_count_and_large_pods_go_first():
    fleet = stock(left("a", 8, cpu=10), left("b", 8), left("c", 2), left("d", 0), left("e", 8, model="A100"))
    pods = [(Shape(1, {"cpu": 1000}), 4), (Shape(8, {"cpu": 10_000}, "H100"), 2)]
    assert [(near.domain.name, near.pods, near.gpus) for near in nearest(fleet, NET, pods)] == [
        ("r0", 2, 16), ("s0", 4, 18), (TOP, 6, 20),
    ]  # fmt: skip
    assert nearest(fleet, NET, pods)[-1].fits


def test_a_gang_without_gpus_is_counted_in_pods():
    fleet = stock(left("a", 0, cpu=2), left("b", 0, cpu=1), left("c", 0, cpu=0), left("d", 0, cpu=0), left("e", 0, cpu=4))
    found = nearest(fleet, NET, [(Shape(0, {"cpu": 1000}), 8)])
    assert [(near.domain.name, near.pods, near.short) for near in found] == [("r2", 4, 4), ("s1", 4, 4), (TOP, 7, 1)]
    assert nearest(fleet, NET, []) == []
