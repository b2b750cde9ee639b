"""Room for a whole gang at once: bundles of victims in one domain of nodes, as few as let every task have its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster.said import said
from scheduler.eviction import bundles, starving
from scheduler.eviction.bundles import Bundle
from scheduler.eviction.search import spare_together
from scheduler.framework.explain import Spared
from scheduler.framework.plugin import EvictionKind
from scheduler.framework.statement import Cause, Statement
from scheduler.model.jobs import JobInfo
from scheduler.model.resources import Ints
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskInfo
from scheduler.placement import ladder, stepwise
from scheduler.topology.hypernodes import Domain

if TYPE_CHECKING:
    from scheduler.framework.session import Session

Part = tuple[SubJob | None, list[TaskInfo]]


@dataclass(frozen=True, slots=True)
class GangTerms:
    """On which terms: why a task is no candidate (empty: it is one; None: out of reach), who loses first, how far to look."""

    action: str
    kind: EvictionKind
    exempt: Callable[[JobInfo, TaskInfo], str | None]
    order: Callable[[JobInfo], Callable[[JobInfo], Any]]
    whole: bool
    domains: int


class GangTaker:
    """One gang that takes room."""

    def __init__(self, ssn: Session, terms: GangTerms, job: JobInfo) -> None:
        self._ssn, self._terms, self._job = ssn, terms, job
        self._was_ready = ssn.job_ready(job)
        self.parts = self._parts()
        self._rule = ""

    def _parts(self) -> list[Part]:
        """The tasks that need room, by part of the gang; of one that runs already, the first part that waits."""
        waiting = [task for task in starving.waiting_tasks(self._ssn, self._job) if not task.cls.best_effort]
        if self._job.parts is None:
            return [(None, waiting)] if waiting else []
        subs = sorted(self._job.parts.sub_jobs.values(), key=self._ssn.parts.key)
        required = self._ssn.parts.required(subs, self._job)
        subs.sort(key=lambda sub: sub.uid not in required)
        found: list[Part] = [(sub, [task for task in waiting if task.sub is sub]) for sub in subs]
        found = [part for part in found if part[1]]
        return found[:1] if self._was_ready else found

    def take(self) -> bool:
        """Make room in the first domain where that is possible; whether it was."""
        for domain in self._domains():
            found = self._bundles(domain)
            if found and self._in(domain, found):
                return True
        return False

    def spared(self) -> Counter[str]:
        """Of the pods in the domains that were looked at, how many each rule spares."""
        ssn, terms, counts, seen = self._ssn, self._terms, Counter[str](), set[str]()
        for domain in self._domains():
            within = [task for row in domain.rows.tolist() for task in ssn.nodes.tasks[row].values() if task.uid not in seen]
            seen |= {task.uid for task in within}
            exempt = {task.uid: terms.exempt(self._job, task) for task in within}
            counts.update(why for why in exempt.values() if why)
            left = [task for task in within if exempt[task.uid] == ""]
            rules = ssn.victims.spared_by("unified_evictable", left, partial(self._ask, left))
            offered = {task.uid for bundle in self._bundles(domain) for task in bundle.tasks}
            other = "gang" if ssn.victims.tiers("unified_evictable") else Spared.NO_RULE
            counts.update(Spared.TOO_LITTLE if task.uid in offered else rules.get(task.uid, other) for task in left)
        return counts

    def _ask(self, candidates: Sequence[TaskInfo], rule: Any) -> Sequence[TaskInfo] | None:
        victims: Sequence[TaskInfo] | None = rule(self._terms.kind, self._job, candidates)
        return victims

    def _domains(self) -> list[Domain]:
        """Domains to try, the widest first; one that holds all nodes where nothing says otherwise."""
        ssn, top = self._ssn, self._ssn.places.tree.top
        if not ssn.places.is_planned(self._job):
            return [top]
        rows = ssn.parts.domains_for_job(self._job, top, evicting=True)
        return list(islice((domain for row in rows for domain in row), self._terms.domains))

    def _need(self) -> Ints:
        need: Ints = np.sum([task.request for _, tasks in self.parts for task in tasks], axis=0)
        return need

    def _bundles(self, domain: Domain) -> list[Bundle]:
        ssn, terms = self._ssn, self._terms
        candidates = [
            task for row in domain.rows.tolist() for task in ssn.nodes.tasks[row].values() if terms.exempt(self._job, task) == ""
        ]
        offer = ssn.victims.unified(terms.kind, self._job, ssn.victims.in_order(candidates, ssn.queues[self._job.queue]))
        self._rule = offer.rule
        allowed = {task.uid for task in offer.victims}
        by_job: dict[JobInfo, list[TaskInfo]] = {}
        for task in candidates:
            assert task.job is not None
            by_job.setdefault(task.job, []).append(task)
        found: list[Bundle] = []
        for job, tasks in by_job.items():
            found += bundles.of_job(job, tasks, whole=terms.whole)
        found = [bundle for bundle in found if all(task.uid in allowed for task in bundle.tasks)]
        return bundles.in_order(found, self._need(), terms.order(self._job))

    def _in(self, domain: Domain, offered: Sequence[Bundle]) -> bool:
        """Grow a set of bundles until the gang fits, then give back each that it fits without."""
        nodes, need = self._ssn.nodes, self._need()
        rows = domain.rows
        free = (nodes.allocatable[rows] - nodes.used[rows] + nodes.releasing[rows] - nodes.pipelined[rows]).clip(0).sum(axis=0)
        step, due = 1, 0
        for count, bundle in enumerate(offered, 1):
            free = free + bundle.freed()
            if not (free >= need)[need > 0].all() or (count < due and count < len(offered)):
                continue
            statement = self._plan(domain, offered[:count])
            if statement is None:
                step, due = 2 * step, count + step  # amounts are there, but in pieces: take ever more at a time
                continue
            for each in reversed(offered[:count]):
                spare_together(self._ssn, statement, each.tasks, asks_room=True)
            starving.commit(self._ssn, statement, self._job, nominate_all=True)
            return True
        return False

    def _plan(self, domain: Domain, chosen: Sequence[Bundle]) -> Statement | None:
        """Evict the bundles and place the parts, until the gang would be ready; None (and nothing done) when they do not fit."""
        ssn, job, statement = self._ssn, self._job, Statement(self._ssn)
        before = dict(ssn.places.of_sub)
        reason = said("made room for gang %(gang)s", gang=job.uid)
        cause = Cause(reason, self._terms.action, self._rule, self.parts[0][1][0])
        for bundle in chosen:
            for task in bundle.tasks:
                statement.evict(task, cause)
        done = False
        for sub, tasks in self.parts:
            if not self._place(statement, sub, tasks, domain):
                continue
            done = self._was_ready or ssn.job_pipelined(job)
            if done:
                break
        ssn.places.of_sub = before
        if not done:
            statement.discard()
            return None
        return statement

    def _place(self, statement: Statement, sub: SubJob | None, tasks: list[TaskInfo], domain: Domain) -> bool:
        """Pipeline all tasks of a part inside the first domain that its own topology allows; all or none."""
        ssn = self._ssn
        planned = sub is not None and ssn.places.is_planned(self._job)
        rows = ssn.parts.domains_for_sub_job(sub, domain, evicting=True) if planned and sub is not None else [[domain]]
        for row in reversed(rows):  # lowest tier first
            for within in row:
                mine = Statement(ssn)
                if all(self._one(mine, task, within) for task in tasks):
                    statement.absorb(mine)
                    return True
                mine.discard()
        return False

    def _one(self, statement: Statement, task: TaskInfo, within: Domain) -> bool:
        ssn, evaluator = self._ssn, self._ssn.evaluator
        if ssn.room(ssn.queues[self._job.queue], task.cls) <= 0 or ssn.pre_predicate(task) is not None:
            return False
        standing = evaluator.standing(task.cls)
        mask = within.mask if within is not ssn.places.tree.top else None
        if evaluator.is_contextual(task):
            row, _, _ = stepwise.choose_one(evaluator, standing, task, mask)
            rows = [row] if row >= 0 else []
        else:
            rows, _ = ladder.choose(evaluator, standing, 1, mask)
        if not rows:
            return False
        return statement.pipeline([task], rows)
