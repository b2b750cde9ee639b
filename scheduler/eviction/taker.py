"""One job that takes room from others, task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from scheduler.eviction import starving
from scheduler.eviction.search import Plan, Search, Terms, fits, give_back
from scheduler.framework.explain import QUIET
from scheduler.framework.statement import Statement
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import NO_NODE, TaskClass, TaskInfo

if TYPE_CHECKING:
    from scheduler.framework.session import Session


MANY = 256
"""Counts that are kept."""


class Taker:
    """A job with its searches for nodes, a search for each class of its tasks. `barren`: the first found no place.

    `searches` may be shared by jobs among which the rules make no difference; they hold as long as plans are kept.
    """

    def __init__(
        self,
        ssn: Session,
        terms: Terms,
        job: JobInfo,
        *,
        allowed: Callable[[TaskInfo], bool] = lambda task: True,
        searches: dict[TaskClass, Search] | None = None,
    ) -> None:
        self._ssn, self._terms, self._job, self._allowed = ssn, terms, job, allowed
        self._searches = {} if searches is None else searches
        self.barren, self._untried = False, True

    def until_fed(self, tasks: list[TaskInfo]) -> bool:
        """Make room for tasks until the job starves no more; all of it is taken back unless the job can run then.

        Whether the job was given anything.
        """
        ssn, job, statement = self._ssn, self._job, Statement(self._ssn)
        for left, task in zip(range(len(tasks), 0, -1), tasks):
            if not ssn.job_starving(job) or self._is_vain(left):
                break
            self.place(statement, task)
        if not statement or not ssn.job_pipelined(job):
            tried = bool(statement)
            statement.discard()
            for search in self._searches.values() if tried else ():
                search.settle(kept=False)
            return False
        spared = give_back(ssn, statement, self._terms)
        for search in self._searches.values():
            search.look_again(spared)
            search.settle(kept=True)
        starving.commit(ssn, statement, job)
        return True

    def _is_vain(self, left: int) -> bool:
        """Whether the gang, which somebody holds to its minimum, could not run with so many tasks more."""
        job = self._job
        held = job.ready_count() + job.waiting_count() + job.pending_best_effort()
        return held + left < job.min_available and not self._ssn.job_pipelined(job)

    def spared(self, task: TaskInfo) -> Counter[str]:
        """For a task that found no place: how many pods each rule spares. Empty when it may not make others give way.

        Of jobs that wait in vain cycle after cycle they are counted anew only when they may be said anew.
        """
        search, kept = self._searches.get(task.cls), self._ssn.memo.setdefault("spared", {})
        if search is None:
            return Counter()
        alike = (self._terms.action, self._job.queue, self._job.priority, task.cls)
        at, counts = kept.get(alike, (-inf, Counter()))
        if not at <= self._ssn.now < at + QUIET:
            if len(kept) > MANY:
                kept.clear()
            at, counts = kept[alike] = (self._ssn.now, search.spared(task))
        found: Counter[str] = counts
        return found

    def place(self, statement: Statement, task: TaskInfo) -> bool:
        """Pipeline one task, evicting whom that takes."""
        ssn, terms = self._ssn, self._terms
        if not (starving.may_evict(task) and self._allowed(task)) or ssn.pre_predicate(task) is not None:
            return False
        plan = self._nominated(task)
        if plan is None and self._must_wait(task):
            return False
        search = self._searches.get(task.cls)
        if search is None or ssn.evaluator.is_contextual(task):
            search = self._searches[task.cls] = Search(ssn, terms, task)
        first, self._untried = self._untried, False
        if plan is None:
            plan = search.best(task)
        if plan is None:
            self.barren |= first
            return False
        plan.carry_out(statement, task)
        for each in self._searches.values():
            each.carried_out(plan)
        return True

    def _nominated(self, task: TaskInfo) -> Plan | None:
        """The node whose victims left for this task already, if it fits there now or once they are gone."""
        ssn, row = self._ssn, self._ssn.nodes.index.get(task.nominated, NO_NODE)
        if row == NO_NODE or not fits(ssn, ssn.evaluator.standing(task.cls), task, row, asks_room=self._terms.asks_room):
            return None
        return Plan.free(row)

    def _must_wait(self, task: TaskInfo) -> bool:
        """Whether victims of this very task are still leaving its nominated node: more of them would be too many."""
        nodes = self._ssn.nodes
        row = nodes.index.get(task.nominated, NO_NODE)
        if row == NO_NODE or not self._ssn.evaluator.standing(task.cls).static_ok[row]:
            return False
        return any(starving.is_terminating_for(task, other) for other in nodes.tasks[row].values())
