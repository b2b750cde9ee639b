"""Which GPUs of a node to give: link matrices and the best k of what is free.

A set of GPUs is judged, in this order, by its slowest link (a collective runs at the pace of its slowest edge), by
the bandwidth of all its links together, by the bandwidth that is left among the GPUs that stay free, and by index.
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

__all__ = ["LinkMatrix", "best_set", "indices", "link_strength", "mask"]

# About what one direction of a path carries, in GB/s. Only the order and the rough ratios matter: an NVLink brings
# 25 a lane since its second generation, and each further hop of PCIe shares its lanes with more devices.
_NVLINK = 25
_PATHS = {"PIX": 16, "PXB": 14, "PHB": 12, "PCIE": 12, "NODE": 10, "SYS": 8, "SOC": 8}
_BONDED = re.compile(r"NV([1-9][0-9]{0,2})", re.ASCII)

# Above this many candidate sets the search gives up on proof and grows one set greedily.
_ENUMERABLE = 50_000


def link_strength(name: str) -> int:
    """The strength of a path by its name in a topology table (`NV12`, `XGMI`, `PIX` … `SYS`). Raises ValueError."""
    text = name.strip().upper()
    bonded = _BONDED.fullmatch(text)
    if bonded:
        return _NVLINK * int(bonded[1])
    if text == "XGMI":
        return 2 * _NVLINK
    try:
        return _PATHS[text]
    except KeyError:
        known = ", ".join(["NV1 to NV999", "XGMI", *_PATHS])
        raise ValueError(f"unknown GPU link {name!r}: expected one of {known}") from None


class LinkMatrix:
    """How strongly each pair of a node's GPUs is joined; symmetric, its diagonal is ignored.

    Make it by `of` (or `unknown`), so that nodes of one shape share one matrix and with it what it remembers.
    """

    __slots__ = ("_best", "size", "strength")

    def __init__(self, strength: NDArray[np.int64]) -> None:
        self.strength = strength
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
    strength = np.zeros((size, size), dtype=np.int64)
    for i, row in enumerate(names):
        if len(row) != size:
            raise ValueError(f"row {i} of the link matrix has {len(row)} entries, not {size}")
        for j, name in enumerate(row):
            if i != j:
                strength[i, j] = link_strength(name)
    lopsided = np.argwhere(strength != strength.T)
    if len(lopsided):
        i, j = lopsided[0]
        raise ValueError(f"the link from GPU {i} to GPU {j} is {names[i][j]}, and back it is {names[j][i]}")
    return LinkMatrix(strength)


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
    first = int(np.lexsort(tuple(-key for key in reversed(_judge(matrix, free_mask, sets))))[0])
    return tuple(int(gpu) for gpu in sets[first])


def _judge(matrix: LinkMatrix, free_mask: int, sets: NDArray[np.intp]) -> tuple[NDArray[np.int64], ...]:
    """Slowest link, bandwidth inside, bandwidth left among the free: one value a set, higher is better.

    `sets` is `[sets, k]` in ascending order of indices, which is also how ties end (lexsort is stable).
    """
    strength = matrix.strength
    count, k = sets.shape
    slowest = np.full(count, np.iinfo(np.int64).max)
    inside = np.zeros(count, dtype=np.int64)
    for a, b in combinations(range(k), 2):
        links = strength[sets[:, a], sets[:, b]]
        np.minimum(slowest, links, out=slowest)
        inside += links
    free = np.array(indices(free_mask), dtype=np.intp)
    to_free = strength[:, free].sum(axis=1)
    # Links among the free = links of the set to the free, less those inside counted twice, plus those that stay.
    left = int(strength[np.ix_(free, free)].sum()) // 2 - (to_free[sets].sum(axis=1) - inside)
    return slowest, inside, left


def _grow(matrix: LinkMatrix, gpus: tuple[int, ...], k: int) -> tuple[int, ...]:
    """A good set where there are too many to try: from each GPU add the best joined one, keep the best of all."""
    strength = matrix.strength
    best: tuple[int, int] | None = None
    chosen: list[int] = []
    for seed in gpus:
        grown, slowest, inside = [seed], int(np.iinfo(np.int64).max), 0
        while len(grown) < k:
            rest = [gpu for gpu in gpus if gpu not in grown]
            links = strength[np.ix_(rest, grown)]
            low, total = np.minimum(links.min(axis=1), slowest), links.sum(axis=1)
            pick = int(np.lexsort((-total, -low))[0])
            slowest, inside = int(low[pick]), inside + int(total[pick])
            grown.append(rest[pick])
        if best is None or (slowest, inside) > best:
            best, chosen = (slowest, inside), grown
    return tuple(sorted(chosen))
