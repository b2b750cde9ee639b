"""Scores of nodes from 0 to 100, in whole numbers that are cut off at every step, as Kubernetes computes them.

Amounts come as one array a resource: `requested` is what the node would hold with the pod on it, `allocatable` what
it can hold, both int64 in smallest units and of any one shape. Scores are int64 of that shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_SCORE", "balanced", "image_locality", "image_name", "least_requested", "most_requested", "normalize", "stretch",
]  # fmt: skip

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

MAX_SCORE = 100
_MEBIBYTE = 1 << 20
_IMAGE_LEAST = 23 * _MEBIBYTE
_IMAGE_MOST = 1000 * _MEBIBYTE


def least_requested(requested: Sequence[Ints], allocatable: Sequence[Ints]) -> Ints:
    """Mean share that stays free, over the resources that the node has; 0 where more is asked than there is."""
    return _mean([np.where(need > have, 0, have - need) for need, have in zip(requested, allocatable)], allocatable)


def most_requested(requested: Sequence[Ints], allocatable: Sequence[Ints]) -> Ints:
    """Mean share that is taken, over the resources that the node has; never above 100."""
    return _mean([np.minimum(need, have) for need, have in zip(requested, allocatable)], allocatable)


def _mean(parts: Sequence[Ints], allocatable: Sequence[Ints]) -> Ints:
    total: Ints = np.zeros_like(parts[0])
    counted: Ints = np.zeros_like(parts[0])
    for part, have in zip(parts, allocatable):
        total += part * MAX_SCORE // np.maximum(have, 1)
        counted += have > 0
    return total // np.maximum(counted, 1)


def balanced(requested: Sequence[Ints], allocatable: Sequence[Ints]) -> Ints:
    """100 less the standard deviation of the shares taken, in percent; resources that a node lacks are left out."""
    shares = [np.minimum(need / np.maximum(have, 1), 1.0) for need, have in zip(requested, allocatable)]
    there = [have > 0 for have in allocatable]
    if len(shares) == 2:
        spread = np.where(there[0] & there[1], np.abs(shares[0] - shares[1]) / 2, 0.0)
    else:
        spread = _deviation(shares, there)
    return ((1 - spread) * MAX_SCORE).astype(np.int64)


def _deviation(shares: Sequence[NDArray[np.float64]], there: Sequence[Mask]) -> NDArray[np.float64]:
    """The standard deviation over the shares that are there; of two it is half their distance, exactly."""
    count = np.sum(there, axis=0)
    shares = [np.where(has, share, 0.0) for share, has in zip(shares, there)]
    mean = sum(shares[1:], shares[0]) / np.maximum(count, 1)
    squares = [np.where(has, (share - mean) ** 2, 0.0) for share, has in zip(shares, there)]
    deviation = np.sqrt(sum(squares[1:], squares[0]) / np.maximum(count, 1))
    highest = np.max([np.where(has, share, -1.0) for share, has in zip(shares, there)], axis=0)
    lowest = np.min([np.where(has, share, 2.0) for share, has in zip(shares, there)], axis=0)
    pair = np.abs(highest - lowest) / 2
    return np.where(count > 2, deviation, np.where(count == 2, pair, 0.0))


def normalize(raw: Ints, candidates: Mask, *, reverse: bool = False) -> Ints:
    """Raw scores (0 and up) against the highest among the candidates; `reverse` makes the lowest the best."""
    highest = int(raw[candidates].max(initial=0))
    if highest == 0:
        return np.full_like(raw, MAX_SCORE if reverse else 0)
    scaled = raw * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled


def stretch(raw: Ints, candidates: Mask) -> Ints:
    """Raw scores of either sign, stretched so that the lowest candidate has 0 and the highest 100; all 0 when alike."""
    among = raw[candidates]
    if not among.size:
        return np.zeros_like(raw)
    lowest, reach = int(among.min()), int(among.max()) - int(among.min())
    if reach == 0:
        return np.zeros_like(raw)
    scaled: Ints = (MAX_SCORE * ((raw - lowest) / reach)).astype(np.int64)
    return scaled


def image_name(image: str) -> str:
    """An image as nodes report it: with the tag `latest` where it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def image_locality(images: Sequence[str], on_nodes: Sequence[Mapping[str, int]]) -> Ints:
    """How much of a pod's images is there already: `images` has one entry a container, init containers included.

    `on_nodes` maps image names to bytes, a node each. An image counts by the share of nodes that have it, so that one
    warm node is not overrun.
    """
    total = len(on_nodes)
    held: Ints = np.zeros(total, dtype=np.int64)
    if not images:
        return held
    for image in map(image_name, images):
        rows = [row for row, there in enumerate(on_nodes) if image in there]
        if rows:
            held[rows] += [int(on_nodes[row][image] * (len(rows) / total)) for row in rows]
    most = _IMAGE_MOST * len(images)
    return MAX_SCORE * (np.clip(held, _IMAGE_LEAST, most) - _IMAGE_LEAST) // (most - _IMAGE_LEAST)
