"""The smallest set of victims that frees enough, of which none can be spared.

A set is judged by the highest level (priority) among its victims, then by their number, then by the order in which
victims are to go. Up to `EXACT` candidates every set is looked at; beyond, victims are taken in order until enough is
free, and then given back from the highest level down as long as that leaves enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from scheduler.model.resources import Ints, Rows

EXACT = 12
"""So many candidates are searched exhaustively."""

Holds = Callable[[Sequence[int]], bool]
"""(positions of victims) → whether everything that is more than an amount holds too once they are gone."""


def smallest(levels: Sequence[int], frees: Ints, need: Ints, holds: Holds | None = None) -> tuple[int, ...] | None:
    """Positions of the victims; None when all together are not enough.

    `frees` is `[candidates, dimensions]` in the order in which victims should go, `levels` a number each, `need` what
    must come free at least. `holds` is asked in ascending order of cost, last.
    """
    if (frees.sum(axis=0) < need).any():
        return None
    if len(levels) <= EXACT:
        return _searched(levels, frees, need, holds)
    return _greedy(levels, frees, need, holds)


def _searched(levels: Sequence[int], frees: Ints, need: Ints, holds: Holds | None) -> tuple[int, ...] | None:
    below: int | None = None
    if not (need > 0).any() and (holds is None or holds(())):
        return ()
    for level in sorted(set(levels)):
        among = [place for place, each in enumerate(levels) if each <= level]
        offered = frees[among]
        if (offered.sum(axis=0) < need).any():
            continue
        for block in _subsets(len(among)):
            enough = np.flatnonzero((block @ offered >= need).all(axis=1))
            for row in enough.tolist():
                found = tuple(among[place] for place in np.flatnonzero(block[row]).tolist())
                tried = below is not None and all(levels[place] <= below for place in found)
                if not tried and (holds is None or holds(found)):
                    return found
        below = level
    return None


@cache
def _subsets(count: int) -> tuple[Ints, Ints]:
    """All sets of `count` things but the empty one as rows of 0 and 1, by size and then in order; the small ones apart.

    Most searches end among sets of one or two, so they are looked at before the many larger ones.
    """
    numbers = np.arange(1, 1 << count)
    members = (numbers[:, None] >> np.arange(count)) & 1
    size = members.sum(axis=1)
    order: Rows = np.lexsort((*-members[:, ::-1].T, size))
    ranked = members[order].astype(np.int64)
    few = int((size <= 2).sum())
    return ranked[:few], ranked[few:]


def _greedy(levels: Sequence[int], frees: Ints, need: Ints, holds: Holds | None) -> tuple[int, ...] | None:
    order = sorted(range(len(levels)), key=lambda place: (levels[place], place))
    taken: list[int] = []

    def enough(places: Sequence[int]) -> bool:
        free = frees[list(places)].sum(axis=0) if places else np.zeros_like(need)
        return bool((free >= need).all()) and (holds is None or holds(places))

    while not enough(taken):
        if len(taken) == len(order):
            return None
        taken.append(order[len(taken)])
    for place in sorted(taken, key=lambda place: (-levels[place], -place)):
        rest = [each for each in taken if each != place]
        if enough(rest):
            taken = rest
    return tuple(sorted(taken))
