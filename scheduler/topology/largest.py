"""The largest gang that fits now, in each network domain and for each GPU model. Pure.

Counted in pods of 1, 2, 4 and 8 GPUs and in whole nodes, over nodes that take pods. A pod also needs a little of the rest, so
that GPUs of a node whose CPU or memory is used up are not promised to anybody: one CPU and 1 GiB a GPU, and a pod's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.model.resources import Ints
from scheduler.topology.hypernodes import Domain, HyperNodes
from scheduler.topology.stock import Stock

__all__ = ["ANY", "SIZES", "Best", "DomainRoom", "domains", "nodes", "per_tier"]

SIZES = (1, 2, 4, 8)
ANY = ""
"""All models together: a gang that takes any."""
_LEAST = {"cpu": 1000, "memory": 1 << 30}


@dataclass(frozen=True, slots=True)
class DomainRoom:
    """One domain's nodes, and GPUs of one model (ANY: of all). `free` GPUs are those of nodes that take pods;
    `pods[i]` is how many pods of `SIZES[i]` GPUs fit at once; `whole` nodes have all their GPUs free.
    """

    nodes: int
    gpus: int
    free: int
    unhealthy: int
    pods: tuple[int, ...]
    whole: int

    @property
    def largest(self) -> int:
        """GPUs of the largest gang of pods with one GPU each."""
        return self.pods[0]


def nodes(stock: Stock) -> Ints:
    """`[nodes, sizes + 1]`: pods of each size that fit, then 1 for a node that is free as a whole."""
    pods = stock.left("pods")
    left = {resource: stock.left(resource) // least for resource, least in _LEAST.items()}
    columns = []
    for size in SIZES:
        fits = np.minimum(stock.free // size, pods)
        for amount in left.values():
            fits = np.minimum(fits, amount // size)
        columns.append(np.where(stock.open, fits, 0))
    whole = stock.open & (stock.gpus > 0) & (stock.free == stock.gpus) & (pods > 0)
    for amount in left.values():
        whole &= amount >= stock.gpus
    return np.stack([*columns, whole.astype(np.int64)], axis=1)


def domains(stock: Stock, tree: HyperNodes) -> list[dict[str, DomainRoom]]:
    """For each domain of the tree (`Domain.number`) its room by model, ANY for all; models that it lacks are left out."""
    each = nodes(stock)
    counted = np.column_stack([stock.gpus > 0, stock.gpus, np.where(stock.open, stock.free, 0), stock.unhealthy, each])
    masks = np.array([domain.mask for domain in tree.domains], np.int64).reshape(len(tree.domains), len(stock.nodes))
    found: list[dict[str, DomainRoom]] = [{} for _ in tree.domains]
    for model, rows in ((ANY, stock.gpus > 0), *stock.of_model.items()):
        for number, sums in enumerate((masks @ np.where(rows[:, None], counted, 0)).tolist()):
            count, gpus, free, ill, *pods, whole = sums
            if count or model == ANY:
                found[number][model] = DomainRoom(count, gpus, free, ill, tuple(pods), whole)
    return found


@dataclass(frozen=True, slots=True)
class Best:
    """The best of a tier: GPUs of the largest gang and in which domain, whole nodes and in which. None for nowhere."""

    tier: int
    gpus: int
    domain: Domain | None
    whole: int
    whole_domain: Domain | None


def per_tier(tree: HyperNodes, rooms: Sequence[dict[str, DomainRoom]], model: str = ANY) -> list[Best]:
    """The largest gangs of each tier, low tiers first, the top (the whole fleet) last."""
    found = []
    for tier in tree.tiers:
        mine = [(domain, rooms[domain.number].get(model)) for domain in tree.domains if domain.tier == tier]
        known = [(domain, room) for domain, room in mine if room is not None]
        gpus = max(known, key=lambda each: each[1].largest, default=None)
        whole = max(known, key=lambda each: each[1].whole, default=None)
        found.append(
            Best(
                tier,
                gpus[1].largest if gpus else 0,
                gpus[0] if gpus and gpus[1].largest else None,
                whole[1].whole if whole else 0,
                whole[0] if whole and whole[1].whole else None,
            )
        )
    return found
