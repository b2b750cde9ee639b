"""Kubernetes's resource scores, in exact numbers worked out by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.plugins.kube import few, scores

GI = 1 << 30


def amounts(*values: tuple[int, ...]) -> np.ndarray:
    """`[nodes, resources]`, from one tuple a node."""
    return np.array(values, dtype=np.int64)


def test_least_requested_is_the_mean_share_left_cut_at_each_step() -> None:
    # (4000−1500)·100/4000 = 62, (10−3)·100/10 = 70 → 66; an overfull resource counts 0: (0 + 50)/2 = 25.
    requested = amounts((1500, 3 * GI), (5000, 5 * GI))
    allocatable = amounts((4000, 10 * GI), (4000, 10 * GI))
    assert scores.least_requested(requested, allocatable).tolist() == [66, 25]


def test_most_requested_is_the_mean_share_taken_and_never_above_all() -> None:
    # 1500·100/4000 = 37, 30 → 33; 5000 of 4000 counts as all of it: (100 + 50)/2 = 75.
    requested = amounts((1500, 3 * GI), (5000, 5 * GI))
    allocatable = amounts((4000, 10 * GI), (4000, 10 * GI))
    assert scores.most_requested(requested, allocatable).tolist() == [33, 75]


def test_a_resource_that_the_node_lacks_is_left_out_of_the_mean() -> None:
    requested, allocatable = amounts((1000, GI), (1000, GI)), amounts((4000, 0), (0, 0))
    assert scores.least_requested(requested, allocatable).tolist() == [75, 0]
    assert scores.most_requested(requested, allocatable).tolist() == [25, 0]


def test_balance_of_two_resources_is_half_their_distance() -> None:
    # shares 1/2 and 1/2 → 100; 1/4 and 1/2 → 1 − 1/8 = 87; 2/1 capped at 1 and 0 → 1 − 1/2 = 50.
    requested, allocatable = amounts((1, 1), (1, 1), (2, 0)), amounts((2, 2), (4, 2), (1, 2))
    assert scores.balance(requested, allocatable).tolist() == [100, 87, 50]


def test_balance_of_three_resources_is_their_standard_deviation() -> None:
    # shares 1/2, 1/4, 1: mean 7/12, variance ((−1/12)² + (−1/3)² + (5/12)²)/3 = (1 + 16 + 25)/432 = 7/72.
    requested, allocatable = amounts((2, 1, 8)), amounts((4, 4, 8))
    assert scores.balance(requested, allocatable).tolist() == [int((1 - sqrt(7 / 72)) * 100)] == [68]


@pytest.mark.parametrize(
    ("after", "before", "score"),
    [
        ((1, 1), (0, 0), 75),  # even before and after
        ((4, 0), (0, 0), 50),  # from even to as uneven as can be
        ((4, 4), (4, 0), 100),  # the other way round
        ((2, 1), (1, 1), 68),  # 87 from 100: 50 + 37 // 2
        ((2, 2), (2, 1), 81),  # 100 from 87: 50 + 63 // 2
    ],
)
def test_a_pod_is_judged_by_what_it_changes(after: tuple[int, int], before: tuple[int, int], score: int) -> None:
    assert scores.balanced(amounts(after), amounts(before), amounts((4, 4))).tolist() == [score]


def test_balance_leaves_out_the_gpu_of_a_node_without_gpus() -> None:
    requested, allocatable = amounts((1, 1, 1), (1, 1, 0)), amounts((4, 2, 0), (4, 0, 0))
    assert scores.balance(requested, allocatable).tolist() == [87, 100]


def test_normalising_measures_by_the_highest_candidate_and_rounds_down() -> None:
    raw = np.array([3, 7, 0])
    assert scores.normalise(raw, 7).tolist() == [42, 100, 0]
    assert scores.normalise(raw, 7, reverse=True).tolist() == [58, 0, 100]
    nothing = np.zeros(3, dtype=np.int64)
    assert scores.normalise(nothing, 0).tolist() == [0, 0, 0]
    assert scores.normalise(nothing, 0, reverse=True).tolist() == [100, 100, 100]


def test_stretching_takes_scores_below_zero() -> None:
    raw, candidates = np.array([-5, 0, 10, 99]), np.array([True, True, True, False])
    assert scores.stretch(raw, candidates)[candidates].tolist() == [0, 33, 100]
    assert scores.stretch(np.array([4, 4]), np.array([True, True])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("image", "name"),
    [("nginx", "nginx:latest"), ("a/b:1", "a/b:1"), ("host:5000/a", "host:5000/a:latest"), ("host:5000/a:2", "host:5000/a:2")],
)
def test_an_image_without_a_tag_is_the_latest(image: str, name: str) -> None:
    assert scores.image_name(image) == name


def test_image_locality_counts_size_by_how_many_nodes_have_it() -> None:
    mib = 1 << 20
    nodes = [{"a:latest": 500 * mib, "b:1": 300 * mib}, {"a:latest": 500 * mib}, {}, {"c:1": 4000 * mib}]
    # a is on 2 of 4 nodes: 250 MiB; b on 1 of 4: 75 MiB. Two containers, so 100·(325−23)/1977 = 15, 100·(250−23)/1977 = 11.
    assert scores.image_locality(["a", "b:1"], nodes).tolist() == [15, 11, 0, 0]
    assert scores.image_locality(["a"], nodes).tolist() == [23, 23, 0, 0], "100·(250−23)/977"
    assert scores.image_locality(["c:1"], nodes).tolist() == [0, 0, 0, 100], "1000 MiB a container is where it ends"


@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 6), min_size=1, max_size=6))
def test_scores_of_many_nodes_are_those_of_each_node_alone(rows: list[tuple[int, ...]]) -> None:
    requested, allocatable = amounts(*[row[:3] for row in rows]), amounts(*[row[3:] for row in rows])
    for score in (scores.least_requested, scores.most_requested, scores.balance):
        together = score(requested, allocatable)
        for i, value in enumerate(together):
            assert score(requested[i : i + 1], allocatable[i : i + 1])[0] == value
            assert 0 <= value <= 100


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.tuples(*[st.lists(st.integers(0, 1 << 40), min_size=width, max_size=width) for _ in range(3)]),
            min_size=1,
            max_size=8,
        )
    )
)
def test_nodes_one_by_one_score_as_they_do_together(rows):
    have, need, before = (np.array(column) // (1 << np.arange(0, 40, 5)[np.arange(len(rows)) % 8, None]) for column in zip(*rows))
    have[:, 0] = np.where(have[:, 0] % 5 == 0, 0, have[:, 0])
    for together, alone in ((scores.least_requested, few.least_requested), (scores.most_requested, few.most_requested)):
        assert together(need, have).tolist() == [alone(*row) for row in zip(need.tolist(), have.tolist())]
    assert scores.balance(need, have).tolist() == [few.balance(*row) for row in zip(need.tolist(), have.tolist())]
    each = zip(need.tolist(), before.tolist(), have.tolist())
    assert scores.balanced(need, before, have).tolist() == [few.balanced(*row) for row in each]
