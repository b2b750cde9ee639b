"""A node's GPUs for people: NVLink islands, the sets that would be given, the sets that are held. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from cluster.gpusets import SIZES, GpuSet, Held, NodeSets
from scheduler.topology.gpu import LinkMatrix, best_set, link_rank, mask
from scheduler.topology.worth import link_and_bandwidth

__all__ = ["graded", "islands", "of_node"]

_LINK, _BANDWIDTH = 4, 2
"""The plugin's own weights of the two parts that a set keeps; the third, damage, is about what was free when it was chosen."""
_FABRIC = link_rank("XGMI")
_MOST = 64


def of_node(
    links: Sequence[Sequence[str]], gpus: int, free: Collection[int], healthy: Collection[int], held: Sequence[Sequence[int]]
) -> NodeSets:
    """What `cluster.gpusets.NodeSets` says. GPUs beyond the node's number count for nothing; of a node with more than 64 nothing
    is said, as no table of links is read of one.
    """
    if gpus > _MOST:
        return NodeSets()
    known = len(links) >= gpus > 0
    matrix = LinkMatrix.of(links) if known else LinkMatrix.unknown(gpus)
    names = links if known else ()
    room, sound = (mask([gpu for gpu in some if 0 <= gpu < gpus]) for some in (free, healthy))
    found = [tuple(sorted(gpu for gpu in each if 0 <= gpu < gpus)) for each in held]
    return NodeSets(
        known=known,
        islands=islands(links, gpus) if known else (),
        free=tuple((size, _given(matrix, names, room, size)) for size in SIZES if size <= gpus),
        held=tuple(
            Held(had=graded(matrix, names, each), best=graded(matrix, names, best_set(matrix, sound | mask(each), len(each))))
            for each in found
        ),
    )


def islands(links: Sequence[Sequence[str]], gpus: int) -> tuple[tuple[int, ...], ...]:
    """GPUs in groups that NVLink or XGMI joins, by their first GPU."""
    island = list(range(gpus))
    for a, b in combinations(range(gpus), 2):
        if link_rank(links[a][b]) >= _FABRIC and island[a] != island[b]:
            low, high = sorted((island[a], island[b]))
            island = [low if each == high else each for each in island]
    return tuple(tuple(gpu for gpu in range(gpus) if island[gpu] == first) for first in sorted(set(island)))


def graded(matrix: LinkMatrix, names: Sequence[Sequence[str]], gpus: tuple[int, ...]) -> GpuSet:
    """A set with its slowest link, its bandwidth and its score; without `names` the links are not known."""
    if not names:
        return GpuSet(gpus)
    pairs = list(combinations(gpus, 2))
    slowest = min(pairs, key=lambda pair: int(matrix.rank[pair]), default=None)
    link, bandwidth = link_and_bandwidth(matrix, mask(gpus))
    return GpuSet(
        gpus,
        names[slowest[0]][slowest[1]] if slowest else "",
        sum(int(matrix.strength[pair]) for pair in pairs),
        round(100 * (_LINK * link + _BANDWIDTH * bandwidth) / (_LINK + _BANDWIDTH), 1),
    )


def _given(matrix: LinkMatrix, names: Sequence[Sequence[str]], free: int, size: int) -> GpuSet | None:
    return graded(matrix, names, best_set(matrix, free, size)) if free.bit_count() >= size else None
