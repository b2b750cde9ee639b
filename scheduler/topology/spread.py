"""How far the pods of a gang are from each other in the network. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scheduler.model.resources import Ints
from scheduler.topology.hypernodes import Domain, HyperNodes

__all__ = ["Spread", "spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a gang is. `score` from 0 to 1; None where there are no network domains, so nothing is near or far.

    `domain` is the lowest that holds all pods; `crossed` says for each tier, low tiers first, in how many domains of it there are
    pods; `nodes` is on how many nodes.
    """

    score: float | None
    domain: Domain
    crossed: Mapping[int, int]
    nodes: int


def spread(tree: HyperNodes, pods: Mapping[int, int]) -> Spread:
    """The spread of pods by node row (only rows with pods).

    The score is the mean over all pairs of pods of how near they are, by the measure that Volcano's network-topology-aware plugin
    ranks nodes with: 1 on one node or inside one domain of the lowest tier; else, t being the tier of the lowest domain that
    holds both, (top − t) / (top − lowest), so 0 for a pair that only the whole fleet joins. A single pod has 1.
    Only counts go in: a domain with n pods has n(n − 1)/2 pairs, and those not inside one of its members meet in it.
    """
    rows = np.fromiter(pods, np.intp, len(pods))
    counts = np.zeros(len(tree.top.mask), np.int64)
    counts[rows] = list(pods.values())
    held = [int(counts[domain.rows].sum()) for domain in tree.domains]
    crossed = {tier: sum(bool(held[domain.number]) for domain in tree.domains if domain.tier == tier) for tier in tree.tiers}
    low, high = tree.tiers[0], tree.tiers[-1]
    score = None if low == high else _score(tree, held, counts, low, high)
    return Spread(score, tree.holding(rows.tolist()), crossed, len(pods))


def _score(tree: HyperNodes, held: list[int], counts: Ints, low: int, high: int) -> float:
    total = _pairs(int(counts.sum()))
    if not total:
        return 1.0
    near = 0.0
    for domain in tree.domains:
        inside = sum(_pairs(held[child.number]) for child in domain.children)
        meet = max(_pairs(held[domain.number]) - inside, 0)
        # Pods on one node that is in no smaller domain meet nowhere: they are on the node itself.
        alone = domain.mask.copy()
        for child in domain.children:
            alone &= ~child.mask
        together = 0 if domain.tier == low else sum(_pairs(count) for count in counts[alone].tolist())
        near += together + (meet - together) * (high - domain.tier) / (high - low)
    return min(near / total, 1.0)


def _pairs(count: int) -> int:
    return count * (count - 1) // 2
