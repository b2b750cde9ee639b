"""Placing a gang domain by domain: a hard or soft network topology, and gangs that are divided into parts.

Domains of a row are tried in earnest, the best plan of the row is kept, and the next row is looked at only when a row has
none. A plan is what a statement did, undone and done again. How good a domain is for a part is known before it is tried, so
the best is tried first and the first that takes the part is the best that does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from scheduler.actions.filling import Filler, Target, Tasks
from scheduler.actions.redeeming import forget, nomination, redeem
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.heap import Heap
from scheduler.framework.session import Session
from scheduler.framework.statement import Saved, Statement
from scheduler.model.jobs import JobInfo
from scheduler.model.queues import QueueInfo
from scheduler.model.subjobs import SubJob
from scheduler.model.tasks import TaskInfo
from scheduler.placement import refusals
from scheduler.topology.hypernodes import Domain

_Queued = dict[str, Tasks]
"""Tasks to place, by the uid of their part."""


@dataclass(slots=True)
class _Plan:
    """How a gang, or a part of one, would be placed in one domain."""

    domain: Domain
    score: float
    steps: Saved
    left: _Queued
    places: dict[str, Domain]


class Planner:
    """Plans in one run of allocate; `queued` are the tasks of each planned gang that it has not placed yet."""

    def __init__(self, ssn: Session, filler: Filler) -> None:
        self._ssn, self._filler = ssn, filler
        self._queued: dict[str, _Queued] = {}
        self._hopeless: set[tuple[str, int]] = set()

    def take(self, job: JobInfo, tasks: list[TaskInfo]) -> None:
        """Take a gang's tasks, in their order, to be placed."""
        queued = self._queued[job.uid] = {}
        for task in tasks:
            assert task.sub is not None
            queued.setdefault(task.sub.uid, Tasks()).append(task)

    def turn(self, job: JobInfo, queue: QueueInfo) -> bool:
        """Place a gang until it is ready; whether it was, and has more to place."""
        ssn = self._ssn
        plan = self._plan_job(job, queue)
        if plan is None:
            if not ssn.job_runs(job):
                ssn.refuse(job, self._refusal(job, queue))
            return False
        statement = Statement(ssn)
        statement.replay(plan.steps)
        if not ssn.job_ready(job):
            placed = job.ready_count() + job.waiting_count()
            ssn.refuse(job, refusals.of_gang(job, placed, self._filler.why.get(job.uid), releasing=True))
            return False
        statement.commit()
        ssn.places.of_sub.update(plan.places)
        ssn.places.keep(job, plan.domain)
        ssn.verdicts.pop(job.uid, None)
        self._queued[job.uid] = plan.left
        if job.uid in self._filler.why:
            ssn.leftovers[job.uid] = self._filler.why[job.uid]
        return any(plan.left.values())

    # -- gangs ---------------------------------------------------------------------------------------------------------

    def _plan_job(self, job: JobInfo, queue: QueueInfo) -> _Plan | None:
        """The plan that an eviction made room for; else the best of the first row that has one.

        Domains are tried in the order of what they promise at most: one that promises no more than the best plan so far
        cannot beat it, and is not tried.
        """
        self._hopeless.clear()
        nominated = self._nominated(job)
        if nominated is not None:
            plan = self._try_job(job, queue, nominated)
            if plan is not None:
                return plan
            forget(task for tasks in self._queued[job.uid].values() for task in tasks)
        for row in self._ssn.parts.domains_for_job(job, self._ssn.places.tree.top):
            promises = self._promises(job, row)
            best: tuple[float, int, _Plan] | None = None
            for place in sorted(range(len(row)), key=lambda place: (-promises[place], place)):
                if best is not None and promises[place] <= best[0]:
                    break
                plan = self._try_job(job, queue, row[place])
                if plan is not None and (best is None or (plan.score, -place) > best[:2]):
                    best = plan.score, -place, plan
            if best is not None:
                return best[2]
        return None

    def _nominated(self, job: JobInfo) -> Domain | None:
        """The domain around all nominations of a gang's parts, and what the gang holds, if it may be that wide."""
        tree, limit = self._ssn.places.tree, self._ssn.places.job_limit(job)
        parts = [nomination(self._ssn, tasks) for tasks in self._queued[job.uid].values() if tasks]
        around: Domain | None = None
        for domain in parts:
            around = tree.common(around, domain)
        if around is None:
            return None
        around = tree.common(around, self._ssn.places.of_job.get(job.uid))
        return around if around is not None and (limit is None or around.tier <= limit) else None

    def _promises(self, job: JobInfo, row: list[Domain]) -> list[float]:
        """The most that a plan in each domain can score: the best below it, for a gang of one part that runs nowhere yet."""
        assert job.parts is not None
        subs = [job.parts.sub_jobs[uid] for uid, tasks in self._queued[job.uid].items() if tasks]
        if len(row) < 2 or len(subs) != 1 or job.uid in self._ssn.places.of_job:
            return [inf] * len(row)
        domains = self._ssn.places.tree.domains
        scores = self._ssn.parts.scores(subs[0], domains)
        return [max(scores[below.number] for below in domain.subtree()) for domain in row]

    def _try_job(self, job: JobInfo, queue: QueueInfo, domain: Domain) -> _Plan | None:
        """Place the parts of a gang in a domain, the required ones first, and undo it; the plan if it would do."""
        ssn = self._ssn
        assert job.parts is not None
        left = {uid: Tasks(tasks) for uid, tasks in self._queued[job.uid].items()}
        subs = sorted((job.parts.sub_jobs[uid] for uid, tasks in left.items() if tasks), key=ssn.parts.key)
        required = ssn.parts.required(subs, job)
        ahead = Heap(lambda sub: (sub.uid not in required, ssn.parts.key(sub)), subs)
        before, score = dict(ssn.places.of_sub), 0.0
        statement = Statement(ssn)
        while ahead:
            sub = ahead.pop()
            plan = self._plan_part(Target(job, queue, sub, domain), left[sub.uid], first=not statement)
            if plan is None:
                del left[sub.uid]
                continue
            statement.replay(plan.steps)
            ssn.places.put(sub, plan.domain)
            left[sub.uid], score = plan.left[sub.uid], score + plan.score
            if left[sub.uid]:
                ahead.push(sub)
            if ssn.job_ready(job):
                break
        found = None
        if statement and (ssn.job_ready(job) or ssn.job_pipelined(job)):
            places = {uid: place for uid, place in ssn.places.of_sub.items() if uid in job.parts.sub_jobs}
            found = _Plan(domain, score, statement.saved(), left, places)
        statement.discard()
        ssn.places.of_sub = before
        return found

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _plan_part(self, target: Target, tasks: Tasks, *, first: bool) -> _Plan | None:
        """The plan of a part; `first`: nothing of the gang was placed before it, so what failed once fails again."""
        ssn = self._ssn
        assert target.part is not None
        assert target.within is not None
        redeemed = self._redeem(target, tasks)
        if redeemed is not None:
            return redeemed
        for row in ssn.parts.domains_for_sub_job(target.part, target.within):
            left = [domain for domain in row if not (first and (target.uid, domain.number) in self._hopeless)]
            while left:
                scores = ssn.parts.scores(target.part, left)
                score, best = max(zip(scores, range(len(left)), strict=True), key=lambda pair: (pair[0], -pair[1]))
                domain = left.pop(best)
                plan = self._try_part(target, domain, tasks)
                if plan is not None:
                    place = ssn.places.tree.common(ssn.places.of_sub.get(target.uid), domain)
                    assert place is not None
                    return replace(plan, score=score, domain=place)
                if first:
                    self._hopeless.add((target.uid, domain.number))
        return None

    def _redeem(self, target: Target, tasks: Tasks) -> _Plan | None:
        """The plan by which a part takes the places that were made for it, inside the domain where its gang is tried."""
        ssn, part, within = self._ssn, target.part, target.within
        domain, limit = nomination(ssn, tasks), None if part is None else ssn.places.sub_limit(part)
        if domain is None or part is None or within is None or not within.mask[domain.rows].all():
            return None
        place = ssn.places.tree.common(ssn.places.of_sub.get(part.uid), domain)
        if place is None or (limit is not None and place.tier > limit):
            return None
        before = ssn.places.of_sub.get(part.uid)
        statement = redeem(ssn, replace(target, within=domain), tasks)
        if statement is None:
            return None
        found = _Plan(place, 0.0, statement.saved(), {part.uid: Tasks()}, {})
        statement.discard()
        ssn.places.put(part, before)
        return found

    def _try_part(self, target: Target, domain: Domain, tasks: Tasks) -> _Plan | None:
        ssn, part = self._ssn, target.part
        assert part is not None
        before = ssn.places.of_sub.get(part.uid)
        target = replace(target, within=domain)
        self._filler.forget(target)
        left, statement = Tasks(tasks), Statement(ssn)
        self._filler.fill(statement, target, left)
        found = None
        if statement and (ssn.parts.ready(part) or ssn.parts.pipelined(part)):
            found = _Plan(domain, 0.0, statement.saved(), {part.uid: left}, {})
        statement.discard()
        ssn.places.put(part, before)
        return found

    # -- why not -------------------------------------------------------------------------------------------------------

    def _refusal(self, job: JobInfo, queue: QueueInfo) -> Verdict:
        """What holds a gang without a plan: the domains that it may use, or, where it may use all, the nodes."""
        tree, why = self._ssn.places.tree, self._filler.why.get(job.uid)
        if why is not None and why.stage is Stage.QUEUE_LIMIT:
            return refusals.of_gang(job, job.ready_count(), why, releasing=False)
        limit = self._ssn.places.job_limit(job)
        if limit is not None and limit < tree.top.tier:
            tasks = [task for part in self._queued[job.uid].values() for task in part]
            return self._of_domains(Target(job, queue), tasks, limit, self._ssn.places.of_job.get(job.uid))
        for sub in self._waiting(job):
            limit = self._ssn.places.sub_limit(sub)
            if limit is not None and limit < tree.top.tier:
                held = self._ssn.places.of_sub.get(sub.uid)
                return self._of_domains(Target(job, queue, sub), list(self._queued[job.uid][sub.uid]), limit, held)
        placed, why = self._room_in(Target(job, queue, within=tree.top), list(job.pending()))
        return refusals.of_gang(job, placed + job.ready_count(), why, releasing=False)

    def _waiting(self, job: JobInfo) -> list[SubJob]:
        assert job.parts is not None
        subs = [job.parts.sub_jobs[uid] for uid, tasks in self._queued[job.uid].items() if tasks]
        return sorted((sub for sub in subs if not self._ssn.parts.ready(sub)), key=self._ssn.parts.key)

    def _of_domains(self, target: Target, tasks: list[TaskInfo], limit: int, held: Domain | None) -> Verdict:
        """How many of the needed pods have room in the best of the widest domains that are allowed."""
        job, part = target.job, target.part
        ready, needed = (job.ready_count(), job.min_available) if part is None else (part.ready_count(), part.min_available)
        none = Verdict(Stage.TOPOLOGY, Code.TOPOLOGY_NO_DOMAIN, queue=job.queue, needed=needed, placeable=ready, tier=limit)
        if held is not None and held.tier > limit:
            return replace(none, code=Code.TOPOLOGY_OUTSIDE, domain=held.name)
        best = max(self._widest(limit, held), key=lambda domain: self._estimate(tasks[0], domain), default=None)
        if best is None:
            return none
        placed, why = self._room_in(replace(target, within=best), tasks)
        if placed + ready >= needed:  # the minimum has room, and the domain was passed over since the whole has not
            needed, placed, why = len(tasks) + ready, min(self._estimate(tasks[0], best), len(tasks) - 1), None
        return replace(
            why or none, stage=Stage.TOPOLOGY, code=none.code, queue=job.queue, needed=needed, tier=limit,
            placeable=min(placed + ready, needed), domain=best.name, nodes=len(best.rows),
        )  # fmt: skip

    def _widest(self, limit: int, held: Domain | None) -> list[Domain]:
        """The largest domains up to a tier; of a gang that runs in part, the one around it."""
        domains = self._ssn.places.tree.domains if held is None else list(held.ancestors())
        return [d for d in domains if d.tier <= limit and (d.parent is None or d.parent.tier > limit)]

    def _estimate(self, task: TaskInfo, domain: Domain) -> int:
        """How many tasks like this one the domain's nodes have room for."""
        nodes, cls = self._ssn.nodes, task.cls
        rows = domain.rows[self._ssn.evaluator.standing(cls).static_ok[domain.rows]]
        asked = cls.compared[cls.request[cls.compared] > 0]
        free = (nodes.allocatable - nodes.used)[np.ix_(rows, asked)]
        return int(np.maximum((free // cls.request[asked]).min(axis=1), 0).sum()) if len(asked) else len(rows)

    def _room_in(self, target: Target, tasks: list[TaskInfo]) -> tuple[int, Verdict | None]:
        """How many tasks find room in a domain, tried and undone, and why the next does not."""
        before = dict(self._ssn.places.of_sub)
        self._filler.forget(target)
        statement = Statement(self._ssn)
        self._filler.fill(statement, target, Tasks(sorted(tasks, key=self._ssn.task_key)))
        placed = sum(len(entry.tasks) for entry in statement.entries)
        statement.discard()
        self._ssn.places.of_sub = before
        return placed, self._filler.why.get(target.job.uid)
