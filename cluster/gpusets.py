"""Which sets of a node's GPUs are held and could be given, and what each is worth, as the scheduler judges it.

This room knows no scheduling, so the judge is handed in (`use`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

SIZES = (1, 2, 4, 8)
"""The requests for which a node's free sets are told."""


@dataclass(frozen=True, slots=True)
class GpuSet:
    """Some GPUs of a node. `slowest` names the slowest link between any two (empty: a single GPU, or links are not known);
    `bandwidth` is of all its links together, one direction, in GB/s; `score` from 0 to 100 is what the scheduler's gputopology
    plugin gives for link and bandwidth (a single GPU has 100); None where links are not known.
    """

    gpus: tuple[int, ...]
    slowest: str = ""
    bandwidth: int = 0
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A set that is held, and the best that the node had for its size were all its healthy GPUs free."""

    had: GpuSet
    best: GpuSet

    @property
    def is_best(self) -> bool:
        """Whether no other set of its size is better."""
        return self.had.score is None or self.best.score is None or self.had.score >= self.best.score


@dataclass(frozen=True, slots=True)
class NodeSets:
    """`islands` are GPUs joined by NVLink or XGMI, directly or over others of the island; a GPU without such a link is one by
    itself. `free` has the set that the scheduler would give for each size, None where too few are free; `held` goes as asked.
    Without a table of links that covers all GPUs `known` is false: there are no islands, and sets are by index.
    """

    known: bool = False
    islands: tuple[tuple[int, ...], ...] = ()
    free: tuple[tuple[int, GpuSet | None], ...] = ()
    held: tuple[Held, ...] = field(default=())


Judge = Callable[[Sequence[Sequence[str]], int, Collection[int], Collection[int], Sequence[Sequence[int]]], NodeSets]
"""(link names [gpu][gpu], number of GPUs, free ones, healthy ones, sets that are held) → what they are worth."""
_judge: Judge | None = None


def use(judge: Judge | None) -> None:
    """Say who answers."""
    global _judge
    _judge = judge


def of_node(
    links: Sequence[Sequence[str]], gpus: int, free: Collection[int], healthy: Collection[int], held: Sequence[Sequence[int]]
) -> NodeSets | None:
    """The sets of one node; None where nobody can tell."""
    return _judge(links, gpus, free, healthy, held) if _judge is not None else None
