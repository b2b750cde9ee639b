"""What a set of GPUs is worth, from 0 to 1: by its slowest link, by its bandwidth, and by what later requests lose."""

from __future__ import annotations

import numpy as np

from scheduler.topology.gpu import LinkMatrix, Offers, indices, link_rank, link_strength, mask

__all__ = ["Worth", "judge", "link_and_bandwidth"]

# How good a slowest link is, from 0 to 1: even steps, for what a hop costs depends on the program.
_QUALITY = {link_rank(name): value for name, value in
            (("SYS", 0.2), ("NODE", 0.3), ("PHB", 0.4), ("PXB", 0.5), ("PIX", 0.6), ("XGMI", 0.8))}  # fmt: skip
_NVLINK_LOW, _NVLINK_HIGH = 0.8, 1.0
_MOST_BONDED = 18
_FASTEST = link_strength(f"NV{_MOST_BONDED}")
_MOST_TABLED = 16

Worth = tuple[float, float, float]
"""Link, bandwidth and intactness of one choice, each from 0 to 1."""


def judge(links: LinkMatrix, free: int, chosen: int) -> Worth:
    """A choice among free GPUs (masks): its slowest link, its mean bandwidth, and how little later requests lose.

    What is lost: for each size of request the quality of the best set before less that after, weighted by the size.
    """
    return *link_and_bandwidth(links, chosen), 1.0 - _damage(links, free, chosen)


def link_and_bandwidth(links: LinkMatrix, chosen: int) -> tuple[float, float]:
    """The slowest link of a set (a mask) and its mean bandwidth, each from 0 to 1; of a single GPU both are 1."""
    gpus = indices(chosen)
    pairs = len(gpus) * (len(gpus) - 1) // 2
    block = np.ix_(gpus, gpus)
    slowest = min((int(links.rank[a, b]) for a in gpus for b in gpus if a != b), default=None)
    bandwidth = float(links.strength[block].sum()) / 2 / pairs / _FASTEST if pairs else 1.0
    return _quality(slowest), min(bandwidth, 1.0)


def _damage(links: LinkMatrix, free: int, chosen: int) -> float:
    gpus = indices(free)
    most = links.size * (links.size + 1) / 2
    if len(gpus) > _MOST_TABLED:  # too many subsets to know: by the number alone
        left = len(gpus) - chosen.bit_count()
        return (len(gpus) * (len(gpus) + 1) - left * (left + 1)) / 2 / most
    offers = Offers.among(links, gpus)
    rest = mask([place for place, gpu in enumerate(gpus) if not chosen >> gpu & 1])
    lost = 0.0
    for size in range(1, len(gpus) + 1):
        before, after = (_offered(offers, size, subset) for subset in ((1 << len(gpus)) - 1, rest))
        lost += size * (before - after)
    return lost / most


def _offered(offers: Offers, size: int, subset: int) -> float:
    """The quality of the best set of a size in a subset; 0 when it has none."""
    worth = int(offers.best[size][subset])
    if worth < 0:
        return 0.0
    return _quality(offers.slowest(worth) if size > 1 else None)


def _quality(rank: int | None) -> float:
    """0 to 1 for the rank of a slowest link; None: a single GPU, which waits for no link."""
    if rank is None:
        return 1.0
    if rank in _QUALITY:
        return _QUALITY[rank]
    bonded = min(rank - link_rank("NV1") + 1, _MOST_BONDED)
    return _NVLINK_LOW + (_NVLINK_HIGH - _NVLINK_LOW) * bonded / _MOST_BONDED
