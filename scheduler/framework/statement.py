"""A statement: a plan whose steps act on the session at once, and can be kept or undone.

The journal holds runs of tasks. Every step has an inverse that only adds and subtracts integers, so statements may be
undone in any order, also beneath later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from scheduler.framework.plugin import Event
from scheduler.model.tasks import TaskInfo, TaskStatus

if TYPE_CHECKING:
    from scheduler.framework.session import Session


class Step(Enum):
    """What a step did with its tasks."""

    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a task is evicted: by which action, by the rule of which plugins, for whom (None: for nobody in particular).

    `proved`: no smaller set of victims would have done.
    """

    reason: str
    action: str = ""
    rule: str = ""
    preemptor: TaskInfo | None = None
    proved: bool = False


@dataclass(slots=True)
class Entry:
    """One step: tasks of one job and one class. `was`, `cause`: their status before an eviction, and why."""

    step: Step
    tasks: list[TaskInfo]
    was: TaskStatus = TaskStatus.PENDING
    cause: Cause | None = None


Saved = list[tuple[Step, list[TaskInfo], list[int]]]
"""Steps of a plan, each with its tasks and their rows."""


@dataclass(slots=True, eq=False)
class Statement:
    """The journal of one plan. Neither committed nor discarded, it holds its reservations until the session ends."""

    ssn: Session
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ssn.statements[id(self)] = self

    def __bool__(self) -> bool:
        return bool(self.entries)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def allocate(self, tasks: Sequence[TaskInfo], rows: Sequence[int]) -> bool:
        """Give pending tasks of one job and class room that is idle, one row each; False when a plugin refused it."""
        return self._put(Step.ALLOCATE, TaskStatus.ALLOCATED, list(tasks), rows)

    def pipeline(self, tasks: Sequence[TaskInfo], rows: Sequence[int]) -> bool:
        """Reserve for pending tasks of one job and class what is being released, one row each; False: it was refused."""
        return self._put(Step.PIPELINE, TaskStatus.PIPELINED, list(tasks), rows)

    def evict(self, task: TaskInfo, cause: Cause) -> None:
        """Take a task's node away: what it holds is being released from here on."""
        was, row, nodes = task.status, task.node, self.ssn.nodes
        nodes.withdraw([task])
        _set_status([task], TaskStatus.RELEASING)
        nodes.place([task], [row])
        nodes.unlist([task])
        self.entries.append(Entry(Step.EVICT, [task], was, cause))
        self.ssn.deallocated(_event([task]))

    def spare(self, task: TaskInfo) -> Cause:
        """Take the eviction of a task back, whatever was done since; why it had been evicted. Raises StopIteration."""
        entry = next(entry for entry in self.entries if entry.step is Step.EVICT and entry.tasks[0] is task)
        self.entries.remove(entry)
        self._restore(entry)
        assert entry.cause is not None
        return entry.cause

    @contextmanager
    def lifted(self, task: TaskInfo) -> Iterator[int]:
        """Take one pipelined task off its row (which this yields) for as long as something is looked at there."""
        row = task.node
        self._take_back([task])
        try:
            yield row
        finally:
            _set_status([task], TaskStatus.PIPELINED)
            self.ssn.nodes.place([task], [row])
            self.ssn.allocated(_event([task]))

    def unpipeline_best_effort(self) -> None:
        """Take back what it pipelined of tasks that ask for nothing (reference 7.3: backfill gives them a node)."""
        for entry in [e for e in self.entries if e.step is Step.PIPELINE and e.tasks[0].cls.best_effort]:
            self.entries.remove(entry)
            self._take_back(entry.tasks)
        if not self.entries:
            self.ssn.statements.pop(id(self), None)

    def absorb(self, other: Statement) -> None:
        """Take over what another statement did."""
        self.entries += other.entries
        other.entries = []
        self.ssn.statements.pop(id(other), None)

    def evicted(self) -> list[TaskInfo]:
        """The tasks that it evicts, in that order."""
        return [task for entry in self.entries if entry.step is Step.EVICT for task in entry.tasks]

    def pipelined(self) -> list[TaskInfo]:
        """The tasks that it pipelines, in that order."""
        return [task for entry in self.entries if entry.step is Step.PIPELINE for task in entry.tasks]

    def _put(self, step: Step, status: TaskStatus, tasks: list[TaskInfo], rows: Sequence[int]) -> bool:
        _set_status(tasks, status)
        self.ssn.nodes.place(tasks, rows)
        event = _event(tasks)
        self.ssn.allocated(event)
        if event.refused:
            self._take_back(tasks)
            return False
        self.entries.append(Entry(step, tasks))
        return True

    # -- plans: what was done, to be undone and done again --------------------------------------------------------------

    def saved(self) -> Saved:
        """What it placed, to be done again by `replay` after it was discarded."""
        placed = (entry for entry in self.entries if entry.step is not Step.EVICT)
        return [(entry.step, entry.tasks, [task.node for task in entry.tasks]) for entry in placed]

    def replay(self, saved: Saved) -> None:
        """Do again what was saved. The rows must be free as they were then."""
        for step, tasks, rows in saved:
            (self.allocate if step is Step.ALLOCATE else self.pipeline)(tasks, rows)

    # -- the end -------------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Keep it: allocated tasks go to the binder, evicted ones to the evictor. Pipelined ones stay reserved."""
        for entry in self.entries:
            if entry.step is Step.ALLOCATE:
                _set_status(entry.tasks, TaskStatus.BINDING)
                self.ssn.bind(entry.tasks)
            elif entry.step is Step.EVICT:
                assert entry.cause is not None
                self.ssn.evictions.extend((task, entry.cause) for task in entry.tasks)
        self.entries = [entry for entry in self.entries if entry.step is Step.PIPELINE]
        if not self.entries:
            self.ssn.statements.pop(id(self), None)

    def discard(self) -> None:
        """Undo it, last step first."""
        for entry in reversed(self.entries):
            if entry.step is Step.EVICT:
                self._restore(entry)
            else:
                self._take_back(entry.tasks)
                if entry.step is Step.ALLOCATE:
                    self.ssn.schedulable.update(task.uid for task in entry.tasks)
        self.entries = []
        self.ssn.statements.pop(id(self), None)

    def _take_back(self, tasks: list[TaskInfo]) -> None:
        self.ssn.nodes.withdraw(tasks)
        _set_status(tasks, TaskStatus.PENDING)
        for task in tasks:
            task.let_go()
        self.ssn.deallocated(_event(tasks))

    def _restore(self, entry: Entry) -> None:
        rows = [task.node for task in entry.tasks]
        nodes = self.ssn.nodes
        nodes.relist(entry.tasks)
        nodes.withdraw(entry.tasks)
        _set_status(entry.tasks, entry.was)
        nodes.place(entry.tasks, rows)
        self.ssn.allocated(_event(entry.tasks))


def _set_status(tasks: list[TaskInfo], status: TaskStatus) -> None:
    job = tasks[0].job
    if job is not None:
        job.move(tasks, status)
    else:
        for task in tasks:
            task.status = status


def _event(tasks: Sequence[TaskInfo]) -> Event:
    return Event(tasks[0].job, tasks, tasks[0].cls.request * len(tasks))
