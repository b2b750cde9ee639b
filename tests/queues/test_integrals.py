"""Sums over steps are exact, whatever the steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.integrals import PARTS, Integrals, Standing, Step, jain
from tests.queues.steps import NAMES, brute, run, steps, worlds


@given(steps)
def test_every_part_is_the_area_under_its_steps(moves):
    found = run(moves)
    sums = Integrals(found[0])
    for step in found[1:]:
        sums.advance(step)
    for name in NAMES:
        told = dict(zip(PARTS, sums.total(name).get("gpu", [0] * len(PARTS)), strict=True))
        for part in PARTS[:-1]:
            assert told[part] == brute(found, name, part), (name, part)
    assert sums.capacity["gpu"] == 200_000 * (found[-1].at - found[0].at)


@given(worlds, st.integers(1, 40_000))
def test_what_is_lent_is_what_is_borrowed_as_far_as_it_was_somebodys(world, passed):
    sums = Integrals(Step(0, world))
    sums.advance(Step(passed, world))
    total = {name: dict(zip(PARTS, sums.total(name).get("gpu", [0] * len(PARTS)), strict=True)) for name in world}
    unused = {name: max(0, each.deserved["gpu"] - each.allocated["gpu"]) * passed for name, each in world.items()}
    borrowed = sum(each["borrowed"] for each in total.values())
    assert sum(each["lent"] for each in total.values()) == min(borrowed, sum(unused.values()))
    assert all(0 <= total[name]["lent"] <= unused[name] for name in world)


def test_a_queue_that_holds_queues_is_not_counted_beside_them():
    both = {"above": Standing({"gpu": 8}, {"gpu": 4}, {"gpu": 8}), "below": Standing({"gpu": 8}, {"gpu": 4}, {"gpu": 8})}
    sums = Integrals(Step(0, both, inner=frozenset({"above"})))
    sums.advance(Step(10, both, inner=frozenset({"above"})))
    assert sums.total("above") == {}
    assert sums.total("below")["gpu"][PARTS.index("received")] == 80


def test_jains_index():
    assert jain([0.5, 0.5, 0.5]) == pytest.approx(1.0)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([]) is None
    assert jain([0.0]) is None
