"""Fragmentation: GPUs that are free and of no use, because no pod that anybody asks for could be given them. Pure.

One number for people: of the free GPUs of a node, the most that pods of the asked shapes could hold at once, as many of each
shape as one likes, are of use; the others are not. Why they are not: the node is cordoned; they are left over, fewer than any
mixture of shapes needs; or CPU, memory, pods or another resource are used up before the GPUs are.
A shape that asks more GPUs than any node of a model has can never be held there, so it is no measure for it. Selectors and
tolerations play no part but for the GPU model: a node that is kept for some pods is of use to these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cluster.capacity import Unusable
from scheduler.model.resources import Ints, Mask
from scheduler.topology.stock import Stock

__all__ = ["CORDONED", "LEFTOVER", "SEVERAL", "Fragments", "Shape", "Unusable", "fragments"]

CORDONED, LEFTOVER, SEVERAL = "cordoned", "leftover", "several"
_PODS = "pods"
_MOST_MIXTURES = 256
"""Mixtures of shapes that are kept for one number of GPUs; of more those that ask the least in all stay."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one pod asks: whole GPUs (of a model; empty: of any) and other resources in smallest units, without `pods`."""

    gpus: int
    needs: Mapping[str, int] = field(default_factory=dict, hash=False)
    model: str = ""


@dataclass(frozen=True, slots=True)
class Fragments:
    """`free` GPUs on ready nodes, and the parts of them that are of no use, most first."""

    free: int
    parts: tuple[Unusable, ...]

    @property
    def unusable(self) -> int:
        """The number."""
        return sum(part.gpus for part in self.parts)

    @property
    def causes(self) -> dict[str, int]:
        """The same by cause, most first."""
        found: dict[str, int] = {}
        for part in self.parts:
            found[part.cause] = found.get(part.cause, 0) + part.gpus
        return dict(sorted(found.items(), key=lambda each: -each[1]))


def fragments(stock: Stock, asked: Iterable[Shape], usual: Iterable[Shape] = ()) -> Fragments:
    """The free GPUs that are of no use to any of the `asked` shapes; on models for which nothing is asked, to any of the `usual`
    ones; where there are none of these either, to a pod of one GPU that asks nothing else.
    """
    asked, usual = list(asked), list(usual)
    parts: list[Unusable] = []
    for model, rows in ((model, np.flatnonzero(mask)) for model, mask in stock.of_model.items()):
        most = int(stock.gpus[rows].max())
        shapes = _fitting(asked, model, most) or _fitting(usual, model, most) or [Shape(1)]
        parts += _of_rows(stock, rows, model, shapes)
    return Fragments(int(stock.free.sum()), tuple(sorted(parts, key=lambda part: (-part.gpus, part.node))))


def _fitting(shapes: Sequence[Shape], model: str, most: int) -> list[Shape]:
    return [shape for shape in shapes if 0 < shape.gpus <= most and shape.model in ("", model)]


def _of_rows(stock: Stock, rows: Ints, model: str, shapes: Sequence[Shape]) -> list[Unusable]:
    resources = [*sorted({name for shape in shapes for name in shape.needs}), _PODS]
    free = stock.free[rows]
    mixtures = _mixtures(shapes, resources, int(free.max(initial=0)))
    left = np.stack([stock.left(resource)[rows] for resource in resources], axis=1)
    best, by_number = _most(mixtures, left, free), _most(mixtures, None, free)
    alone = np.stack([_most(mixtures, left, free, (place,)) for place in range(len(resources))], axis=1)
    found = []
    for place, row in enumerate(rows.tolist()):
        name, whole = stock.names[row], int(free[place])
        if stock.cordoned[row]:
            parts = {CORDONED: whole}
        else:
            tightest = int(alone[place].argmin())
            cause = resources[tightest] if alone[place, tightest] < by_number[place] else SEVERAL
            parts = {cause: int(by_number[place] - best[place]), LEFTOVER: whole - int(by_number[place])}
        found += [Unusable(name, model, whole, gpus, cause) for cause, gpus in parts.items() if gpus]
    return found


def _mixtures(shapes: Sequence[Shape], resources: Sequence[str], most: int) -> list[Ints]:
    """For each number of GPUs what mixtures of shapes that hold exactly so many ask besides, `[mixtures, resources]`.

    A mixture that asks no less of anything than another is left out: what takes the one takes the other.
    """
    rows = {(shape.gpus, *(shape.needs.get(name, 0) for name in resources[:-1]), 1) for shape in shapes}
    by_gpus: dict[int, Ints] = {}
    for gpus in {row[0] for row in rows}:
        by_gpus[gpus] = _least(np.array([row[1:] for row in rows if row[0] == gpus], np.int64))
    nothing = np.zeros((0, len(resources)), np.int64)
    found: list[Ints] = [np.zeros((1, len(resources)), np.int64)]
    for total in range(1, most + 1):
        grown = [(found[total - gpus][:, None] + needs[None]).reshape(-1, len(resources))
                 for gpus, needs in by_gpus.items() if gpus <= total]  # fmt: skip
        found.append(_least(np.concatenate(grown)) if grown else nothing)
    return found


def _least(rows: Ints) -> Ints:
    """The rows that no other undercuts."""
    rows = np.unique(rows, axis=0)
    scale = np.maximum(rows.max(axis=0, initial=1), 1)
    rows = rows[np.argsort((rows / scale).sum(axis=1), kind="stable")]
    kept: list[int] = []
    for place in range(len(rows)):
        if not (rows[kept] <= rows[place]).all(axis=1).any():
            kept.append(place)
            if len(kept) == _MOST_MIXTURES:
                break
    return rows[kept]


def _most(mixtures: Sequence[Ints], left: Ints | None, free: Ints, only: tuple[int, ...] = ()) -> Ints:
    """For each node the most of its free GPUs that a mixture holds within what is left (None: no matter what else), by some
    resources only where `only` says which."""
    found: Ints = np.zeros(len(free), np.int64)
    for gpus, needs in enumerate(mixtures):
        if len(needs):
            fits = free >= gpus
            if left is not None:
                enough: Mask = left[:, None] >= needs[None]
                within: Mask = np.all(enough[:, :, list(only)] if only else enough, axis=2)
                fits &= within.any(axis=1)
            found[fits] = gpus
    return found
