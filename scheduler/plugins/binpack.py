"""binpack: prefer the nodes that a task fills best, so that whole nodes stay free for large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.registry import plugin
from scheduler.model.jobs import TaskClass
from scheduler.model.nodes import Block
from scheduler.model.resources import Floats, Mask

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


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
        self._asked: dict[TaskClass, list[tuple[int, int, int]]] = {}
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
        total: Floats = np.zeros(len(at.rows))
        fits: Mask = np.ones(len(at.rows), np.bool_)
        weights = 0
        for place, weight, request in self._terms(cls):
            weights += weight
            if not weight:
                continue
            have = at.allocatable[:, place]
            filled = at.used[:, place] + request
            there = have > 0
            fits &= (filled <= have) | ~there
            total += np.where(there, filled * float(weight) / np.maximum(have, 1), 0.0)
        if not weights:
            return total
        total *= fits
        total /= weights
        total *= MAX_NODE_SCORE * self._weight
        return total

    def _terms(self, cls: TaskClass) -> list[tuple[int, int, int]]:
        """Dimension, weight and request of what the class asks for and the configuration weighs."""
        found = self._asked.get(cls)
        if found is None:
            asked = cls.request.tolist()
            found = self._asked[cls] = [(place, weight, asked[place]) for place, weight in self._places if asked[place] > 0]
        return found


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.integer(key, 1)
    return weight if weight >= 0 else 1
