"""Amounts of resources as int64 vectors, and the comparisons that scheduling rests on.

A vector has one element a dimension of a `Dimensions` table, in the resource's smallest unit: milli-CPU, bytes,
whole pods, milli-units of every other scalar. Which dimensions an amount names at all is a boolean mask beside it
(`Amounts`), since "missing" may mean zero or unlimited, depending on who asks.

Volcano compares with a tolerance of 0.1 of the smallest unit. On integers that is equality, so int64 comparisons
here are exact; the functions also take float vectors (deserved), where the tolerance matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cluster.quantities import is_counted

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Vector = Ints | Floats
A = TypeVar("A", Ints, Floats, Mask)

EPSILON = 0.1
CPU, MEMORY, PODS = 0, 1, 2
_FIRST = ("cpu", "memory", "pods")
_WIDTH = 8


class Dimensions:
    """Names of resources and their places in a vector: cpu 0, memory 1, pods 2, others as they are first seen.

    `width` is the length of every vector of the moment. It grows in steps; `grown` tells owners of vectors to pad
    theirs (`widen`). Within a session the table does not change.
    """

    def __init__(self, width: int = _WIDTH) -> None:
        self.names: list[str] = list(_FIRST)
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self.width = max(width, len(_FIRST))

    def place(self, name: str) -> int:
        """The dimension of a resource, made when it is new. May move `width`."""
        found = self.index.get(name)
        if found is None:
            found = self.index[name] = len(self.names)
            self.names.append(name)
            while self.width < len(self.names):
                self.width *= 2
        return found

    def amounts(self, units: Mapping[str, int]) -> Amounts:
        """A vector of smallest units by resource name; names that are not booked are left out.

        Raises ValueError for an amount outside int64.
        """
        places = [(self.place(name), value) for name, value in units.items() if is_counted(name)]
        values, present = np.zeros(self.width, np.int64), np.zeros(self.width, np.bool_)
        for place, value in places:
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"{self.names[place]}: {value} is beyond a 64-bit integer")
            values[place], present[place] = value, True
        return Amounts(values, present)

    def units(self, values: Vector | Iterable[int]) -> dict[str, int]:
        """Smallest units by resource name, where there are any."""
        return {name: int(value) for name, value in zip(self.names, values, strict=False) if value}


@dataclass(slots=True)
class Amounts:
    """A vector with the dimensions that it names. Missing dimensions hold 0 in `values`."""

    values: Ints
    present: Mask
    _terms: list[tuple[int, int]] | None = None

    @property
    def terms(self) -> list[tuple[int, int]]:
        """(dimension, amount) of what is above 0, pods apart: few, and asked about so often that arrays would be slow."""
        if self._terms is None:
            places = [int(place) for place in np.flatnonzero(self.values > 0) if place != PODS]
            self._terms = [(place, int(self.values[place])) for place in places]
        return self._terms

    def widen(self, width: int) -> None:
        """Pad to a grown table's width."""
        self.values, self.present = widened(self.values, width), widened(self.present, width)

    def __bool__(self) -> bool:
        return bool(self.present.any())


def widened(array: A, width: int) -> A:
    """The array with its last axis padded by zeros to `width`."""
    missing = width - array.shape[-1]
    if missing <= 0:
        return array
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])


def less_equal(left: Vector, right: Vector, compared: Mask | None = None) -> bool:
    """left ≤ right within the tolerance in every compared dimension (default: all); missing counts as 0."""
    fits = left < right + EPSILON
    return bool((fits | ~compared).all() if compared is not None else fits.all())


def is_empty(values: Vector) -> bool:
    """Below the tolerance everywhere but in pods."""
    over = values >= EPSILON
    over[PODS] = False
    return not over.any()


def positive(values: Ints) -> Ints:
    """Negative elements become 0."""
    return np.maximum(values, 0)
