"""What queues had over time, as exact sums of a step function: pure, in whole numbers.

Between two cycles of the scheduler nothing of what it holds to be true changes, so amounts are steps, and the sum of amount ×
time is exact. Amounts are smallest units, times milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

Units = Mapping[str, int]

PARTS = ("received", "deserved", "asked", "due", "met", "waited", "borrowed", "lent")
"""The sums of one resource of one queue, in this order.

`received` is what was allocated, `deserved` what the scheduler said was due to the queue, `asked` what its pods hold and wait
for together. `due` is deserved as far as it was asked, `met` what of that was received. `waited` was asked and not received.
`borrowed` was received beyond what is deserved; `lent` was deserved and not received, while others had it: all that is lent is
borrowed, and what is borrowed beyond that came from what nobody deserved.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """One queue during a step; amounts by resource. `asked` None: nobody says what it asks for."""

    allocated: Units
    deserved: Units
    asked: Units | None


@dataclass(frozen=True, slots=True)
class Step:
    """How things stand from `at` on (milliseconds since the epoch). `inner` are queues that hold queues: the amounts of these
    are those of the queues below them, which are counted already."""

    at: int
    queues: Mapping[str, Standing]
    capacity: Units = field(default_factory=dict)
    inner: Collection[str] = ()
    cycle: int = 0


Sums = dict[str, list[int]]
"""By resource: a number for each of PARTS."""


class Integrals:
    """Running sums since the first step; they never become less."""

    def __init__(self, first: Step) -> None:
        self.since = first.at
        self.last = first
        self.totals: defaultdict[str, Sums] = defaultdict(dict)
        self.capacity: defaultdict[str, int] = defaultdict(int)
        self._rates = _rates(first)

    def advance(self, step: Step) -> None:
        """Time has passed with what was last said; from now on this holds. A step from the past counts as now."""
        passed = max(0, step.at - self.last.at)
        if passed:
            for name, rates in self._rates.items():
                sums = self.totals[name]
                for resource, rate in rates.items():
                    kept = sums.setdefault(resource, [0] * len(PARTS))
                    for place, amount in enumerate(rate):
                        kept[place] += amount * passed
            for resource, units in self.last.capacity.items():
                self.capacity[resource] += units * passed
        if step.queues is not self.last.queues:
            self._rates = _rates(step)
        self.last = step

    def total(self, name: str) -> Sums:
        """A queue's sums; empty for one that never had anything."""
        return {resource: list(sums) for resource, sums in self.totals.get(name, {}).items()}


def _rates(step: Step) -> dict[str, Sums]:
    """What each queue that holds jobs gathers in a millisecond, by resource and part."""
    leaves = {name: standing for name, standing in sorted(step.queues.items()) if name not in step.inner}
    resources = {
        name for each in leaves.values() for amounts in (each.allocated, each.deserved, each.asked or {}) for name in amounts
    }
    found: dict[str, Sums] = {name: {} for name in leaves}
    for resource in sorted(resources):
        rates = {name: _rate(standing, resource) for name, standing in leaves.items()}
        _lend(rates)
        for name, rate in rates.items():
            if any(rate):
                found[name][resource] = rate
    return {name: sums for name, sums in found.items() if sums}


def _rate(standing: Standing, resource: str) -> list[int]:
    """All parts but what is lent, for which the others must be known."""
    has, due = standing.allocated.get(resource, 0), standing.deserved.get(resource, 0)
    asks = max(has, standing.asked.get(resource, 0)) if standing.asked is not None else has
    entitled = min(due, asks)
    return [has, due, asks, entitled, min(has, entitled), asks - has, max(0, has - due), 0]


def _lend(rates: Mapping[str, list[int]]) -> None:
    """What is borrowed is lent by those who deserve more than they have, each in proportion, to the unit."""
    received, deserved, borrowed, lent = (PARTS.index(part) for part in ("received", "deserved", "borrowed", "lent"))
    unused = {name: max(0, rate[deserved] - rate[received]) for name, rate in rates.items()}
    free = sum(unused.values())
    given = min(free, sum(rate[borrowed] for rate in rates.values()))
    seen = handed = 0
    for name, amount in unused.items() if given else ():
        seen += amount
        share = seen * given // free - handed
        rates[name][lent] = share
        handed += share


def jain(values: Collection[float]) -> float | None:
    """Jain's index of fairness: 1 when all are equal, 1/n when one has everything; None of nothing at all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None
