"""Scores of nodes from 0 to 100, in whole numbers that are cut off at every step, as Kubernetes computes them.

Amounts come as `[nodes, resources]`, int64 in smallest units: `requested` is what the node would hold with the pod on
it, `allocatable` what it can hold. Where every node has every resource, which is nearly always, a shorter way is taken:
blocks are often of one row, and then what counts is the number of calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_SCORE", "across", "balance", "balanced", "image_locality", "image_name", "least_requested", "most_requested",
    "normalise", "stretch",
]  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
N = TypeVar("N", np.int64, np.float64)

MAX_SCORE = 100
_MEBIBYTE = 1 << 20
_IMAGE_LEAST = 23 * _MEBIBYTE
_IMAGE_MOST = 1000 * _MEBIBYTE


def least_requested(requested: Ints, allocatable: Ints) -> Ints:
    """Mean share that stays free, over the resources that the node has; 0 where more is asked than there is."""
    return _mean(np.maximum(allocatable - requested, 0), allocatable)


def most_requested(requested: Ints, allocatable: Ints) -> Ints:
    """Mean share that is taken, over the resources that the node has; never above 100."""
    return _mean(np.minimum(requested, allocatable), allocatable)


def _mean(part: Ints, allocatable: Ints) -> Ints:
    part = part * MAX_SCORE
    if _all_there(allocatable):
        mean: Ints = across(part // allocatable) // part.shape[1]
    else:
        counted = across((allocatable > 0).astype(np.int64))
        mean = across(part // np.maximum(allocatable, 1)) // np.maximum(counted, 1)
    return mean


def balanced(requested: Ints, before: Ints, allocatable: Ints) -> Ints:
    """How much better balanced nodes are with the pod than they were `before` it, from 50 to 100; no change is 75.

    So it is since Kubernetes 1.36, whose libraries Volcano uses; before, only the balance with the pod was looked at.
    """
    change = MAX_SCORE // 2 + balance(requested, allocatable) - balance(before, allocatable)
    score: Ints = MAX_SCORE // 2 + change // 2
    return score


def balance(requested: Ints, allocatable: Ints) -> Ints:
    """100 less the standard deviation of the shares taken, in percent; resources that a node lacks are left out."""
    shares = np.minimum(requested / np.maximum(allocatable, 1), 1.0)
    if requested.shape[1] == 2:
        spread = np.abs(shares[:, 0] - shares[:, 1]) / 2
        if not _all_there(allocatable):
            spread *= (allocatable[:, 0] > 0) & (allocatable[:, 1] > 0)
    else:
        spread = _deviation(shares, allocatable > 0)
    score: Ints = ((1 - spread) * MAX_SCORE).astype(np.int64)
    return score


def _deviation(shares: Floats, there: Mask) -> Floats:
    """The standard deviation over the shares that are there; of two it is half their distance, exactly."""
    width = shares.shape[1]
    if width > 2 and np.count_nonzero(there) == there.size:
        mean = across(shares) / width
        even: Floats = np.sqrt(across((shares - mean[:, np.newaxis]) ** 2) / width)
        return even
    count = there.sum(axis=1)
    mean = across(np.where(there, shares, 0.0)) / np.maximum(count, 1)
    squares = np.where(there, (shares - mean[:, np.newaxis]) ** 2, 0.0)
    deviation = np.sqrt(across(squares) / np.maximum(count, 1))
    highest, lowest = np.where(there, shares, -1.0).max(axis=1), np.where(there, shares, 2.0).min(axis=1)
    return np.where(count > 2, deviation, np.where(count == 2, (highest - lowest) / 2, 0.0))


def across(columns: NDArray[N]) -> NDArray[N]:
    """The sum over resources, column by column, so that it is the same for one node alone and among many."""
    total = columns[:, 0]
    for place in range(1, columns.shape[1]):
        total = total + columns[:, place]
    return total


def _all_there(allocatable: Ints) -> bool:
    return bool(np.count_nonzero(allocatable) == allocatable.size)


def normalise(raw: Ints, highest: int, *, reverse: bool = False) -> Ints:
    """Raw scores (0 and up) against the highest among the candidates; `reverse` makes the lowest the best."""
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
