"""Which GPUs of a node to give: link matrices and the best k of what is free.

A set of GPUs is judged, in this order, by its slowest link (a collective runs at the pace of its slowest edge), by
the bandwidth of all its links together, by the damage that it does, and by index. Damage is what larger requests lose: of
two sets the better is the one after which the GPUs that stay free still offer the better set of all of them, else of all
but one, and so on down. So a single GPU comes from where an island is broken already.
GPUs are bits of an integer, bit i for GPU i.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = ["LinkMatrix", "Offers", "best_set", "indices", "link_rank", "link_strength", "mask"]

# About what one direction of a path carries, in GB/s. Only the order and the rough ratios matter: an NVLink brings
# 25 a lane since its second generation, XGMI about as much as two of those, and each further hop of PCIe shares its lanes
# with more devices.
_NVLINK = 25
_PATHS = {"XGMI": 50, "PIX": 16, "PXB": 14, "PHB": 12, "PCIE": 12, "NODE": 10, "SYS": 8, "SOC": 8}
_RANKS = {"XGMI": 7, "PIX": 6, "PXB": 5, "PHB": 4, "PCIE": 4, "NODE": 3, "SYS": 2, "SOC": 2}
_BONDED_RANK = 10
_NO_LINK = 10_000
"""The rank of the slowest link of a single GPU, which has none."""
_BONDED = re.compile(r"NV([1-9][0-9]{0,2})", re.ASCII)

# So many free GPUs have few enough subsets to know what each of them offers.
_TABLED = 16
_SMALL = 10
# Above this many candidate sets the search gives up on proof and grows one set greedily.
_ENUMERABLE = 50_000


def link_strength(name: str) -> int:
    """The strength of a path by its name in a topology table (`NV12`, `XGMI`, `PIX` … `SYS`). Raises ValueError."""
    bonded, text = _parse(name)
    return _NVLINK * bonded if bonded else _PATHS[text]


def link_rank(name: str) -> int:
    """Where a path stands among all: NVLinks by their number, then XGMI, PIX, PXB, PHB, NODE, SYS. Raises ValueError."""
    bonded, text = _parse(name)
    return _BONDED_RANK + bonded if bonded else _RANKS[text]


def _parse(name: str) -> tuple[int, str]:
    """How many NVLinks are bonded (0: it is another path), and the path's name."""
    text = name.strip().upper()
    found = _BONDED.fullmatch(text)
    if not found and text not in _PATHS:
        raise ValueError(f"unknown GPU link {name!r}: expected one of {', '.join(['NV1 to NV999', *_PATHS])}")
    return int(found[1]) if found else 0, text


class LinkMatrix:
    """How each pair of a node's GPUs is joined: `strength` in GB/s, `rank` by order; symmetric, diagonals are ignored.

    Make it by `of` (or `unknown`), so that nodes of one shape share one matrix and with it what it remembers.
    """

    __slots__ = ("_best", "rank", "size", "strength")

    def __init__(self, strength: NDArray[np.int64], rank: NDArray[np.int64]) -> None:
        self.strength, self.rank = strength, rank
        self.size = len(strength)
        self._best: dict[tuple[int, int], tuple[int, ...]] = {}

    @classmethod
    def of(cls, names: Sequence[Sequence[str]]) -> LinkMatrix:
        """The matrix of link names, a row a GPU. Raises ValueError for a table that is not square or symmetric."""
        return _interned(tuple(tuple(row) for row in names))

    @classmethod
    def unknown(cls, size: int) -> LinkMatrix:
        """A node of which nothing is known: every pair alike."""
        return _interned((("SYS",) * size,) * size)


@lru_cache(maxsize=4096)
def _interned(names: tuple[tuple[str, ...], ...]) -> LinkMatrix:
    size = len(names)
    strength, rank = np.zeros((size, size), np.int64), np.zeros((size, size), np.int64)
    for i, row in enumerate(names):
        if len(row) != size:
            raise ValueError(f"row {i} of the link matrix has {len(row)} entries, not {size}")
        for j, name in enumerate(row):
            if i != j:
                strength[i, j], rank[i, j] = link_strength(name), link_rank(name)
    lopsided = np.argwhere(rank != rank.T)
    if len(lopsided):
        i, j = lopsided[0]
        raise ValueError(f"the link from GPU {i} to GPU {j} is {names[i][j]}, and back it is {names[j][i]}")
    return LinkMatrix(strength, rank)


def mask(gpus: Sequence[int]) -> int:
    """The bits of some GPU indices."""
    bits = 0
    for gpu in gpus:
        bits |= 1 << gpu
    return bits


def indices(bits: int) -> tuple[int, ...]:
    """The GPU indices of a mask, ascending."""
    return tuple(i for i in range(bits.bit_length()) if bits >> i & 1)


def best_set(matrix: LinkMatrix, free_mask: int, k: int, allowed: int | None = None) -> tuple[int, ...]:
    """The best k GPUs among the free ones (and, where given, the allowed ones), ascending.

    What stays free counts by `free_mask` alone: a GPU that is free and not allowed is still there for others.
    Raises ValueError when there are fewer than k.
    """
    choice = free_mask if allowed is None else free_mask & allowed
    if choice >> matrix.size:
        raise ValueError(f"the mask {choice:#x} names a GPU beyond the node's {matrix.size}")
    if not 0 <= k <= choice.bit_count():
        raise ValueError(f"{k} GPUs asked, and {choice.bit_count()} to choose from")
    if choice != free_mask:
        return _search(matrix, free_mask, choice, k)
    key = (free_mask, k)
    found = matrix._best.get(key)
    if found is None:
        found = matrix._best[key] = _search(matrix, free_mask, choice, k)
    return found


def _search(matrix: LinkMatrix, free_mask: int, choice: int, k: int) -> tuple[int, ...]:
    gpus = indices(choice)
    if k in (0, len(gpus)):
        return gpus[:k]
    if comb(len(gpus), k) > _ENUMERABLE:
        return _grow(matrix, gpus, k)
    sets = np.array(list(combinations(gpus, k)), dtype=np.intp)
    free = indices(free_mask)
    if len(free) > _TABLED:
        first = int(np.lexsort(tuple(-key for key in reversed(_judge(matrix, free_mask, sets))))[0])
    else:
        first = _least_damage(Offers.among(matrix, free), free, sets)
    return tuple(int(gpu) for gpu in sets[first])


def _least_damage(offers: Offers, free: tuple[int, ...], sets: NDArray[np.intp]) -> int:
    """The place of the best set: narrowed by what it is worth, then by what stays free offers, from the most down."""
    place = np.zeros(max(free) + 1, np.int64)
    place[list(free)] = np.arange(len(free))
    chosen = (1 << place[sets]).sum(axis=1)
    rest = ((1 << len(free)) - 1) & ~chosen
    kept = np.arange(len(sets))
    for worth in (offers.worth, *(offers.best[size] for size in range(len(free) - sets.shape[1], 1, -1))):
        values = worth[chosen[kept]] if worth is offers.worth else worth[rest[kept]]
        kept = kept[values == values.max()]
        if len(kept) == 1:
            break
    return int(kept[0])


class Offers:
    """What every subset of some GPUs is worth, and the best that it offers to a request of each size.

    A worth is one integer: the rank of the slowest link first, the bandwidth of all links second. `best[k][subset]` is the
    largest worth of a set of k in it, −1 where it has fewer; a subset is a mask over the GPUs in their order.
    """

    def __init__(self, rank: NDArray[np.int64], strength: NDArray[np.int64]) -> None:
        size = len(rank)
        slowest, total = np.full(1 << size, _NO_LINK), np.zeros(1 << size, np.int64)
        for gpu in range(size):
            low, link = np.full(1 << gpu, _NO_LINK), np.zeros(1 << gpu, np.int64)
            for other in range(gpu):
                block = slice(1 << other, 2 << other)
                low[block] = np.minimum(low[: 1 << other], rank[gpu, other])
                link[block] = link[: 1 << other] + strength[gpu, other]
            mine = slice(1 << gpu, 2 << gpu)
            slowest[mine], total[mine] = np.minimum(slowest[: 1 << gpu], low), total[: 1 << gpu] + link
        self.span = int(strength.sum()) + 1
        self.worth = slowest * self.span + total
        count = np.bitwise_count(np.arange(1 << size))
        self.best = [self._best(size, np.where(count == k, self.worth, -1)) for k in range(size + 1)]

    @staticmethod
    def among(matrix: LinkMatrix, gpus: tuple[int, ...]) -> Offers:
        """Those of some GPUs of a node (at most 16), remembered."""
        if matrix.size <= _SMALL:
            return _few(matrix, gpus)
        return _many(matrix, gpus)

    @staticmethod
    def _best(size: int, worth: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each mask the largest value of any mask inside it."""
        for gpu in range(size):
            halves = worth.reshape(-1, 2, 1 << gpu)
            np.maximum(halves[:, 1], halves[:, 0], out=halves[:, 1])
        return worth

    def slowest(self, worth: int) -> int:
        """The rank in a worth."""
        return worth // self.span


def _offers(matrix: LinkMatrix, gpus: tuple[int, ...]) -> Offers:
    chosen = np.ix_(gpus, gpus)
    return Offers(matrix.rank[chosen], matrix.strength[chosen])


_few = lru_cache(maxsize=8192)(_offers)
_many = lru_cache(maxsize=16)(_offers)


def _judge(matrix: LinkMatrix, free_mask: int, sets: NDArray[np.intp]) -> tuple[NDArray[np.int64], ...]:
    """Slowest link, bandwidth inside, bandwidth left among the free: one value a set, higher is better.

    The last stands for damage where too many GPUs are free to know what all their subsets offer. `sets` is `[sets, k]`
    in ascending order of indices, which is also how ties end (lexsort is stable).
    """
    strength = matrix.strength
    count, k = sets.shape
    slowest = np.full(count, _NO_LINK)
    inside = np.zeros(count, dtype=np.int64)
    for a, b in combinations(range(k), 2):
        links = strength[sets[:, a], sets[:, b]]
        np.minimum(slowest, matrix.rank[sets[:, a], sets[:, b]], out=slowest)
        inside += links
    free = np.array(indices(free_mask), dtype=np.intp)
    to_free = strength[:, free].sum(axis=1)
    # Links among the free = links of the set to the free, less those inside counted twice, plus those that stay.
    left = int(strength[np.ix_(free, free)].sum()) // 2 - (to_free[sets].sum(axis=1) - inside)
    return slowest, inside, left


def _grow(matrix: LinkMatrix, gpus: tuple[int, ...], k: int) -> tuple[int, ...]:
    """A good set where there are too many to try: from each GPU add the best joined one, keep the best of all."""
    strength, rank = matrix.strength, matrix.rank
    best: tuple[int, int] | None = None
    chosen: list[int] = []
    for seed in gpus:
        grown, slowest, inside = [seed], _NO_LINK, 0
        while len(grown) < k:
            rest = [gpu for gpu in gpus if gpu not in grown]
            links = strength[np.ix_(rest, grown)]
            low, total = np.minimum(rank[np.ix_(rest, grown)].min(axis=1), slowest), links.sum(axis=1)
            pick = int(np.lexsort((-total, -low))[0])
            slowest, inside = int(low[pick]), inside + int(total[pick])
            grown.append(rest[pick])
        if best is None or (slowest, inside) > best:
            best, chosen = (slowest, inside), grown
    return tuple(sorted(chosen))
