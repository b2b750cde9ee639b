"""Who may be evicted so that a queue gets what it deserves."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.framework.plugin import EvictionKind
from scheduler.model.queues import QueueInfo
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.plugins.capacity.standings import ROOT, Standing, Standings
from scheduler.plugins.holdings import Terms

Tally = dict[str, list[int]]
"""What each queue still holds while victims are counted off."""


class Reclaim:
    """The rules of reclaiming over the standings of one session. `level`: how many ancestors have a say."""

    def __init__(self, standings: Standings, terms: Terms, level: int) -> None:
        self._standings, self._terms, self._level = standings, terms, level

    def may_start(self, queue: QueueInfo, tasks: Sequence[TaskInfo]) -> bool:
        """Whether a queue may take for some tasks: all are within what it may have, and in some dimension within deserved."""
        at = self._standings[queue.name]
        terms = self._terms.together(tasks)
        if not queue.is_open or any(at.left[place] < amount for place, amount in terms):
            return False
        return any(
            int(each.held[place]) + amount <= each.deserves[place]
            for each in (at, *self._near(at).values())
            for place, amount in terms
        )

    def victims(self, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Candidates, in their order, whose queue holds more than it deserves and keeps its guarantee without them."""
        mine = self._standings.get(reclaimer.job.queue) if reclaimer.job is not None else None
        if mine is None:
            return []
        asked = {place for place, _ in self._terms(reclaimer.cls)}
        tally: Tally = {}
        found = []
        for task in candidates:
            at = self._standings.get(task.job.queue) if task.job is not None else None
            if at is None or not any(place in asked for place, _ in self._terms(task.cls)):
                continue
            if self._spared(mine, at, reclaimer.cls, task.cls) or not self._exceeds(at, task.cls, tally):
                continue
            nearby = self._ancestors(mine, at)
            if all(self._has_too_much(each, task.cls, tally) for each in nearby):
                for each in (at, *nearby):
                    _count_off(each, task.cls, tally)
                found.append(task)
        return found

    def unified(self, kind: EvictionKind, candidates: Sequence[TaskInfo]) -> Sequence[TaskInfo]:
        """The same for a whole gang, by the victims' own queues alone; within a queue capacity has no objection."""
        if kind is EvictionKind.PREEMPT:
            return candidates
        tally: Tally = {}
        found = []
        for task in candidates:
            at = self._standings.get(task.job.queue) if task.job is not None else None
            if at is not None and self._exceeds(at, task.cls, tally):
                _count_off(at, task.cls, tally)
                found.append(task)
        return found

    def _exceeds(self, at: Standing, cls: TaskClass, tally: Tally) -> bool:
        """Whether the queue itself can lose a task: its guarantee is kept, and it has too much of what the task holds."""
        held = _held(at, tally)
        guarantee = zip(at.queue.guarantee.values.tolist(), held, cls.request.tolist())
        return all(least <= have - less for least, have, less in guarantee if least > 0) and self._has_too_much(at, cls, tally)

    def _has_too_much(self, at: Standing, cls: TaskClass, tally: Tally) -> bool:
        """Whether a queue deserves nothing of what the class asks, or holds more of something than it deserves."""
        if not at.cares(cls):
            return True
        held = _held(at, tally)
        return any(held[place] > at.deserves[place] for place, _ in self._terms(cls) if at.counts(place))

    # -- ancestors -------------------------------------------------------------------------------------------------------

    def _near(self, at: Standing) -> dict[int, Standing]:
        """Ancestors within the level by their distance, the root apart."""
        return {i: each for i, each in enumerate(at.above[: self._level], 1) if each.queue.name != ROOT}

    def _ancestors(self, mine: Standing, theirs: Standing) -> list[Standing]:
        """Ancestors of a victim's queue that must hold too much as well: those at whose level the reclaimer has another."""
        ours = self._near(mine)
        return [each for i, each in self._near(theirs).items() if ours.get(i) is not each]

    def _spared(self, mine: Standing, theirs: Standing, cls: TaskClass, victim: TaskClass) -> bool:
        """Two queues of one house that deserve nothing of their own do not take from each other."""
        if not self._level or theirs.cares(victim) or mine.cares(cls):
            return False
        return bool(set(self._near(mine).values()) & set(self._near(theirs).values()))


def _held(at: Standing, tally: Tally) -> list[int]:
    held = tally.get(at.queue.name)
    if held is None:
        held = tally[at.queue.name] = at.held.tolist()
    return held


def _count_off(at: Standing, cls: TaskClass, tally: Tally) -> None:
    tally[at.queue.name] = [have - less for have, less in zip(_held(at, tally), cls.request.tolist())]
