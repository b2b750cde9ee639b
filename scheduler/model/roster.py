"""Which jobs take part in sessions, and what their queues hold: kept by the jobs that changed.

Whatever changes a job notes it (`JobInfo.touch`). A session looks at those jobs alone, so that 100,000 pods that just run
cost a cycle nothing. All amounts are whole, so what is added and taken off again leaves no trace: the sums are always
those of a fresh count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.resources import Ints, widened
from scheduler.model.tasks import TaskStatus

SETTLED = ("Running", "Completed")
"""Phases of gangs that have started: nobody is told any more what they lack."""
_SUMS, _ROWS = 5, 64


@dataclass(slots=True)
class Holdings:
    """What a queue's jobs hold, ask (held and pending), were admitted for without holding it yet, and could give back.

    `reserved` is what they were admitted for as overcommit counts it.
    """

    allocated: Ints
    request: Ints
    inqueue: Ints
    elastic: Ints
    reserved: Ints

    def add(self, other: Holdings) -> None:
        """Count another queue's in."""
        self.allocated = self.allocated + other.allocated
        self.request = self.request + other.request
        self.inqueue = self.inqueue + other.inqueue
        self.elastic = self.elastic + other.elastic
        self.reserved = self.reserved + other.reserved


class Roster:
    """Jobs by queue, and sums by queue.

    `jobs` are those of sessions, by uid: they have a PodGroup, and their queue is known; `strays` have none that is.
    `groupless` are known by their pods alone. `active` are the jobs for which a session may have to do something: all but
    those that started and have nothing pending; `divided` those that have parts. `queues` is the live table of queues;
    each one's `jobs` is kept here.
    """

    def __init__(self, queues: Mapping[str, QueueInfo], width: int) -> None:
        self.jobs: dict[str, JobInfo] = {}
        self.strays: dict[str, JobInfo] = {}
        self.groupless: dict[str, JobInfo] = {}
        self.active: dict[str, JobInfo] = {}
        self.divided: dict[str, JobInfo] = {}
        self._queues, self._width = queues, width
        self._touched: dict[JobInfo, None] = {}
        self._unsettled: dict[JobInfo, None] = {}
        self._unsaid: dict[JobInfo, None] = {}
        self._uncounted: dict[JobInfo, None] = {}
        self._members: defaultdict[str, dict[str, JobInfo]] = defaultdict(dict)
        self._seats: dict[JobInfo, str] = {}
        self._rows: dict[JobInfo, int] = {}
        self._counted_in: dict[JobInfo, str] = {}
        self._amounts: Ints = np.zeros((_ROWS, _SUMS, width), np.int64)
        self._free = list(range(_ROWS))[::-1]
        self._sums: dict[str, Ints] = {}

    @classmethod
    def of(cls, jobs: Iterable[JobInfo], queues: Mapping[str, QueueInfo], width: int) -> Roster:
        """A roster of some jobs."""
        found = cls(queues, width)
        for queue in queues.values():
            found.queue_came(queue)
        for job in jobs:
            found.take(job)
        found._take_in()
        return found

    # -- what comes and goes -------------------------------------------------------------------------------------------

    def take(self, job: JobInfo) -> None:
        """A new job: from here on it tells of its changes."""
        job.touched = self._touched
        job.touch()

    def queue_came(self, queue: QueueInfo) -> None:
        """A queue is known, in this version."""
        queue.jobs = self._members[queue.name]
        for job in self.strays.values():
            if job.queue == queue.name:
                job.touch()

    def queue_went(self, name: str) -> None:
        """A queue is not known any more."""
        for job in self._members[name].values():
            job.touch()
        self._forget_queue(name)

    def _forget_queue(self, name: str) -> None:
        """Keep nothing of a queue that is gone once the last of its jobs has left it."""
        if name not in self._queues and not self._members[name]:
            del self._members[name]

    def widen(self, width: int) -> None:
        """Follow a grown dimension table."""
        self._width = width
        self._amounts = widened(self._amounts, width)
        self._sums = {name: widened(sums, width) for name, sums in self._sums.items()}

    # -- who is where --------------------------------------------------------------------------------------------------

    def settle(self) -> list[JobInfo]:
        """Take in which jobs changed, and return all that did since the last time that this was asked."""
        self._take_in()
        changed = list(self._unsettled)
        self._unsettled.clear()
        return changed

    def _take_in(self) -> None:
        changed = dict(self._touched)
        self._touched.clear()
        for job in changed:
            self._seat(job)
        self._unsettled |= changed
        self._unsaid |= changed
        self._uncounted |= dict.fromkeys(job for job in changed if job in self._seats or job in self._rows)

    def _seat(self, job: JobInfo) -> None:
        uid, queue = job.uid, job.queue if job.obj else None
        known = queue is not None and queue in self._queues
        was = self._seats.get(job)
        if was is not None and (was != queue or not known):
            del self._seats[job]
            _put(self._members[was], job, False)
            _put(self.jobs, job, False)
            self._forget_queue(was)
        if queue is not None and known and was != queue:
            self._seats[job] = queue
            self._members[queue][uid] = self.jobs[uid] = job
        _put(self.strays, job, queue is not None and not known)
        _put(self.groupless, job, not job.obj and bool(job.tasks))
        _put(self.active, job, known and not (job.phase in SETTLED and not job.by_status[TaskStatus.PENDING]))
        _put(self.divided, job, known and job.parts is not None)

    def unsaid(self) -> list[JobInfo]:
        """Jobs that changed since `heard`, those that are gone among them."""
        return list(self._unsaid | self._touched)

    def heard(self) -> None:
        """Everything was said of the jobs as they are now."""
        self._unsaid.clear()

    # -- what queues hold ----------------------------------------------------------------------------------------------

    def holdings(self, queue: str) -> Holdings:
        """The sums over a queue's jobs as they are now."""
        self._count()
        sums = self._sums.get(queue)
        return Holdings(*(np.zeros((_SUMS, self._width), np.int64) if sums is None else sums.copy()))

    def reserved(self) -> Ints:
        """What all jobs of sessions were admitted for, as overcommit counts it."""
        self._count()
        total: Ints = np.zeros(self._width, np.int64)
        for sums in self._sums.values():
            total += sums[-1]
        return total

    def _count(self) -> None:
        """Bring the sums up to date: what changed jobs were counted with is taken off, what they are now put on."""
        if self._touched:
            self._take_in()
        if not self._uncounted:
            return
        jobs = list(self._uncounted)
        self._uncounted.clear()
        self._book([job for job in jobs if job in self._rows], -1)
        for job in jobs:
            queue = self._seats.get(job)
            if queue is not None:
                self._fill(job)
                self._counted_in[job] = queue
            elif job in self._rows:
                self._free.append(self._rows.pop(job))
                del self._counted_in[job]
        self._book([job for job in jobs if job in self._rows], 1)
        for name in self._sums.keys() - self._queues.keys():
            del self._sums[name]  # nothing is left in it: all its jobs have been taken off

    def _fill(self, job: JobInfo) -> None:
        row = self._rows.get(job)
        if row is None:
            row = self._rows[job] = self._new_row()
        amounts, inqueue = self._amounts[row], job.inqueue()
        reserved = job.inqueue_full() if job.phase == "Inqueue" else inqueue
        amounts[0], amounts[1], amounts[3] = job.allocated, job.requested, job.elastic()
        amounts[2] = 0 if inqueue is None else inqueue
        amounts[4] = 0 if reserved is None else reserved

    def _new_row(self) -> int:
        if not self._free:
            length = len(self._amounts)
            self._amounts = np.concatenate([self._amounts, np.zeros_like(self._amounts)])
            self._free = list(range(length, 2 * length))[::-1]
        return self._free.pop()

    def _book(self, jobs: list[JobInfo], sign: int) -> None:
        by_queue: defaultdict[str, list[int]] = defaultdict(list)
        for job in jobs:
            by_queue[self._counted_in[job]].append(self._rows[job])
        for queue, rows in by_queue.items():
            change = self._amounts[rows].sum(axis=0) * sign
            sums = self._sums.get(queue)
            self._sums[queue] = change if sums is None else sums + change


def _put(table: dict[str, JobInfo], job: JobInfo, there: bool) -> None:
    """Put a job into a table, or take it out; another one under its name stays."""
    if there:
        table[job.uid] = job
    elif table.get(job.uid) is job:
        del table[job.uid]
