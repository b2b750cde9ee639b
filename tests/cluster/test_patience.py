"""Pauses between tries."""

from __future__ import annotations

from cluster.patience import Patience


def test_pauses_double_up_to_the_longest_and_begin_again_after_a_success():
    patience = Patience(first=0.5, longest=3.0)
    assert [patience.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    patience.reset()
    assert patience.next() == 0.5
