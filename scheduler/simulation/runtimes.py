"""How long jobs run, as far as the past tells: run times of jobs that were like one, the most alike of which there are enough."""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

ENOUGH = 12
"""Run times of which a distribution is drawn; with fewer, those of jobs that are less alike are taken."""
KEEP = 2000
_NUMBERS = re.compile(r"[-_.]?[0-9a-f]*[0-9][0-9a-f]*$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a job has in common with others: whose it is, its queue, its name without the numbers at its end, and its size."""

    owner: str = ""
    queue: str = ""
    prefix: str = ""
    size: float = 0.0

    def pools(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """The circles in which to look for run times, the narrowest first, each with what it goes by."""
        size = size_class(self.size)
        if self.owner and self.prefix:
            yield "name", (self.owner, self.prefix)
        if self.owner:
            yield "owner", (self.owner, size)
        yield "queue", (self.queue, size)
        yield "size", (size,)
        yield "all", ()


def prefix_of(name: str) -> str:
    """A job's name without running numbers: `train-bert-0017` and `train-bert-18` are of one kind."""
    while (short := _NUMBERS.sub("", name)) != name and short:
        name = short
    return name


def size_class(size: float) -> str:
    """Sizes that are much alike: none, up to 1, 2, 4, 8 and so on."""
    if size <= 0:
        return "0"
    most = 1
    while size > most:
        most *= 2
    return str(most)


class RunTimes:
    """Run times of jobs that ended, in seconds, by everything that they have in common with others."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, tuple[str, ...]], list[float]] = {}
        self.count = 0

    def add(self, like: Likeness, seconds: float) -> None:
        """A job ended after so long."""
        self.count += 1
        for pool in like.pools():
            known = self._pools.setdefault(pool, [])
            insort(known, seconds)
            if len(known) > KEEP:
                del known[self.count % len(known)]

    def draw(self, like: Likeness, ran: float, chance: Random) -> tuple[float, str]:
        """(a run time of a job that has run for `ran` seconds already, what it goes by).

        One that has outlasted all that are known runs for as long again, give or take.
        """
        for name, key in like.pools():
            known = self._pools.get((name, key), ())
            first = bisect_right(known, ran)
            if len(known) - first >= (ENOUGH if name != "all" else 1) or (len(known) >= ENOUGH and first < len(known)):
                return known[chance.randrange(first, len(known))], name
        return ran + max(ran, 60.0) * chance.expovariate(1.0), ""
