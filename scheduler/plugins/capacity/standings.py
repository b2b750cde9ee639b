"""How queues stand under capacity: what each may have, deserves and holds, alone or as nodes of a tree.

In a tree an inner queue holds what its leaves hold; limits are worked out from the root downwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import QueueShare
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import CPU, MEMORY, PODS, Amounts, Dimensions, Ints, Mask, positive
from scheduler.model.roster import Holdings, Roster
from scheduler.model.tasks import TaskClass
from scheduler.plugins.holdings import OPEN_ENDED, guaranteed, limits, real_capability

ROOT = "root"
_ENDED = frozenset({"Completed"})


@dataclass(slots=True, eq=False)
class Standing:
    """One queue. `above` are its ancestors, the nearest first; `real` is the most that it may ever have.

    `deserved` counts on the dimensions that it names (`named`); a queue that deserves nothing is served best-effort.
    Amounts are plain lists where they are asked about often.
    """

    queue: QueueInfo
    sums: Holdings
    deserved: Ints
    named: Mask
    real: Ints
    above: tuple[Standing, ...] = ()
    below: list[Standing] = field(default_factory=list)
    deserves: list[int] = field(init=False)
    is_best_effort: bool = field(init=False)
    _share: float | None = None
    _left: list[int] | None = None

    def __post_init__(self) -> None:
        self.set_deserved(self.deserved, self.named)

    def set_deserved(self, deserved: Ints, named: Mask) -> None:
        """What the queue deserves, on the dimensions that it names."""
        self.deserved, self.named = deserved, named
        self.deserves = deserved.tolist()
        self.is_best_effort = not any(amount for place, amount in enumerate(self.deserves) if place != PODS)
        self._share = None

    @property
    def is_leaf(self) -> bool:
        """Whether jobs may be in the queue."""
        return not self.below

    @property
    def path(self) -> tuple[Standing, ...]:
        """The queue and its ancestors, itself first."""
        return (self, *self.above)

    @property
    def held(self) -> Ints:
        """What its jobs hold."""
        return self.sums.allocated

    def take(self, amount: Ints) -> None:
        """More (or, negative, less) is held, here and in every ancestor."""
        for at in self.path:
            at.sums.allocated = at.sums.allocated + amount
            at._share = at._left = None

    def admit(self, charge: Ints) -> None:
        """More was admitted, here and in every ancestor."""
        for at in self.path:
            at.sums.inqueue = at.sums.inqueue + charge

    @property
    def share(self) -> float:
        """The largest part of anything deserved that is held; 1 for a queue that deserves nothing."""
        if self._share is None:
            pairs = zip(self.held.tolist(), self.deserves)
            part = max((held / most for held, most in pairs if most > 0), default=0.0)
            self._share = 1.0 if self.is_best_effort else part
        return self._share

    @property
    def order(self) -> tuple[float, bool]:
        """Where the queue stands among its siblings: who deserves something first among equals."""
        return (self.share, self.is_best_effort)

    @property
    def left(self) -> list[int]:
        """What may still be taken of each dimension; negative where more is held than may be."""
        if self._left is None:
            self._left = (self.real - self.held).tolist()
        return self._left

    def counts(self, place: int) -> bool:
        """Whether a dimension can be held beyond what is deserved: cpu and memory when some is, others when named."""
        return self.deserves[place] > 0 if place in (CPU, MEMORY) else bool(self.named[place])

    def cares(self, cls: TaskClass) -> bool:
        """Whether a class asks for anything that the queue deserves, its one pod included."""
        return bool(((cls.request > 0) & (self.deserved > 0)).any())

    def told(self, dims: Dimensions) -> QueueShare:
        """The standing as pages show it; what is unlimited is not named among the limits."""
        sums, units = self.sums, dims.units
        limit = units(np.where(self.real < OPEN_ENDED, self.real, 0))
        share = 0.0 if self.is_best_effort else self.share
        return QueueShare(share, units(sums.allocated), units(self.deserved), units(sums.request), units(sums.inqueue), limit)


Standings = dict[str, Standing]


def flat(queues: Mapping[str, QueueInfo], roster: Roster, total: Amounts) -> Standings:
    """Every queue by itself: deserved is cut to what the queue may have and raised to its guarantee."""
    width = len(total.values)
    lendable = positive(total.values - guaranteed(queues.values(), width))
    known = total.present.copy()
    known[[CPU, MEMORY]] = True
    for queue in queues.values():
        known |= queue.guarantee.present
    found = {}
    for queue in queues.values():
        real = real_capability(queue, lendable)
        deserved = np.where(known, np.minimum(queue.deserved.values, real), queue.deserved.values)
        found[queue.name] = _standing(queue, deserved, real, roster.holdings(queue.name))
    return found


def tree(queues: Mapping[str, QueueInfo], roster: Roster, width: int) -> Standings:
    """Queues as nodes below the root. They must be without fault (`fault_of`).

    From the root down: a child may have what its parent may have and no sibling is guaranteed, within its own capability;
    dimensions that its capability leaves open are the parent's. The root is unlimited where it names no limit.
    """
    found: Standings = {}
    for queue in queues.values():
        _node(queue, queues, found, roster, width)
    root = found[ROOT]
    root.real = limits(root.queue.capability)
    capability = {ROOT: root.real}
    for at in _downwards(root):
        held_back = guaranteed([child.queue for child in at.below], width)
        for child in at.below:
            own = limits(child.queue.capability)
            own = capability[child.queue.name] = np.where(own >= OPEN_ENDED, capability[at.queue.name], own)
            free = np.where(at.real >= OPEN_ENDED, at.real, positive(at.real - held_back) + child.queue.guarantee.values)
            child.real = np.minimum(free, own)
    _sum_up(root)
    return found


def _node(queue: QueueInfo, queues: Mapping[str, QueueInfo], found: Standings, roster: Roster, width: int) -> Standing:
    at = found.get(queue.name)
    if at is None:
        at = _standing(queue, queue.deserved.values, np.zeros(width, np.int64), roster.holdings(queue.name))
        if queue.name != ROOT:
            parent = _node(queues[queue.parent or ROOT], queues, found, roster, width)
            parent.below.append(at)
            at.above = parent.path
        found[queue.name] = at
    return at


def _standing(queue: QueueInfo, deserved: Ints, real: Ints, sums: Holdings) -> Standing:
    deserved = np.minimum(np.maximum(deserved, queue.guarantee.values), OPEN_ENDED)
    return Standing(queue, sums, deserved, queue.deserved.present | queue.guarantee.present, real)


def _downwards(root: Standing) -> Iterator[Standing]:
    waiting = [root]
    while waiting:
        at = waiting.pop()
        yield at
        waiting.extend(at.below)


def _sum_up(root: Standing) -> None:
    """Add what leaves hold to their ancestors; the root deserves what its children do."""
    width = len(root.real)
    for at in list(_downwards(root))[::-1]:
        for child in at.below:
            at.sums.add(child.sums)
    deserved = [0] * width
    named = np.zeros(width, np.bool_)
    for child in root.below:
        deserved = [min(have + more, OPEN_ENDED) for have, more in zip(deserved, child.deserves, strict=True)]
        named |= child.named
    root.set_deserved(np.array(deserved, np.int64), named)


# -- faults of a tree ------------------------------------------------------------------------------------------------------


def fault_of(queues: Mapping[str, QueueInfo]) -> Verdict | None:
    """What is wrong with a tree of queues, by the first queue (by name) that shows it; such a tree schedules nothing."""
    if ROOT not in queues:
        return _fault(Code.QUEUE_PARENT_MISSING, ROOT)
    inner = set()
    for name in sorted(queues):
        if name == ROOT:
            continue
        parent = queues[name].parent or ROOT
        if parent not in queues:
            return _fault(Code.QUEUE_PARENT_MISSING, name)
        inner.add(parent)
    for name in sorted(queues):
        if _is_on_cycle(name, queues):
            return _fault(Code.QUEUE_CYCLE, name)
    for name in sorted(inner):
        if any(_is_alive(job) for job in queues[name].jobs.values()):
            return _fault(Code.QUEUE_NOT_LEAF, name)
    return None


def _is_on_cycle(name: str, queues: Mapping[str, QueueInfo]) -> bool:
    seen = set[str]()
    at = name
    while at != ROOT and at not in seen:
        seen.add(at)
        at = queues[at].parent or ROOT
        if at == name:
            return True
    return False


def _is_alive(job: JobInfo) -> bool:
    """A job that ended asks for nothing any more, wherever it is."""
    return job.phase not in _ENDED


def _fault(code: Code, queue: str) -> Verdict:
    return Verdict(Stage.ADMISSION, code, queue)
