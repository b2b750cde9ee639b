"""Deserved amounts against the same rules written out another way: exact fractions, one resource, one queue at a time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.roster import Roster
from scheduler.plugins.capacity.standings import tree
from scheduler.plugins.holdings import OPEN_ENDED
from scheduler.plugins.proportion import water_fill
from tests.scheduler.plugins.world import World

EPSILON = Fraction(1, 10)
AMOUNT = st.integers(0, 10**6)
WEIGHT = st.one_of(st.integers(1, 9), st.sampled_from([100, 65_535]))


@st.composite
def queues(draw: Any, *, guarantees: bool, weight: Any = WEIGHT) -> Any:
    """(total, a list of (weight, real, request, guarantee)) over (cpu, memory, pods, gpu)."""
    total = [draw(AMOUNT) for _ in range(4)]
    found = []
    for _ in range(draw(st.integers(1, 6))):
        real, request = [draw(AMOUNT) for _ in total], [draw(AMOUNT) for _ in total]
        guarantee = [draw(st.sampled_from([0, 0, most, most // 3])) if guarantees else 0 for most in real]
        found.append((draw(weight), real, request, guarantee))
    return total, found


def filled(total: list[int], given_queues: Any) -> Any:
    weights, *rows = zip(*given_queues)
    return water_fill(np.array(total, np.float64), np.array(weights), *[np.array(row) for row in rows])


def poured(total: int, weights: list[int], most: list[int]) -> list[Fraction]:
    """Water-filling of one resource: the level at which weight × level, cut to what each can take, is all there is."""
    found = [Fraction(0)] * len(most)
    left, open_ = Fraction(total), [i for i in range(len(most)) if most[i]]
    while open_ and left > 0:
        level = left / sum(weights[i] for i in open_)
        full = [i for i in open_ if most[i] <= weights[i] * level]
        if not full:
            for i in open_:
                found[i] = weights[i] * level
            break
        for i in full:
            found[i] = Fraction(most[i])
            left -= most[i]
        open_ = [i for i in open_ if i not in full]
    return found


@settings(deadline=None)
@given(queues(guarantees=False))
def test_without_guarantees_deserved_is_weighted_water_filling(drawn: Any) -> None:
    total, given_queues = drawn
    deserved = filled(total, given_queues)
    for place in (0, 1, 3):  # rounds go on for the sake of pods alone in no implementation
        most = [min(real[place], request[place]) for _, real, request, _ in given_queues]
        expected = poured(total[place], [weight for weight, *_ in given_queues], most)
        for found, should in zip(deserved[:, place], expected):
            assert abs(found - float(should)) <= 1e-6 * total[place] + 0.2


def rounds(total: list[int], given_queues: Any) -> list[list[Fraction]]:
    """The rule as it is told: rounds over the queues that are not met, resource by resource."""
    deserved = [[Fraction(0)] * len(total) for _ in given_queues]
    remaining = [Fraction(amount) for amount in total]
    met: set[int] = set()
    for _ in range(400):
        weight = sum(queue[0] for i, queue in enumerate(given_queues) if i not in met)
        if not weight:
            break
        gained, lost = [Fraction(0)] * len(total), [Fraction(0)] * len(total)
        for i, (own, real, request, guarantee) in enumerate(given_queues):
            if i in met:
                continue
            old = list(deserved[i])
            for place, left in enumerate(remaining):
                share = min(old[place] + left * Fraction(own, weight), Fraction(real[place]), Fraction(request[place]))
                deserved[i][place] = max(share, Fraction(guarantee[place]))
                change = deserved[i][place] - old[place]
                gained[place] += max(change, Fraction(0))
                lost[place] += max(-change, Fraction(0))
            if all(asked < have + EPSILON for asked, have in zip(request, deserved[i])) or deserved[i] == old:
                met.add(i)
        new = [max(left + back - more, Fraction(0)) for left, back, more in zip(remaining, lost, gained)]
        if all(left < EPSILON for place, left in enumerate(new) if place != 2) or new == remaining:
            break
        # Fractions of endless rounds grow without bound; a billionth of a unit decides nothing.
        remaining = [left.limit_denominator(10**12) for left in new]
    return deserved


@settings(deadline=None, max_examples=40)
@given(queues(guarantees=True, weight=st.integers(1, 9)))
def test_with_guarantees_deserved_follows_the_rounds(drawn: Any) -> None:
    total, given_queues = drawn
    deserved = filled(total, given_queues)
    for found, should in zip(deserved, rounds(total, given_queues)):
        for place in (0, 1, 3):
            assert abs(found[place] - float(should[place])) <= 1e-6 * total[place] + 0.5


# -- capacity along a tree -----------------------------------------------------------------------------------------------

NAMES = ("cpu", "memory", "nvidia.com/gpu")


@st.composite
def forests(draw: Any) -> Any:
    """name → (parent, capability, deserved, guarantee, held), each a mapping of some resources to units."""
    found: dict[str, Any] = {"root": ("", draw(amounts()), {}, {}, {})}
    for i in range(draw(st.integers(1, 8))):
        parent = draw(st.sampled_from(sorted(found)))
        found[f"q{i}"] = (parent, draw(amounts()), draw(amounts()), draw(amounts()), draw(amounts()))
    return found


def amounts() -> Any:
    return st.fixed_dictionaries({}, optional={name: st.integers(0, 50) for name in NAMES})


class Written:
    """The tree by its rules, recursively and with None for what is unlimited."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest

    def children(self, name: str) -> list[str]:
        return [child for child, spec in self.forest.items() if spec[0] == name]

    def capability(self, name: str, resource: str) -> int | None:
        own = self.forest[name][1].get(resource)
        if own is None or (own == 0 and resource in ("cpu", "memory")):
            return None if name == "root" else self.capability(self.forest[name][0], resource)
        return int(own)

    def real(self, name: str, resource: str) -> int | None:
        own = self.capability(name, resource)
        if name == "root":
            return own
        parent = self.forest[name][0]
        above = self.real(parent, resource)
        if above is None:
            return own
        held_back = sum(self.forest[child][3].get(resource, 0) for child in self.children(parent))
        free = max(above - held_back, 0) + self.forest[name][3].get(resource, 0)
        return free if own is None else min(free, own)

    def deserved(self, name: str, resource: str) -> int:
        if name == "root":
            return sum(self.deserved(child, resource) for child in self.children(name))
        return max(self.forest[name][2].get(resource, 0), self.forest[name][3].get(resource, 0))

    def held(self, name: str, resource: str) -> int:
        below = self.children(name)
        if not below:
            return int(self.forest[name][4].get(resource, 0))
        return sum(self.held(child, resource) for child in below)

    def share(self, name: str) -> Fraction:
        deserved = {resource: self.deserved(name, resource) for resource in NAMES}
        return max((Fraction(self.held(name, r), most) for r, most in deserved.items() if most), default=Fraction(1))


@settings(deadline=None)
@given(forests())
def test_capacity_along_a_tree_follows_the_rules(forest: Any) -> None:
    at, written = World(), Written(forest)
    for name in NAMES:
        at.dims.place(name)
    for name, (parent, *limits, _) in forest.items():
        spec = dict(zip(("capability", "deserved", "guarantee"), limits))
        queue = at.queue(name, parent=parent)
        for field, units in spec.items():
            setattr(queue, field, at.dims.amounts(units))
    for name, (*_, held) in forest.items():
        if not written.children(name):
            job = at.job(f"j-{name}", name)
            job.allocated = at.dims.amounts(held).values
    standings = tree(at.queues, Roster.of(at.jobs.values(), at.queues, at.dims.width), at.dims.width)
    for name, found in standings.items():
        for resource in NAMES:
            place = at.dims.index[resource]
            real = written.real(name, resource)
            assert int(found.real[place]) == (OPEN_ENDED if real is None else real)
            assert found.deserves[place] == written.deserved(name, resource)
            assert int(found.held[place]) == written.held(name, resource)
        assert found.share == float(written.share(name))
        assert [each.queue.name for each in found.above] == ancestors(forest, name)


def ancestors(forest: Any, name: str) -> list[str]:
    parent = forest[name][0]
    return [parent, *ancestors(forest, parent)] if parent else []
