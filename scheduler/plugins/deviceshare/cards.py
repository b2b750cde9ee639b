"""Which cards of a node a pod gets: states of cards, and the choice by the rules of vGPU and of gpushare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from scheduler.model.devices import Ask, Card, Share, Use
from scheduler.plugins.deviceshare.mig import Geometry, Instances

BINPACK, SPREAD = "binpack", "spread"
_FULL = 100
"""Percent of a card's cores, and the best score of one card."""


@dataclass(slots=True)
class State:
    """A card with what is held of it: by so many containers, MiB, percent of its cores."""

    card: Card
    index: int
    shared: int = 0
    memory: int = 0
    cores: int = 0
    instances: Instances | None = None

    def hold(self, use: Use) -> None:
        """Count what somebody was given of the card."""
        self.shared += 1
        self.memory += use.memory
        self.cores += use.cores
        if self.instances is not None:
            self.instances.hold(use.card)

    def take(self, ask: Ask) -> Use | None:
        """Give what one container asks of one card, if there is room."""
        memory = ask.memory_of(self.card.memory)
        if self.shared >= self.card.sharers or memory > self.card.memory - self.memory:
            return None
        if self.cores + ask.cores > _FULL or (ask.cores == _FULL and self.shared) or (self.cores == _FULL and not ask.cores):
            return None
        use = Use(self.card.uuid, memory, ask.cores)
        if self.instances is not None:
            found = self.instances.find(memory)
            if found is None:
                return None
            use = Use(f"{self.card.uuid}[{found.name}]", found.memory, ask.cores)
        self.hold(use)
        return use


def states(cards: Sequence[Card], uses: Iterable[Use], geometries: Sequence[Geometry] | None = None) -> list[State]:
    """The cards of a node with what is held of them; `geometries` where its cards are divided by MIG."""
    found = [State(card, i) for i, card in enumerate(cards)]
    for state in found if geometries is not None else ():
        assert geometries is not None
        state.instances = Instances.of(state.card.kind, geometries)
    by_uuid = {state.card.uuid: state for state in found}
    for use in uses:
        state_of = by_uuid.get(use.card.partition("[")[0])
        if state_of is not None:
            state_of.hold(use)
    return found


@dataclass(slots=True)
class Choice:
    """What a pod is given: the parts of cards of each asking container, and how good that is."""

    containers: list[list[Use]] = field(default_factory=list)
    score: float = 0.0

    def uses(self) -> tuple[Use, ...]:
        """All parts, one after another."""
        return tuple(use for uses in self.containers for use in uses)


def share_cards(cards: list[State], share: Share, policy: str, closed: Collection[str] = ()) -> Choice | None:
    """vGPU: cards for each container in turn, counted in `cards`; None when one finds too few. `closed`: not these UUIDs."""
    choice = Choice()
    for ask in share.asks:
        uses: list[Use] = []
        for state in _in_order(cards, policy):
            if len(uses) == ask.count:
                break
            card = state.card
            if not card.healthy or card.uuid in closed or not share.takes(card.uuid, card.kind):
                continue
            unused = not state.shared
            use = state.take(ask)
            if use is not None:
                uses.append(use)
                choice.score += _score(state, policy, unused=unused)
        if len(uses) < ask.count:
            return None
        choice.containers.append(uses)
    return choice


def _in_order(cards: list[State], policy: str) -> Iterator[State]:
    if policy == BINPACK:
        return iter(sorted(cards, key=lambda state: (-state.memory, state.index)))
    if policy == SPREAD:
        return iter(sorted(cards, key=lambda state: (state.shared, state.index)))
    return reversed(cards)


def _score(state: State, policy: str, *, unused: bool) -> float:
    if policy == BINPACK and state.card.memory:
        return _FULL * state.memory / state.card.memory
    return float(_FULL) if policy == SPREAD and unused else 0.0


def card_by_memory(cards: list[State], share: Share) -> Choice | None:
    """gpushare by memory: the first card with so much left."""
    for state in cards:
        if state.card.healthy and state.card.memory - state.memory >= share.memory:
            use = Use(state.card.uuid, share.memory)
            state.hold(use)
            return Choice([[use]])
    return None


def cards_by_number(cards: list[State], share: Share) -> Choice | None:
    """gpushare by number: so many cards that nobody holds, the first ones."""
    free = [state for state in cards if state.card.healthy and not state.shared][: share.number]
    if len(free) < share.number:
        return None
    uses = [Use(state.card.uuid, state.card.memory) for state in free]
    for state, use in zip(free, uses, strict=True):
        state.hold(use)
    return Choice([uses])
