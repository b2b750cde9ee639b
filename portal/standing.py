"""How things stand at one moment: the headline and the queues' lines, from one reading of the fleet and one of who waits.

The overview and its live topic show both beside each other, so neither is read apart from the other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from cluster import queries as fleet_queries
from portal import figures
from queues import queries as queue_queries
from queues.models import Queue
from queues.queries import Bar
from queues.tree import ROOT


@dataclass(frozen=True, slots=True)
class Line:
    """One queue that holds jobs: its bar of GPUs and the jobs in it that wait. Amounts are in thousandths of a GPU."""

    queue: Queue
    bar: Bar
    waiting: int

    @property
    def live(self) -> list[int]:
        """What of it moves: allocated, deserved, admitted, waiting."""
        return [self.bar.allocated, self.bar.deserved, self.bar.admitted, self.waiting]


@dataclass(frozen=True, slots=True)
class Standing:
    """One moment, for one user."""

    figures: figures.Headline
    lines: list[Line]
    waits: list[figures.Wait]
    gpu: str

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, as the live topic `overview` carries it; a queue with nothing in any column is left out."""
        return {"figures": self.figures.as_dict(), "lines": {each.queue.name: each.live for each in self.lines if any(each.live)}}


def standing(user: Any, fleet: fleet_queries.Fleet | None = None, queues: list[Queue] | None = None) -> Standing:
    """How things stand now; a fleet and queues that were read already are not read again."""
    fleet = fleet or fleet_queries.fleet(user)
    queues = queue_queries.queues(user) if queues is None else queues
    capacity = queue_queries.capacity()
    gpu = queue_queries.main_gpu(capacity)
    waits = figures.waits(user)
    held, waiting = held_by_queue(fleet), Counter[str]()
    for each in waits:
        waiting[each.queue] += each.jobs
    lines = []
    for branch in queue_queries.tree(queues, [gpu], capacity):
        if branch.parent or branch.queue.name == ROOT:
            continue
        bar, name = branch.bars[0], branch.queue.name
        here = held[name]
        lines.append(
            Line(branch.queue, replace(bar, allocated=here, admitted=here + bar.admitted - bar.allocated), waiting[name])
        )
    return Standing(figures.headline(user, fleet, waits), lines, waits, gpu)


def held_by_queue(fleet: fleet_queries.Fleet) -> Counter[str]:
    """Thousandths of GPUs that each queue's pods hold, of the very cards that the headline counts as in use."""
    held: Counter[str] = Counter()
    for strip in fleet.strips:
        for cell in strip.cells:
            if cell.is_in_use:
                for part in cell.parts:
                    held[part.holder.queue] += part.size
    return held
