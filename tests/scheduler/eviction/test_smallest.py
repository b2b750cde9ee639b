"""The smallest set of victims, against trying every set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.eviction.smallest import EXACT, smallest


def naive(levels, frees, need, holds):
    """The first sufficient set by highest level, size and order."""
    places = range(len(levels))
    sets = [each for size in range(len(levels) + 1) for each in combinations(places, size)]
    enough = [s for s in sets if all(sum(frees[p][d] for p in s) >= need[d] for d in range(len(need))) and holds(s)]
    return min(enough, key=lambda s: (max((levels[p] for p in s), default=-99), len(s), s), default=None)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_up_to_twelve_candidates_it_is_the_cheapest_of_all_sets(data):
    count = data.draw(st.integers(0, 7))
    frees = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=count, max_size=count))).reshape(count, 2)
    levels = data.draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    need = np.array(data.draw(st.tuples(*[st.integers(0, 5)] * 2)))
    wanted = data.draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=2))

    def holds(places):
        return wanted <= set(places)  # as if only these held a port

    assert smallest(levels, frees, need, holds) == naive(levels, frees.tolist(), need.tolist(), holds)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_beyond_twelve_no_victim_can_be_spared_and_the_highest_level_is_the_lowest_possible(data):
    count = data.draw(st.integers(EXACT + 1, 30))
    frees = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=count, max_size=count)))
    levels = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    need = np.array(data.draw(st.tuples(*[st.integers(0, 40)] * 2)))
    found = smallest(levels, frees, need)
    if found is None:
        assert (frees.sum(axis=0) < need).any()
        return
    assert (frees[list(found)].sum(axis=0) >= need).all()
    for place in found:
        rest = [each for each in found if each != place]
        assert (frees[rest].sum(axis=0) < need).any()
    if found:
        lower = [place for place in range(count) if levels[place] < max(levels[place] for place in found)]
        assert (frees[lower].sum(axis=0) < need).any()
