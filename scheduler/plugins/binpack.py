"""binpack: prefer the nodes that a task fills best, so that whole nodes stay free for large ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE, LoneScore
from scheduler.framework.registry import plugin
from scheduler.model.nodes import Block
from scheduler.model.resources import Floats, Ints, Rows
from scheduler.model.tasks import TaskClass
from scheduler.plugins.kube.few import FEW
from scheduler.plugins.kube.scores import across

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session

_Terms = tuple[Rows, Ints, Floats, int]
"""Dimensions, requests and weights, one each, and the sum of the weights."""


@plugin
class Binpack:
    """The mean share in use after placement, over the asked resources that have a weight.

    Arguments: `binpack.weight`, `binpack.cpu`, `binpack.memory` (1), `binpack.resources` ("a, b"),
    `binpack.resources.<name>` (1); a negative weight of a resource counts as 1, weight 0 of the plugin turns it off.
    """

    name: ClassVar[str] = "binpack"

    def __init__(self, arguments: Arguments) -> None:
        self._weight = arguments.integer("binpack.weight", 1)
        self._resources = {"cpu": _weight(arguments, "binpack.cpu"), "memory": _weight(arguments, "binpack.memory")}
        for name in arguments.text("binpack.resources", "").split(","):
            if (resource := name.strip()) and resource not in self._resources:
                self._resources[resource] = _weight(arguments, f"binpack.resources.{resource}")
        self._asked: dict[TaskClass, _Terms] = {}
        self._of_one: dict[TaskClass, Callable[[Sequence[int], Sequence[int]], float]] = {}
        self._places: list[tuple[int, int]] = []

    def on_session_open(self, ssn: Session) -> None:
        index = ssn.dims.index
        self._places = [(index[name], weight) for name, weight in self._resources.items() if name in index]
        if self._weight:
            ssn.add_node_score(self.name, self.score, alone=self._alone)

    def on_session_close(self, ssn: Session) -> None:
        """Nothing to write."""

    def score(self, cls: TaskClass, at: Block) -> Floats:
        """0 to 100 × weight; 0 where the task does not fit beside what is in use (releasing included)."""
        places, requests, weights, divisor = self._terms(cls)
        if not divisor:
            return np.zeros(len(at))
        if len(at) <= FEW:
            return self._one_by_one(cls, at)
        have = at.allocatable.take(places, axis=1)
        filled = at.used.take(places, axis=1) + requests
        fits = filled <= have
        if np.count_nonzero(have) != have.size:
            fits |= have == 0
            filled, have = np.where(have == 0, 0, filled), np.maximum(have, 1)
        total = across(filled * weights / have)
        total *= np.logical_and.reduce(fits, axis=1)
        total /= divisor
        total *= MAX_NODE_SCORE * self._weight
        return total

    def _one_by_one(self, cls: TaskClass, at: Block) -> Floats:
        """The same for a few rows."""
        return np.array(list(map(self._in_plain_numbers(cls), at.used.tolist(), at.allocatable.tolist())), np.float64)

    def _alone(self, cls: TaskClass) -> LoneScore:
        """The same for single nodes."""
        score = self._in_plain_numbers(cls)
        return lambda node: score(node.used, node.allocatable)

    def _in_plain_numbers(self, cls: TaskClass) -> Callable[[Sequence[int], Sequence[int]], float]:
        """(what is in use on a node, what it has) → score, with the very steps of `score`."""
        found = self._of_one.get(cls)
        if found is None:
            places, requests, weights, divisor = self._terms(cls)
            terms = list(zip(places.tolist(), requests.tolist(), weights.tolist(), strict=True))
            found = self._of_one[cls] = _packer(terms, divisor, MAX_NODE_SCORE * self._weight)
        return found

    def _terms(self, cls: TaskClass) -> _Terms:
        """What the class asks for and the configuration weighs."""
        found = self._asked.get(cls)
        if found is None:
            terms = [(place, cls.request[place], weight) for place, weight in self._places if cls.request[place] > 0 and weight]
            places, requests, weights = zip(*terms) if terms else ((), (), ())
            found = self._asked[cls] = (
                np.array(places, np.intp),
                np.array(requests),
                np.array(weights, np.float64),
                sum(weights),
            )
        return found


def _packer(terms: Sequence[tuple[int, int, float]], divisor: int, scale: int) -> Callable[[Sequence[int], Sequence[int]], float]:
    def score(used: Sequence[int], have: Sequence[int]) -> float:
        total = 0.0
        for place, request, weight in terms:
            if most := have[place]:
                filled = used[place] + request
                if filled > most:
                    return 0.0
                total += float(filled) * weight / most
        return total / divisor * scale if divisor else 0.0

    return score


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.integer(key, 1)
    return weight if weight >= 0 else 1
