"""The exact greedy choice of nodes for a run of equal tasks, without a pass over all nodes for each.

One vector pass ranks the nodes for the first copy. Only the n best can be chosen by n copies: when the k-th is placed at
most k − 1 of them were touched, and an untouched one still beats every outsider. A heap holds the next rung of each, a
rung being "one more copy here"; rungs are computed in blocks, since one numpy call costs as much for a thousand rows as
for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np

from scheduler.model.nodes import Block
from scheduler.model.resources import Floats, Ints, Mask, Rows
from scheduler.placement.standing import Evaluator, Standing

_BLOCK = 1024


def choose(evaluator: Evaluator, standing: Standing, count: int, within: Mask | None = None) -> tuple[list[int], bool]:
    """Rows (of some) for up to `count` tasks of the class, as if placed one by one; and whether only pipelined there.

    Fewer than `count` when the group of candidates is used up, or when a node left it and moved the scale of a
    normalised score: place these, then ask again. Empty when there is no candidate at all.
    """
    if count == 1 and within is None and not standing.normalised and (row := standing.best_idle()) >= 0:
        return [row], False
    candidates, pipelined = standing.candidates(within)
    scores = standing.scores(candidates)
    if count == 1 or not candidates.any():
        row = int(scores.argmax())
        return ([row] if candidates[row] else []), pipelined
    return list(_climb(evaluator, standing, candidates, scores, count, pipelined)), pipelined


def _climb(
    evaluator: Evaluator, standing: Standing, candidates: Mask, scores: Floats, count: int, pipelined: bool
) -> Iterator[int]:
    best = _best(scores, candidates, count)
    rungs = _Rungs(evaluator, standing, best, count, candidates, pipelined)
    heap = [(-scores[row], int(row), 1) for row in best]
    heapify(heap)
    for left in range(count, 0, -1):
        if not heap:
            return
        _, row, taken = heappop(heap)
        yield row
        if left == 1:
            return
        score = rungs.score(row, taken)
        if score is not None:
            heappush(heap, (-score, row, taken + 1))
        elif rungs.leaves(row):
            return


def _best(scores: Floats, candidates: Mask, count: int) -> Rows:
    """The `count` best candidates, ties by row; fewer when there are fewer."""
    rows = np.flatnonzero(candidates)
    if len(rows) <= count:
        return rows
    values = scores[rows]
    limit = np.partition(values, len(values) - count)[len(values) - count]
    above, level = rows[values > limit], rows[values == limit]
    return np.concatenate([above, level[: count - len(above)]])


class _Rungs:
    """Scores of a row with so many copies on it, computed in blocks; a row's block doubles each time it runs out."""

    def __init__(
        self, evaluator: Evaluator, standing: Standing, best: Rows, count: int, candidates: Mask, pipelined: bool
    ) -> None:
        self._evaluator, self._standing, self._pipelined = evaluator, standing, pipelined
        self._extremes = [(raw, scale, _Extremes(raw, candidates)) for raw, scale in standing.normalised]
        self._limit = count
        self._known: dict[int, list[float | None]] = {int(row): [] for row in best}
        depth = min(max(_BLOCK // len(best), 1), count - 1)
        self._compute([int(row) for row in best], 1, depth)

    def score(self, row: int, copies: int) -> float | None:
        """The score of one more copy beside `copies`; None when it does not fit."""
        known = self._known[row]
        if copies > len(known):
            if known and known[-1] is None:
                return None
            self._compute([row], copies, min(2 * copies, self._limit))
        return known[copies - 1]

    def leaves(self, row: int) -> bool:
        """Take a full row out of the candidates; whether that moved an extreme of a normalised score."""
        moved = False
        for _, _, extremes in self._extremes:
            moved |= extremes.leave(row)
        return moved

    def _compute(self, rows: list[int], first: int, last: int) -> None:
        depth = last - first + 1
        if depth <= 0:
            return
        where: Rows = np.repeat(np.asarray(rows, np.intp), depth)
        copies: Ints = np.tile(np.arange(first, last + 1), len(rows))
        at = Block(self._evaluator.nodes, where, self._standing.cls, copies, as_pipelined=self._pipelined)
        views = self._evaluator.views(self._standing, at)
        total = views.score
        for raw, scale, extremes in self._extremes:
            total = total + scale(raw[where], extremes.low, extremes.high)
        fits = views.future if self._pipelined else views.idle
        values, open_ = total.tolist(), fits.tolist()
        for place, row in enumerate(rows):
            start = place * depth
            self._known[row] += [
                value if fit else None
                for value, fit in zip(values[start : start + depth], open_[start : start + depth], strict=True)
            ]


class _Extremes:
    """Minimum and maximum of a raw value over candidates that leave one by one."""

    def __init__(self, raw: Ints, candidates: Mask) -> None:
        among, counts = np.unique(raw[candidates], return_counts=True)
        self._raw = raw
        self._left = dict(zip(among.tolist(), counts.tolist(), strict=True))
        self.low, self.high = int(among[0]), int(among[-1])

    def leave(self, row: int) -> bool:
        value = int(self._raw[row])
        self._left[value] -= 1
        return self._left[value] == 0 and value in (self.low, self.high)
