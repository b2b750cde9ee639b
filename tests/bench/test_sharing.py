"""The packing bench: shares of cards are placed where they fit, and fragmentation counts what is of no use."""

from __future__ import annotations

import random

import pytest

from bench import sharing
from bench.sharing import Node, Pod


def pod(name: str, share: int, cards: int = 1, cpu: int = 1000) -> Pod:
    return Pod(name, cpu, 1, cards, share, 0.0)


def two_nodes() -> list[Node]:
    return [Node("a", 8000, 8, [1000, 1000]), Node("b", 8000, 8, [1000])]


PODS = [pod("p", 600), pod("q", 500), pod("r", 400), pod("s", 1000), pod("t", 0, cards=0)]


@pytest.mark.parametrize("choose", [sharing.best_fit, sharing.worst_fit, sharing.by_chance(random.Random(1))])
def test_no_policy_overcommits_a_card(choose):
    nodes = sharing.placed_by(choose, two_nodes(), PODS * 3)
    assert all(0 <= free <= 1000 for node in nodes for free in node.cards)
    assert all(node.cpu >= 0 and node.memory >= 0 for node in nodes)


def test_best_fit_fills_a_card_before_it_begins_another():
    nodes = sharing.placed_by(sharing.best_fit, two_nodes(), [pod("p", 600), pod("q", 400), pod("r", 1000)])
    assert [node.cards for node in nodes] == [[0, 1000], [0]]


def test_our_scheduler_shares_cards_as_its_bindings_say():
    nodes = sharing.placed_by_us(two_nodes(), PODS)
    assert sum(sum(node.cards) for node in nodes) == 3000 - 2500
    assert all(free >= 0 for node in nodes for free in node.cards)


def test_fragmentation_is_what_a_pod_of_the_trace_cannot_use():
    half, whole = pod("half", 500), pod("whole", 1000)
    nodes = [Node("a", 8000, 8, [600, 1000]), Node("b", 0, 8, [1000])]
    # A half pod can use all of a and nothing of b, a whole one only the second card of a.
    assert sharing.fragmentation(nodes, [half, whole]) == (1000 + 600 + 1000) / 2
    assert sharing.figures(nodes, [half, whole], 4000) == [35.0, 32.5]
