"""One GPU of a node: what state it is in, and which part of it each pod holds, in one scale. Pure.

A card is 1000 parts. Who holds it whole has them all; who holds a share of its memory (vGPU, gpushare, an instance of a
card that MIG divides) has as many as its share is. The parts of a card never are more than the card, also where pods'
annotations claim more: then they are drawn smaller, and the card says so (`over`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.workloads import Holder, Share

WHOLE = 1000
"""The parts of a card."""

STATES = ("allocated", "shared", "idle", "free", "reserved", "releasing", "unhealthy", "cordoned", "not_ready", "unknown")
"""What a GPU can be. Of what its node says the worst counts; `unknown` is a GPU that nobody speaks for."""
IN_USE = frozenset({"allocated", "shared", "idle", "releasing"})
"""States in which somebody holds the GPU, or a part of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one pod holds of a card: `size` of WHOLE, MiB (0: not known), percent of its cores, the MIG instance."""

    holder: Holder
    size: int = WHOLE
    memory: int = 0
    cores: int = 0
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One GPU. `memory` is the card's, `used` what is measured to be in use, MiB; `load` percent. None: not measured."""

    index: int
    state: str
    parts: tuple[Part, ...] = ()
    memory: int = 0
    load: int | None = None
    used: int | None = None
    over: bool = False

    @property
    def holder(self) -> Holder | None:
        """Who holds it; of several who share it, the first."""
        return self.parts[0].holder if self.parts else None

    @property
    def size(self) -> int:
        """How much of the card is held, of WHOLE."""
        return sum(part.size for part in self.parts)

    @property
    def is_in_use(self) -> bool:
        return self.state in IN_USE


def parts_of(held: Sequence[tuple[Holder, Share | None]], memory: int) -> tuple[tuple[Part, ...], bool]:
    """The parts of a card of so much memory, and whether they were claimed to be more than the card.

    A Share of None is the whole card. Who holds a card whole beside others is what the annotations say, so all are shown.
    """
    made = [_part(holder, share, memory) for holder, share in held]
    claimed = sum(part.size for part in made)
    if claimed <= WHOLE:
        return tuple(made), False
    return tuple(Part(p.holder, p.size * WHOLE // claimed, p.memory, p.cores, p.instance) for p in made), True


def _part(holder: Holder, share: Share | None, memory: int) -> Part:
    if share is None:
        return Part(holder, WHOLE, memory, 100)
    size = share.memory * WHOLE // memory if memory and share.memory else min(share.cores, 100) * WHOLE // 100
    return Part(holder, size, share.memory, share.cores, share.instance)


def state_of(
    heard: bool, ready: bool, cordoned: bool, unhealthy: bool, parts: Sequence[Part], reserved: bool, load: int | None
) -> str:
    """The state of one GPU: what its node says of it first, then who holds it, then whether it can be given away."""
    if not ready:
        return "not_ready" if heard else "unknown"
    if unhealthy:
        return "unhealthy"
    if parts:
        if all(part.holder.releasing for part in parts):
            return "releasing"
        if load == 0:
            return "idle"
        return "allocated" if len(parts) == 1 and parts[0].size >= WHOLE else "shared"
    if reserved:
        return "reserved"
    return "cordoned" if cordoned else "free"
