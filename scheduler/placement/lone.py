"""How a class finds one node, in plain numbers: what `Evaluator.views` finds there, to the last bit, for a few rows quicker.

After a pod was placed only its row is to be looked at again, and a numpy call costs as much for one row as for a
thousand. Checks and scores say how they are asked in plain numbers (`alone`) when they are registered; a class that one
of its own cannot answer so is looked at by arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.model.plain import PlainNode
from scheduler.model.resources import Floats
from scheduler.model.tasks import TaskClass

if TYPE_CHECKING:
    from scheduler.framework.plugin import LoneCheck, LoneScore

FEW = 16
"""Up to so many rows are looked at one by one."""


class Lone:
    """A class whose checks and scores can all be asked of one node in plain numbers."""

    def __init__(
        self, cls: TaskClass, static_score: Floats | None, checks: Sequence[LoneCheck], scores: Sequence[LoneScore]
    ) -> None:
        self._static, self._checks, self._scores = static_score, checks, scores
        self._asked = [(place, int(cls.floor[place])) for place in cls.compared.tolist()]
        self._gpus, self._gpu_dimension = cls.gpus, cls.gpu_dimension

    def view(self, row: int, node: PlainNode, *, settled: bool) -> tuple[bool, bool, float]:
        """Whether one more fits now, whether once releasing tasks are gone, and the score (0 where it never fits).

        `settled`: nothing is being released or pipelined anywhere.
        """
        for check in self._checks:
            if not check(node):
                return False, False, 0.0
        idle = self._fits_now(node)
        if not (idle if settled else self._fits_later(node)):
            return False, False, 0.0
        score = 0.0 if self._static is None else float(self._static[row])
        for part in self._scores:
            score += part(node)
        return idle, True, score

    def _fits_now(self, node: PlainNode) -> bool:
        have, used = node.allocatable, node.used
        for place, asked in self._asked:
            if have[place] - used[place] < asked:
                return False
        return not self._gpus or not node.gpu_slots or node.free_gpus >= self._gpus

    def _fits_later(self, node: PlainNode) -> bool:
        have, used, more, less = node.allocatable, node.used, node.releasing, node.pipelined
        for place, asked in self._asked:
            if have[place] - used[place] + more[place] - less[place] < asked:
                return False
        if not self._gpus or not node.gpu_slots:
            return True
        place = self._gpu_dimension
        return node.free_gpus + (more[place] - less[place]) // 1000 >= self._gpus
