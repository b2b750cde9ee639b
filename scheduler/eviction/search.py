"""The node on which room for a task costs least, and whom to evict there.

The cost of a node is the highest priority among its victims, then their number, then its index; a node that needs no
victims costs least of all. Each node has a lower bound in a heap: the cost as it was when last looked at, or as amounts
alone have it. As a job takes places, others only get dearer, so a bound is made exact only when it comes to the top.
What can make nodes cheaper is looked for by itself: room that came free in the preemptor's own queue, and a further
tier of plugins having its say once the one before it has no more victims to offer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.eviction.smallest import EXACT, smallest
from scheduler.framework.explain import Spared
from scheduler.framework.statement import Cause, Statement
from scheduler.framework.victims import Offer
from scheduler.model.nodes import Block
from scheduler.model.resources import Ints, Rows
from scheduler.model.tasks import TaskInfo

if TYPE_CHECKING:
    from scheduler.framework.session import Session
    from scheduler.placement.standing import Standing

Cost = tuple[Any, ...]

NOTHING = float("-inf")
"""The highest priority among no victims."""


def level(preemptor: TaskInfo, victim: TaskInfo) -> int:
    """The priority that a victim counts with: its job's, or among tasks of one job its own."""
    return victim.priority if victim.job is None or victim.job is preemptor.job else victim.job.priority


def fewest(preemptor: TaskInfo, victims: Sequence[TaskInfo]) -> Cost:
    """The cost of a set: its highest priority, then its size."""
    return (max((level(preemptor, victim) for victim in victims), default=NOTHING), len(victims))


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms an action makes room.

    `offer` asks the plugins; `exempt` says why a task is no candidate (empty: it is one; None: it is out of reach, and not
    even looked at); `asks_room`: the preemptor's queue must have room too; `across`: victims are of other queues. `cost`
    ranks the nodes; `bare`: a node that needs no victims will do as well. `rows` names the only nodes that can have
    victims, where that is known; `hosts` the only ones that can have candidates, others can do no more than need no victims.
    """

    action: str
    family: str
    offer: Callable[[TaskInfo, Sequence[TaskInfo]], Offer]
    exempt: Callable[[TaskInfo, TaskInfo], str | None]
    reason: Callable[[TaskInfo], str]
    asks_room: bool = False
    across: bool = False
    cost: Callable[[TaskInfo, Sequence[TaskInfo]], Cost] = fewest
    bare: bool = True
    rows: Callable[[TaskInfo], Iterable[int]] | None = None
    hosts: Callable[[TaskInfo], Iterable[int]] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Evict these on this row, and the task has its place there."""

    row: int
    victims: tuple[TaskInfo, ...]
    cost: Cost
    cause: Cause

    @classmethod
    def free(cls, row: int) -> Plan:
        """A place that needs no victims."""
        return cls(row, (), (NOTHING, 0), Cause("none"))

    def carry_out(self, statement: Statement, task: TaskInfo) -> None:
        """Evict and pipeline."""
        for victim in self.victims:
            statement.evict(victim, self.cause)
        statement.pipeline([task], [self.row])


def fits(ssn: Session, standing: Standing, task: TaskInfo, row: int, *, asks_room: bool) -> bool:
    """Whether the task could be pipelined on the row as things are: amounts, checks and, if so said, its queue's room."""
    assert task.job is not None
    if asks_room and ssn.room(ssn.queues[task.job.queue], task.cls) <= 0:
        return False
    evaluator = ssn.evaluator
    if not evaluator.views(standing, Block(ssn.nodes, np.array([row]))).future[0]:
        return False
    if evaluator.is_contextual(task):
        open_ = np.zeros(ssn.nodes.rows, np.bool_)
        open_[row] = True
        evaluator.task_refusals(task, open_)
        return bool(open_[row])
    return True


class Search:
    """Nodes for tasks of one class of one job, cheapest first. Whatever it returns must be carried out, or be the last."""

    def __init__(self, ssn: Session, terms: Terms, task: TaskInfo) -> None:
        """Look at all rows, or at those that the terms name for the task."""
        assert task.job is not None
        self._ssn, self._terms, self._cls = ssn, terms, task.cls
        self._task, self._queue = task, ssn.queues[task.job.queue]
        self._standing = ssn.evaluator.standing(task.cls)
        self._tiers = ssn.victims.tiers(terms.family)
        self._tight = terms.asks_room and ssn.room(self._queue, task.cls) <= 0
        self._touched: set[int] = set()
        self._bounds: dict[int, Cost] = {}
        self._current: dict[int, Cost] = {}
        self._heap: list[tuple[Cost, int]] = []
        self._bound_all(task)
        self._start_over()

    def _rows(self, task: TaskInfo) -> list[int]:
        """Rows that an eviction could help: static checks hold, and there is enough beside what is promised already."""
        nodes, cls = self._ssn.nodes, self._cls
        ok = self._standing.static_ok
        if self._terms.rows is not None:
            named = np.zeros(nodes.rows, np.bool_)
            named[list(self._terms.rows(task))] = True
            ok = ok & named
        ok = ok & (nodes.allocatable - nodes.pipelined >= cls.floor).all(axis=1)
        found: list[int] = np.flatnonzero(ok).tolist()
        return found

    def best(self, task: TaskInfo) -> Plan | None:
        """The cheapest plan for the task now; None when no eviction makes it fit."""
        while self._heap:
            cost, row = heappop(self._heap)
            if self._current.get(row) != cost:
                continue
            plan = self._plan(task, row)
            if plan is None:
                del self._current[row]
                continue
            self._put(row, plan.cost)
            if (plan.cost, row) <= self._heap[0]:
                return plan
        return None

    def carried_out(self, plan: Plan) -> None:
        """Look again at what the plan changed."""
        if self._tight and plan.victims:
            self._start_over()  # with more room in the queue, nodes may need fewer victims
        rows = {plan.row}
        if self._tiers > 1:
            for job in {victim.job for victim in plan.victims if victim.job is not None}:
                rows |= {other.node for other in job.tasks.values() if other.node in self._bounds}
        self.look_again(rows)

    def look_again(self, rows: Iterable[int]) -> None:
        """Take in that rows changed."""
        for row in rows:
            self._touched.add(row)
            self._bound(self._task, row)
            if row in self._bounds:
                self._put(row, self._bounds[row])
            else:
                self._current.pop(row, None)

    def settle(self, *, kept: bool) -> None:
        """What was carried out was kept for good, or taken back: then every bound is again what it was before."""
        if not kept:
            for row in self._touched:
                self._bound(self._task, row)
            self._start_over()
        self._touched.clear()

    def _start_over(self) -> None:
        self._current = dict(self._bounds)
        self._heap = [(cost, row) for row, cost in self._bounds.items()]
        heapify(self._heap)

    def _put(self, row: int, cost: Cost) -> None:
        self._current[row] = cost
        heappush(self._heap, (cost, row))

    # -- one node ------------------------------------------------------------------------------------------------------

    def _bound_all(self, task: TaskInfo) -> None:
        """The bound of every row; rows without candidates, which are most of a large cluster, are looked at all at once."""
        rows, named = self._rows(task), self._hosts(task)
        if named is None:
            with_candidates = rows
        else:
            with_candidates = [row for row in rows if row in named]
            bare = np.array([row for row in rows if row not in named], np.intp)
            enough = ~self._lacking(bare).any(axis=1)
            self._bounds.update((row, (NOTHING, 0)) for row in bare[enough].tolist())
        for row in with_candidates:
            self._bound(task, row)

    def _hosts(self, task: TaskInfo) -> frozenset[int] | None:
        """The only rows that can have victims, by the terms and by what plugins say of whole jobs; None: any can."""
        terms = self._terms
        offering = self._ssn.victims.hosts(terms.family)
        if terms.hosts is None:
            return offering
        named = frozenset(terms.hosts(task))
        return named if offering is None else named & offering

    def _lacking(self, rows: Rows) -> Ints:
        """What must come free on each of some rows, of the compared dimensions."""
        nodes, at = self._ssn.nodes, np.ix_(rows, self._cls.compared)
        free = nodes.allocatable[at] - nodes.used[at] + nodes.releasing[at] - nodes.pipelined[at]
        need: Ints = np.maximum(self._cls.request[self._cls.compared] - free, 0)
        return need

    def _bound(self, task: TaskInfo, row: int) -> None:
        """What the row costs at least, as amounts have it."""
        self._bounds.pop(row, None)
        victims, need, _ = self._look(task, row)
        levels = [level(task, victim) for victim in victims]
        chosen = smallest(levels, self._frees(victims), need)
        if chosen is not None:
            self._bounds[row] = (max((levels[place] for place in chosen), default=NOTHING), len(chosen))

    def _plan(self, task: TaskInfo, row: int) -> Plan | None:
        victims, need, rule = self._look(task, row)
        levels = [level(task, victim) for victim in victims]
        trial = _Trial(self._ssn, self._standing, self._terms, task, row, victims)
        chosen = smallest(levels, self._frees(victims), need, trial.holds)
        if chosen is None or not (chosen or self._terms.bare):
            return None
        taken = tuple(victims[place] for place in chosen)
        terms = self._terms
        cause = Cause(terms.reason(task), terms.action, rule, task, len(victims) <= EXACT)
        return Plan(row, taken, terms.cost(task, taken), cause)

    def _look(self, task: TaskInfo, row: int) -> tuple[list[TaskInfo], Ints, str]:
        """Who may be evicted on the row, in order, what must come free of the compared dimensions, and by which rule.

        Those who hold something of what is lacking come first: plugins that count as they go are not to spend their
        count on others.
        """
        terms, need = self._terms, self._need(row)
        candidates = [other for other in self._ssn.nodes.tasks[row].values() if terms.exempt(task, other) == ""]
        if not candidates:
            return [], need, ""
        ordered = self._in_order(candidates, need)
        offer = terms.offer(task, ordered)
        return offer.victims, need, offer.rule

    def _need(self, row: int) -> Ints:
        """What must come free on the row, of the compared dimensions."""
        nodes, dims = self._ssn.nodes, self._cls.compared
        free = nodes.allocatable[row] - nodes.used[row] + nodes.releasing[row] - nodes.pipelined[row]
        need: Ints = np.maximum(self._cls.request[dims] - free[dims], 0)
        return need

    def _in_order(self, candidates: Sequence[TaskInfo], need: Ints) -> list[TaskInfo]:
        """Candidates as they should go: those who hold what is lacking first, then those who hold cards where cards are asked."""
        mine = self._cls
        lacking = mine.compared[need > 0]
        ranks = {
            cls: (not cls.request[lacking].any(), not ((mine.gpus and cls.gpus) or (mine.share and cls.share)))
            for cls in {other.cls for other in candidates}
        }
        ordered = self._ssn.victims.in_order(candidates, self._queue if self._terms.across else None)
        return sorted(ordered, key=lambda other: ranks[other.cls])

    def spared(self, task: TaskInfo) -> Counter[str]:
        """Of the pods on the rows where an eviction could help the task, how many each rule spares as things are."""
        ssn, terms, counts = self._ssn, self._terms, Counter[str]()
        hosts = None if terms.hosts is None else set(terms.hosts(task))
        for row in self._rows(task):
            if hosts is not None and row not in hosts:
                continue
            candidates = []
            for other in ssn.nodes.tasks[row].values():
                why = terms.exempt(task, other)
                if why:
                    counts[why] += 1
                elif why is not None:
                    candidates.append(other)
            rules = [self._sure_rule(other) for other in candidates]
            if all(rules):
                counts.update(rules)
            else:
                counts += self._rules(task, self._in_order(candidates, self._need(row)))
        return counts

    def _sure_rule(self, other: TaskInfo) -> str:
        """The rule that spares a task, where that is known of its whole job."""
        return self._ssn.victims.surely_spared_by(self._terms.family, other.job) if other.job is not None else ""

    def _rules(self, task: TaskInfo, ordered: Sequence[TaskInfo]) -> Counter[str]:
        terms, victims = self._terms, self._ssn.victims
        offered = {victim.uid for victim in terms.offer(task, ordered).victims}
        rules = victims.spared_by(terms.family, ordered, lambda plugin: plugin(task, ordered))
        return Counter(Spared.TOO_LITTLE if other.uid in offered else rules.get(other.uid, Spared.NO_RULE) for other in ordered)

    def _frees(self, victims: Sequence[TaskInfo]) -> Ints:
        dims: Rows = self._cls.compared
        if not victims:
            return np.zeros((0, len(dims)), np.int64)
        return np.array([victim.request[dims] for victim in victims])


class _Trial:
    """Whether a task fits on a row once some victims are gone, found out by evicting them and taking it back."""

    def __init__(
        self, ssn: Session, standing: Standing, terms: Terms, task: TaskInfo, row: int, victims: Sequence[TaskInfo]
    ) -> None:
        self._ssn, self._standing, self._terms, self._task, self._row = ssn, standing, terms, task, row
        self._victims = victims
        self._hopeless: bool | None = None

    def holds(self, places: Sequence[int]) -> bool:
        """Try a set. After the first that failed, all together are tried: if they do not help, nothing does."""
        if self._hopeless:
            return False
        if self._fits(places):
            return True
        if self._hopeless is None:
            looks_around = self._ssn.evaluator.is_contextual(self._task)  # a victim may be the one it wants to be near
            self._hopeless = not looks_around and not self._fits(range(len(self._victims)))
        return False

    def _fits(self, places: Sequence[int]) -> bool:
        statement = Statement(self._ssn)
        for place in places:
            statement.evict(self._victims[place], _TRIAL)
        answer = fits(self._ssn, self._standing, self._task, self._row, asks_room=self._terms.asks_room)
        statement.discard()
        return answer


_TRIAL = Cause("tried")


def give_back(ssn: Session, statement: Statement, terms: Terms) -> set[int]:
    """Spare every victim of a statement without whom all its tasks still have their place, highest priority first.

    Returns the rows of those spared.

    A later task may have needed a larger victim on a node or in a queue, so that an earlier, smaller one is not needed.
    """
    first = next(iter(statement.pipelined()), None)
    if first is None:
        return set()
    victims = list(enumerate(statement.evicted()))
    for _, victim in sorted(victims, key=lambda each: (-level(first, each[1]), -each[0])):
        spare_together(ssn, statement, [victim], asks_room=terms.asks_room)
    still = set(statement.evicted())
    return {victim.node for _, victim in victims if victim not in still}


def spare_together(ssn: Session, statement: Statement, victims: Sequence[TaskInfo], *, asks_room: bool) -> None:
    """Take evictions back if every task of the statement still has its place then; else all of them stand."""
    causes = [statement.spare(victim) for victim in victims]
    rows = {victim.node for victim in victims}
    placed = {(task.node, task.cls): task for task in statement.pipelined() if task.node in rows}
    if not all(_stays(ssn, statement, task, asks_room=asks_room) for task in placed.values()):
        for victim, cause in zip(victims, causes, strict=True):
            statement.evict(victim, cause)


def _stays(ssn: Session, statement: Statement, task: TaskInfo, *, asks_room: bool) -> bool:
    standing = ssn.evaluator.standing(task.cls)
    with statement.lifted(task) as row:
        return fits(ssn, standing, task, row, asks_room=asks_room)
