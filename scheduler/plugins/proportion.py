"""proportion: the cluster is divided among queues by weight, within what each asks for, may have and is guaranteed.

Only queues that have jobs are divided among; an idle queue lends everything but its guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import UNLIMITED, Answer, Event, Vote
from scheduler.framework.record import QueueShare
from scheduler.framework.registry import plugin
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import EPSILON, Floats, Ints, is_empty, less_equal, positive
from scheduler.model.roster import Holdings
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.plugins.holdings import Terms, guaranteed, real_capability

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


class _Standing:
    """One queue in this session: what it may have at most (`real`), holds, asks, has admitted, and deserves.

    `elastic` is what its jobs hold beyond their minimum, which can be reclaimed.
    """

    def __init__(self, queue: QueueInfo, real: Ints, sums: Holdings) -> None:
        self.queue, self.real = queue, real
        self.allocated, self.request, self.inqueue, self.elastic = sums.allocated, sums.request, sums.inqueue, sums.elastic
        self.deserve(np.zeros(len(real)))

    def deserve(self, deserved: Floats) -> None:
        """Set what the queue deserves. Amounts are whole, so they keep within it as they keep within its floor.

        What rounding took off a whole number (9,999.999… of 10,000) is given back, or a gang of exactly its share
        would wait for ever.
        """
        self.deserved = deserved
        self.ceiling: Ints = np.floor(deserved + EPSILON).astype(np.int64)
        self._deserved: list[float] = deserved.tolist()
        self._ceiling: list[int] = self.ceiling.tolist()
        self._spare: list[int] | None = None
        self._changed()

    def take(self, amount: Ints) -> None:
        """More (or, negative, less) is held."""
        self.allocated = self.allocated + amount
        self._changed()

    def admit(self, amount: Ints) -> None:
        """More is admitted."""
        self.inqueue = self.inqueue + amount
        self._spare = None

    @property
    def spare(self) -> list[int]:
        """What may still be admitted: real capability less what is held and admitted and must stay, a number a dimension."""
        if self._spare is None:
            self._spare = (self.real - (self.allocated + self.inqueue - self.elastic)).tolist()
        return self._spare

    def _changed(self) -> None:
        self._spare = None
        # Few dimensions are asked about very often: plain numbers are quicker here than arrays.
        self._held: list[int] = self.allocated.tolist()
        self._left: list[int] | None = None
        self._share: float | None = None

    @property
    def share(self) -> float:
        """The largest part of anything deserved that is held."""
        if self._share is None:
            self._share = max((held / most for held, most in zip(self._held, self._deserved) if most >= EPSILON), default=0.0)
        return self._share

    @property
    def overused(self) -> bool:
        """Whether nothing deserved is left in any dimension."""
        return all(most < held + EPSILON for held, most in zip(self._held, self._deserved))

    @property
    def left(self) -> list[int]:
        """What may still be taken, a number a dimension; negative where more is held than deserved."""
        if self._left is None:
            self._left = [most - held for held, most in zip(self._held, self._ceiling)]
        return self._left


def water_fill(total: Floats, weights: Ints, real: Ints, request: Ints, guarantee: Ints) -> Floats:
    """What each queue deserves of `total` `[dimensions]`; the others are a row a queue, `weights` a number a queue.

    Rounds: what remains is given by weight to those who are not content, cut to their real capability and request,
    raised to their guarantee; what was cut off remains for the next round.
    """
    deserved: Floats = np.zeros(request.shape)
    hungry = np.ones(len(weights), np.bool_)
    remaining = total
    while (weight := int(weights[hungry].sum())) > 0:
        before = deserved[hungry]
        after = before + remaining * (weights[hungry] / weight)[:, np.newaxis]
        after = np.maximum(np.minimum(np.minimum(after, real[hungry]), request[hungry]), guarantee[hungry])
        deserved[hungry] = after
        content = (request[hungry] < after + EPSILON).all(axis=1) | (after == before).all(axis=1)
        change = after - before
        given, returned = np.maximum(change, 0).sum(axis=0), np.maximum(-change, 0).sum(axis=0)
        left = np.maximum(remaining + returned - given, 0)
        hungry[np.flatnonzero(hungry)[content]] = False
        if is_empty(left) or bool((left == remaining).all()):
            break
        remaining = left
    return deserved


@plugin
class Proportion:
    """Flat fair shares of queues by weight."""

    name: ClassVar[str] = "proportion"
    _ssn: Session
    _standings: dict[str, _Standing]

    def __init__(self, arguments: Arguments) -> None:
        """proportion has no arguments."""
        self._terms = Terms()

    def on_session_open(self, ssn: Session) -> None:
        self._ssn = ssn
        width = ssn.dims.width
        lendable = positive(ssn.total.values - guaranteed(ssn.queues.values(), width))
        busy = sorted((queue for queue in ssn.queues.values() if queue.jobs), key=lambda queue: (queue.creation, queue.name))
        self._standings = {
            queue.name: _Standing(queue, real_capability(queue, lendable), ssn.roster.holdings(queue.name)) for queue in busy
        }
        self._divide(list(self._standings.values()))
        ssn.add_queue_order(self.name, lambda queue: (-queue.priority, self.share(queue)))
        ssn.add_overused(self.name, self.overused)
        ssn.add_allocatable(self.name, self.room, self.refusal)
        ssn.add_preemptive(self.name, self.may_take)
        ssn.add_reclaimable(self.name, self.victims, spares=self.spares)
        ssn.add_enqueueable(self.name, self.admits)
        ssn.add_enqueued(self.name, self.charge)
        ssn.add_handlers(self._allocated, self._deallocated)

    def _divide(self, standings: list[_Standing]) -> None:
        if not standings:
            return
        deserved = water_fill(
            self._ssn.total.values.astype(np.float64),
            np.array([standing.queue.weight for standing in standings], np.int64),
            np.array([standing.real for standing in standings]),
            np.array([standing.request for standing in standings]),
            np.array([standing.queue.guarantee.values for standing in standings]),
        )
        for standing, amount in zip(standings, deserved):
            standing.deserve(amount)

    def on_session_close(self, ssn: Session) -> None:
        """Say how every queue stands; one without jobs holds nothing and deserves nothing now."""
        units = ssn.dims.units
        for name in ssn.queues:
            at = self._standings.get(name)
            ssn.queue_shares[name] = (
                QueueShare(at.share, units(at.allocated), units(at.ceiling), units(at.request), units(at.inqueue), units(at.real))
                if at is not None
                else QueueShare()
            )

    # -- shares --------------------------------------------------------------------------------------------------------

    def share(self, queue: QueueInfo) -> float:
        """A queue's share of what it deserves; 0 without jobs."""
        standing = self._standings.get(queue.name)
        return standing.share if standing is not None else 0.0

    def overused(self, queue: QueueInfo) -> Verdict | None:
        """Nothing deserved is left in any dimension; one dimension above deserved alone is not overuse."""
        at = self._standings.get(queue.name)
        if at is None or not at.overused:
            return None
        place = int(np.argmax(at.allocated - at.deserved))
        held, limit = int(at.allocated[place]), int(at.ceiling[place])
        resource = self._ssn.dims.names[place] if place < len(self._ssn.dims.names) else ""
        return Verdict(
            Stage.QUEUE_LIMIT, Code.QUEUE_OVERUSED, queue.name, resource=resource, free=max(limit - held, 0), limit=limit
        )

    # -- taking ----------------------------------------------------------------------------------------------------------

    def room(self, queue: QueueInfo, cls: TaskClass) -> int:
        """How many more tasks of the class keep the queue within deserved on every dimension that they ask for."""
        at = self._standings.get(queue.name)
        if at is None or not queue.is_open:
            return 0
        left = at.left
        return max(0, min((left[place] // amount for place, amount in self._terms(cls)), default=UNLIMITED))

    def may_take(self, queue: QueueInfo, tasks: Sequence[TaskInfo]) -> bool:
        """Whether the queue stays within deserved with all of the tasks."""
        at = self._standings.get(queue.name)
        return at is not None and queue.is_open and all(amount <= at.left[place] for place, amount in self._terms.together(tasks))

    def refusal(self, queue: QueueInfo, cls: TaskClass) -> Verdict:
        """The dimension that leaves no room: the queue's own limit where that is what it deserves, else its fair share."""
        at = self._standings.get(queue.name)
        if at is None or not queue.is_open:
            return Verdict(Stage.QUEUE_LIMIT, Code.QUEUE_CLOSED, queue.name)
        place, asked = min(self._terms(cls), key=lambda term: at.left[term[0]] - term[1])
        free, limit = at.left[place], int(at.ceiling[place])
        code = Code.QUEUE_CAPABILITY if limit >= at.real[place] else Code.QUEUE_DESERVED
        return self._short(Stage.QUEUE_LIMIT, code, queue.name, place, asked, free, limit)

    def _short(self, stage: Stage, code: Code, queue: str, place: int, asked: int, free: int, limit: int) -> Verdict:
        name = self._ssn.dims.names[place]
        return Verdict(stage, code, queue, resource=name, asked=asked, free=max(free, 0), short=asked - free, limit=limit)

    def victims(self, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Candidates, in their order, of queues that still hold more than they deserve in some dimension."""
        tally: dict[str, Ints] = {}
        found = []
        for task in candidates:
            at = self._standings.get(task.job.queue) if task.job is not None else None
            if at is None:
                continue
            held = tally.setdefault(at.queue.name, at.allocated)
            if not less_equal(held, at.deserved):
                tally[at.queue.name] = held - task.request
                found.append(task)
        return found

    def spares(self, job: JobInfo) -> bool:
        """Whether `victims` offers no task of the job: its queue holds no more than it deserves."""
        at = self._standings.get(job.queue)
        return at is None or less_equal(at.allocated, at.deserved)

    # -- admission -------------------------------------------------------------------------------------------------------

    def admits(self, job: JobInfo) -> Answer:
        """Whether minResources fits below the queue's real capability, beside what is held and admitted and must stay."""
        at = self._standings[job.queue]
        if not at.queue.is_open:
            return Verdict(Stage.ADMISSION, Code.QUEUE_CLOSED, job.queue)
        if job.min_resources is None:
            return Vote.PERMIT
        spare = at.spare
        over = [(place, asked) for place, asked in job.min_resources.terms if asked > spare[place]]
        if not over:
            return Vote.PERMIT
        # What no waiting mends is said first.
        place, asked = next(((place, asked) for place, asked in over if asked > at.real[place]), over[0])
        return self._short(Stage.ADMISSION, Code.QUEUE_CAPABILITY, job.queue, place, asked, spare[place], int(at.real[place]))

    def charge(self, job: JobInfo) -> None:
        """The job was admitted."""
        if job.min_resources is not None and job.impossible is None:
            at = self._standings[job.queue]
            at.admit(job.enqueue_charge())

    # -- events ----------------------------------------------------------------------------------------------------------

    def _allocated(self, event: Event) -> None:
        at = self._standings.get(event.job.queue) if event.job is not None else None
        if at is not None:
            at.take(event.total)

    def _deallocated(self, event: Event) -> None:
        at = self._standings.get(event.job.queue) if event.job is not None else None
        if at is not None:
            at.take(-event.total)
