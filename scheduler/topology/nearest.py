"""Which network domain comes nearest to holding a gang that waits. Pure.

Pods go where their resources are free now, largest first, node by node. Queues, priorities and whom one might evict play no part:
it says where room is missing, not whether the scheduler would start the gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.model.resources import Ints, Mask
from scheduler.topology.fragments import Shape
from scheduler.topology.hypernodes import Domain, HyperNodes
from scheduler.topology.stock import Stock

__all__ = ["Near", "nearest"]

_PODS = "pods"


@dataclass(frozen=True, slots=True)
class Near:
    """The best domain of a tier for a gang: of `asked` pods with `asked_gpus` GPUs so many would fit at once."""

    domain: Domain
    pods: int
    asked: int
    gpus: int
    asked_gpus: int

    @property
    def fits(self) -> bool:
        """Whether there is room for all."""
        return self.pods == self.asked

    @property
    def short(self) -> int:
        """GPUs for which there is no room; of a gang without GPUs, pods."""
        return self.asked_gpus - self.gpus if self.asked_gpus else self.asked - self.pods


def nearest(stock: Stock, tree: HyperNodes, pods: Iterable[tuple[Shape, int]]) -> list[Near]:
    """For each tier, low tiers first, the domain in which the most of these pods (of a shape, so many) would fit."""
    wanted = sorted(
        ((shape, count) for shape, count in pods if count > 0), key=lambda each: (-each[0].gpus, -sum(each[0].needs.values()))
    )
    if not wanted:
        return []
    resources = sorted({name for shape, _ in wanted for name in shape.needs} | {_PODS})
    left = np.stack([stock.free, *(stock.left(name) for name in resources)], axis=1)
    asked, asked_gpus = sum(count for _, count in wanted), sum(shape.gpus * count for shape, count in wanted)
    found = []
    for tier in tree.tiers:
        best: tuple[int, int, Domain] | None = None
        for domain in tree.domains:
            if domain.tier == tier:
                rows = domain.rows[stock.open[domain.rows]]
                gpus, placed = _held(stock, rows, left[rows], wanted, resources)
                if best is None or (gpus, placed) > best[:2]:
                    best = gpus, placed, domain
        assert best is not None
        found.append(Near(best[2], best[1], asked, best[0], asked_gpus))
    return found


def _held(stock: Stock, rows: Ints, left: Ints, wanted: Sequence[tuple[Shape, int]], resources: Sequence[str]) -> tuple[int, int]:
    """GPUs and pods that some nodes could take. `left` is used up on the way."""
    gpus = placed = 0
    for shape, count in wanted:
        needs = np.array([shape.gpus, *(1 if name == _PODS else shape.needs.get(name, 0) for name in resources)], np.int64)
        asks: Mask = needs > 0
        fits = np.min(left[:, asks] // needs[asks], axis=1) if len(rows) else np.zeros(0, np.int64)
        if shape.model:
            fits = np.where(stock.of_model.get(shape.model, stock.gpus < 0)[rows], fits, 0)
        before = np.cumsum(fits) - fits
        taken = np.clip(count - before, 0, fits)
        left -= taken[:, None] * needs[None]
        placed += int(taken.sum())
        gpus += int(taken.sum()) * shape.gpus
    return gpus, placed
