"""binpack: prefer the nodes that a task fills best, so that whole nodes stay free for large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.registry import plugin
from scheduler.model.jobs import TaskClass
from scheduler.model.nodes import Block
from scheduler.model.resources import Floats, Ints, Rows
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
        self._few: dict[TaskClass, list[tuple[int, int, float]]] = {}
        self._places: list[tuple[int, int]] = []

    def on_session_open(self, ssn: Session) -> None:
        index = ssn.dims.index
        self._places = [(index[name], weight) for name, weight in self._resources.items() if name in index]
        if self._weight:
            ssn.add_node_score(self.name, self.score)

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
        """The same for a few rows, in plain numbers."""
        terms, divisor, scale = self._few[cls], self._asked[cls][3], MAX_NODE_SCORE * self._weight
        totals = []
        for used, have in zip(at.used.tolist(), at.allocatable.tolist()):
            total, fits = 0.0, True
            for place, request, weight in terms:
                if have[place]:
                    filled = used[place] + request
                    fits = fits and filled <= have[place]
                    total += float(filled) * weight / have[place]
            totals.append(total / divisor * scale if fits else 0.0)
        return np.array(totals)

    def _terms(self, cls: TaskClass) -> _Terms:
        """What the class asks for and the configuration weighs."""
        found = self._asked.get(cls)
        if found is None:
            terms = [(place, cls.request[place], weight) for place, weight in self._places if cls.request[place] > 0 and weight]
            places, requests, weights = zip(*terms) if terms else ((), (), ())
            self._few[cls] = [(place, int(request), float(weight)) for place, request, weight in terms]
            found = self._asked[cls] = (
                np.array(places, np.intp),
                np.array(requests),
                np.array(weights, np.float64),
                sum(weights),
            )
        return found


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.integer(key, 1)
    return weight if weight >= 0 else 1
