"""The scores of `scores` for one node, in plain numbers: for a few nodes this is several times quicker than by arrays.

The same numbers to the last bit, as long as amounts are below 2^53 (`EXACT`): beyond, arrays lose some when they divide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from scheduler.plugins.kube.scores import MAX_SCORE

__all__ = ["EXACT", "FEW", "Scorer", "balance", "balanced", "least_requested", "most_requested", "scorer"]

FEW = 6
"""Up to so many nodes are scored one by one."""
EXACT = 1 << 53

Units = Sequence[int]
Scorer = Callable[[Units, Units, Units], int]
"""(what a node has, cpu and memory asked there with defaults, everything asked there) → score."""


def scorer(least: int, most: int, balance: int, nonzero: tuple[int, int], balanced: Sequence[tuple[int, int]]) -> Scorer:
    """The three scores of resources by their weights, for a pod that asks `nonzero` of cpu and memory (defaults counted).

    `balanced` are dimension and request of everything that is balanced; none when there is nothing to balance.
    """
    cpu, memory = nonzero

    def score(have: Units, there: Units, listed: Units) -> int:
        total = 0
        if least or most:
            need = (there[0] + cpu, there[1] + memory)
            if least:
                total += least * least_requested(need, have)
            if most:
                total += most * most_requested(need, have)
        if balance and balanced:
            total += balance * _better(have, listed, balanced)
        return total

    return score


def _better(have: Units, listed: Units, asked: Sequence[tuple[int, int]]) -> int:
    """`balanced` by dimension and request."""
    if len(asked) == 2:
        (first, more), (second, further) = asked
        one, two, held, other = have[first], have[second], listed[first], listed[second]
        if one > 0 and two > 0:
            change = _balance_of_two(held + more, one, other + further, two) - _balance_of_two(held, one, other, two)
            return MAX_SCORE // 2 + (MAX_SCORE // 2 + change) // 2
    places = [place for place, _ in asked]
    before = [listed[place] for place in places]
    after = [listed[place] + more for place, more in asked]
    return balanced(after, before, [have[place] for place in places])


def _balance_of_two(need: int, have: int, other_need: int, other_have: int) -> int:
    """`balance` of two resources that are both there."""
    share = need / have if need < have else 1.0
    other = other_need / other_have if other_need < other_have else 1.0
    return int((1 - abs(share - other) / 2) * MAX_SCORE)


def least_requested(requested: Units, allocatable: Units) -> int:
    """Mean share that stays free, over the resources that the node has; 0 where more is asked than there is."""
    if len(requested) == 2:
        (need, other_need), have, other_have = requested, allocatable[0], allocatable[1]
        if have > 0 and other_have > 0:
            free = (have - need) * MAX_SCORE // have if have > need else 0
            return (free + ((other_have - other_need) * MAX_SCORE // other_have if other_have > other_need else 0)) // 2
    total = count = 0
    for need, have in zip(requested, allocatable):
        if have > 0:
            count += 1
            if have > need:
                total += (have - need) * MAX_SCORE // have
    return total // count if count else 0


def most_requested(requested: Units, allocatable: Units) -> int:
    """Mean share that is taken, over the resources that the node has; never above 100."""
    total = count = 0
    for need, have in zip(requested, allocatable):
        if have > 0:
            count += 1
            total += (need if need < have else have) * MAX_SCORE // have
    return total // count if count else 0


def balanced(requested: Units, before: Units, allocatable: Units) -> int:
    """How much better balanced the node is with the pod than it was `before` it, from 50 to 100; no change is 75."""
    change = MAX_SCORE // 2 + balance(requested, allocatable) - balance(before, allocatable)
    return MAX_SCORE // 2 + change // 2


def balance(requested: Units, allocatable: Units) -> int:
    """100 less the standard deviation of the shares taken, in percent; resources that the node lacks are left out."""
    shares = [need / have if need < have else 1.0 for need, have in zip(requested, allocatable) if have > 0]
    return int((1 - _deviation(shares)) * MAX_SCORE)


def _deviation(shares: Sequence[float]) -> float:
    count = len(shares)
    if count < 2:
        return 0.0
    if count == 2:
        return abs(shares[0] - shares[1]) / 2
    # Added up in turn: `sum` corrects its rounding in newer Pythons, arrays do not.
    total = squares = 0.0
    for share in shares:
        total += share
    mean = total / count
    for share in shares:
        squares += (share - mean) * (share - mean)
    return sqrt(squares / count)
