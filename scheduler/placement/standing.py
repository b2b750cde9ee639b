"""How a class of tasks stands on every node: where one more may run and how good each place is, kept between turns.

A `Standing` is brought up to date by the few rows that changed since it was last looked at. Everything in it comes from
separable checks and scores, so it holds across sessions while the configuration and the static columns stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.model.nodes import Block, NodeTable
from scheduler.model.resources import Floats, Ints, Mask, Rows
from scheduler.model.tasks import TaskClass, TaskInfo
from scheduler.placement.lone import FEW, Lone

if TYPE_CHECKING:
    from scheduler.framework.explain import Verdict
    from scheduler.framework.plugin import Check, Scale, Score
    from scheduler.framework.registrations import NodeScore, Predicate, Room
    from scheduler.framework.session import Session

NEVER = -np.inf
_SPARE = 64
"""Standings of vanished classes that may stay in any case."""


@dataclass(slots=True)
class Views:
    """Rows of a block as a class finds them. `idle`: one more fits now; `future`: it fits once releasing tasks are gone."""

    idle: Mask
    future: Mask
    score: Floats


@dataclass(slots=True, eq=False)
class Standing:
    """A class over the whole table; arrays by row.

    `static_ok`: static checks hold, and the empty node would be large enough. `normalised` are raw values with the scale
    of each. `top` is the best row with room, −1 while it is not known; `ranked` is the score where there is room, kept
    once it was asked for.
    """

    cls: TaskClass
    static_ok: Mask
    static_score: Floats | None
    normalised: list[tuple[Ints, Scale]]
    views: Views
    position: int
    static_version: int
    refusal: Any = None
    refusal_position: int = -1
    top: int = -1
    ranked: Floats | None = None

    def renew(self, views: Views) -> None:
        """Take in how the whole table is found now."""
        self.views, self.top, self.ranked = views, -1, None

    def update(self, rows: Rows, views: Views) -> None:
        """Take in how some rows are found now. `top` stays the first of the best idle rows, or becomes −1: not known."""
        if self.top >= 0:
            self.top = self._top_after(rows.tolist(), views.idle.tolist(), views.score.tolist())
        mine = self.views
        mine.idle[rows], mine.future[rows], mine.score[rows] = views.idle, views.future, views.score
        if self.ranked is not None:
            self.ranked[rows] = np.where(views.idle, views.score, NEVER)

    def put(self, rows: list[int], found: list[tuple[bool, bool, float]]) -> None:
        """The same for a few rows in plain numbers: idle, future and score of each."""
        if self.top >= 0:
            self.top = self._top_after(rows, [each[0] for each in found], [each[2] for each in found])
        mine, ranked = self.views, self.ranked
        idle, future, scores = mine.idle, mine.future, mine.score
        for row, (is_idle, is_future, score) in zip(rows, found):
            idle[row], future[row], scores[row] = is_idle, is_future, score
            if ranked is not None:
                ranked[row] = score if is_idle else NEVER

    def _top_after(self, rows: list[int], idle: list[bool], scores: list[float]) -> int:
        before = float(self.views.score[self.top])
        highest, first = before, -1
        for row, is_idle, score in zip(rows, idle, scores):
            if is_idle and (score > highest or (score == highest and (row < first or first < 0))):
                highest, first = score, row
        if first >= 0 and (highest > before or first <= self.top):
            return first
        return -1 if self.top in rows else self.top

    def best_idle(self) -> int:
        """The row where one task has most score and room now, the first of equals; −1 when there is none.

        Only for classes without normalised scores, whose order of rows depends on nothing but the rows.
        """
        if self.top < 0:
            if self.ranked is None:
                self.ranked = np.where(self.views.idle, self.views.score, NEVER)
            row = int(self.ranked.argmax())
            self.top = row if self.views.idle[row] else -1
        return self.top

    def candidates(self, within: Mask | None = None) -> tuple[Mask, bool]:
        """The first group that has a node (of some): those with room now, else those with room after releases (True)."""
        idle, future = self.views.idle, self.views.future
        if within is not None:
            idle, future = idle & within, future & within
        return (idle, False) if idle.any() else (future, True)

    def scores(self, candidates: Mask) -> Floats:
        """Score by row, normalised parts scaled over the candidates; NEVER where a row is none."""
        total = self.views.score
        for raw, scale in self.normalised:
            among = raw[candidates]
            if len(among):
                total = total + scale(raw, int(among.min()), int(among.max()))
        return np.where(candidates, total, NEVER)


class Evaluator:
    """Asks a session's separable checks and scores about blocks of rows, and keeps standings of classes."""

    def __init__(self, ssn: Session) -> None:
        self.nodes: NodeTable = ssn.nodes
        self.dims = ssn.dims
        predicates: list[Predicate] = ssn.functions("predicate")
        scores: list[NodeScore] = ssn.functions("node_score")
        self._static_checks = [item for item in predicates if item.static]
        self._checks = [item for item in predicates if not item.static]
        self._static_scores = [item for item in scores if item.static]
        self._scores = [item for item in scores if not item.static]
        self._normalised = ssn.functions("normalised_score")
        self._rooms: list[Room] = ssn.functions("room")
        self._task_checks = ssn.functions("task_predicate")
        self._task_scores = ssn.functions("task_score")
        self._contextual = [*self._task_checks, *self._task_scores]
        self._standings = _kept(ssn)
        self._by_class: dict[TaskClass, tuple[list[Check], list[Score]]] = {}
        self._lone: dict[TaskClass, Lone | None] = {}
        self.note: Callable[[str, Mask | Rows], None] | None = None
        self.seconds = self.scoring = 0.0
        """Spent on standings of classes, and the part of it that was spent on scores of blocks."""

    def tell(self, cause: str, rows: Mask | Rows) -> None:
        """Name the rows that a cause refuses to who wants to know more than their number."""
        if self.note is not None:
            self.note(cause, rows)

    # -- whole classes -------------------------------------------------------------------------------------------------

    def standing(self, cls: TaskClass) -> Standing:
        """The class's standing as of now."""
        begin = perf_counter()
        found = self._current(cls)
        self.seconds += perf_counter() - begin
        return found

    def _current(self, cls: TaskClass) -> Standing:
        found = self._standings.get(cls)
        if found is None or found.static_version != self.nodes.static_version:
            self._lone.pop(cls, None)
            found = self._standings[cls] = self._fresh(cls)
            return found
        changed = self.nodes.changed_since(found.position)
        if changed is None or len(changed) > self.nodes.rows:
            found.renew(self.views(found, Block(self.nodes)))
        elif changed:
            self._follow(found, list(changed) if len(changed) == 1 else list(set(changed)))
        found.position = self.nodes.position
        return found

    def _follow(self, standing: Standing, changed: list[int]) -> None:
        """Bring some rows of a standing up to date."""
        if len(changed) <= FEW and (lone := self._alone(standing)) is not None:
            nodes, settled, allowed = self.nodes, not self.nodes.unsettled, standing.static_ok
            few = [row for row in changed if allowed[row]]
            if few:
                standing.put(few, [lone.view(row, nodes.plain(row), settled=settled) for row in few])
            return
        rows = np.asarray(changed, np.intp)
        rows = rows[standing.static_ok[rows]]
        if len(rows):
            standing.update(rows, self.views(standing, Block(self.nodes, rows)))

    def _alone(self, standing: Standing) -> Lone | None:
        """The class in plain numbers, where everything that concerns it can be asked so."""
        cls = standing.cls
        if cls not in self._lone:
            self._lone[cls] = self._lone_of(standing)
        return self._lone[cls]

    def _lone_of(self, standing: Standing) -> Lone | None:
        cls = standing.cls
        if cls.best_effort or any(_applies(room.applies, cls) for room in self._rooms):
            return None
        checks = [item.alone and item.alone(cls) for item in self._checks if _applies(item.applies, cls)]
        scores = [item.alone and item.alone(cls) for item in self._scores if _applies(item.applies, cls)]
        told = [check for check in checks if check is not None], [score for score in scores if score is not None]
        if (len(told[0]), len(told[1])) != (len(checks), len(scores)):
            return None
        return Lone(cls, standing.static_score, *told)

    def _fresh(self, cls: TaskClass) -> Standing:
        whole = Block(self.nodes)
        ok = self.nodes.live.copy()
        ok &= (whole.allocatable >= cls.floor).all(axis=1)
        for check in self._static_checks:
            if _applies(check.applies, cls):
                ok &= check.check(cls, whole)
        score: Floats | None = None
        for item in self._static_scores:
            if _applies(item.applies, cls):
                part = np.asarray(item.score(cls, whole), np.float64)
                score = part if score is None else score + part
        raws = []
        for item in self._normalised:
            if _applies(item.applies, cls):
                raw = np.asarray(item.raw(cls, whole), np.int64)
                if ok.any() and raw[ok].min() != raw[ok].max():
                    raws.append((raw, item.scale))
                elif ok.any():
                    constant = np.asarray(item.scale(raw, int(raw[ok].min()), int(raw[ok].max())), np.float64)
                    score = constant if score is None else score + constant
        none = np.zeros(0, np.bool_)
        standing = Standing(cls, ok, score, raws, Views(none, none, np.zeros(0)), 0, self.nodes.static_version)
        standing.views = self.views(standing, whole)
        standing.position = self.nodes.position
        return standing

    # -- blocks --------------------------------------------------------------------------------------------------------

    def views(self, standing: Standing, at: Block) -> Views:
        """What a class finds on the rows of a block, copies of its own included."""
        cls = standing.cls
        ok = standing.static_ok.copy() if at.whole else standing.static_ok.take(at.rows)
        for check in self._asked(cls)[0]:
            ok &= check(cls, at)
        if cls.host_ports and at.copies is not None:
            ok &= at.copies == 0
        free = at.allocatable - at.used
        idle = ok & np.logical_and.reduce(free >= cls.floor, axis=1)
        if cls.gpus:
            idle &= _has_slots(at, cls, later=False)
        rooms = [room for room in self._rooms if _applies(room.applies, cls)]
        for room in rooms:
            idle &= room.now(cls, at)
        if not self.nodes.unsettled:
            return Views(idle, idle.copy(), self._score_idle(standing, at, idle))
        future = ok & (free + at.releasing - at.pipelined >= cls.floor).all(axis=1)
        if cls.gpus:
            future &= _has_slots(at, cls, later=True)
        for room in rooms:
            future &= room.later(cls, at)
        # What is idle may be promised to a pipelined task already.
        return Views(idle & future, future, self._score(standing, at))

    def _score_idle(self, standing: Standing, at: Block, idle: Mask) -> Floats:
        """Scores of the rows that are idle; nobody asks for those of the others before their rows change."""
        count = np.count_nonzero(idle)
        if count == len(at) or (count and (at.whole or at.copies is not None)):
            return self._score(standing, at)
        score: Floats = np.zeros(len(at))
        if count:
            score[idle] = self._score(standing, Block(self.nodes, at.rows[idle]))
        return score

    def _score(self, standing: Standing, at: Block) -> Floats:
        begin = perf_counter()
        cls, parts = standing.cls, self._asked(standing.cls)[1]
        score: Any = 0.0 if standing.static_score is None else standing.static_score.take(at.rows)
        for part in parts:
            score = score + part(cls, at)
        found: Floats = score if parts or standing.static_score is not None else np.zeros(len(at))
        self.scoring += perf_counter() - begin
        return found

    def _asked(self, cls: TaskClass) -> tuple[list[Check], list[Score]]:
        """The checks and scores of rows that concern a class."""
        found = self._by_class.get(cls)
        if found is None:
            checks = [item.check for item in self._checks if _applies(item.applies, cls)]
            found = self._by_class[cls] = checks, [item.score for item in self._scores if _applies(item.applies, cls)]
        return found

    def refused_by_rooms(self, standing: Standing, passed: Mask) -> dict[str, int]:
        """Of nodes that have the amounts, how many each cause of `add_room` refuses."""
        cls, whole, counts = standing.cls, Block(self.nodes), dict[str, int]()
        if not self._rooms:
            return counts
        fits = passed & (whole.allocatable - whole.used + whole.releasing - whole.pipelined >= cls.floor).all(axis=1)
        for room in self._rooms:
            if fits.any() and _applies(room.applies, cls):
                answer = room.later(cls, whole)
                if refused := int((fits & ~answer).sum()):
                    counts[room.cause] = counts.get(room.cause, 0) + refused
                    self.tell(room.cause, fits & ~answer)
                fits &= answer
        return counts

    # -- single tasks --------------------------------------------------------------------------------------------------

    def is_contextual(self, task: TaskInfo) -> bool:
        """Whether some check or score of this task looks beyond its class and single nodes."""
        for item in self._contextual:  # noqa: SIM110 - asked so often that a generator would be felt
            if item.applies(task):
                return True
        return False

    def task_refusals(self, task: TaskInfo, ok: Mask) -> dict[str, int]:
        """Narrow a mask of rows by the task's contextual checks; how many each cause refused."""
        refused: dict[str, int] = {}
        for item in self._task_checks:
            if not item.applies(task):
                continue
            rows = np.flatnonzero(ok)
            if len(rows):
                answer = item.check(task, Block(self.nodes, rows))
                ok[rows[~answer]] = False
                self.tell(item.cause, rows[~answer])
                refused[item.cause] = refused.get(item.cause, 0) + int((~answer).sum())
        return {cause: count for cause, count in refused.items() if count}

    def task_ready(self, task: TaskInfo, ok: Mask) -> Mask:
        """Of rows that pass a task's contextual checks, those that pass them before anything is released."""
        asked = [item.now for item in self._task_checks if item.now is not None and item.applies(task)]
        if not asked:
            return ok
        rows = np.flatnonzero(ok)
        for check in asked:
            if len(rows):
                rows = rows[check(task, Block(self.nodes, rows))]
        ready: Mask = np.zeros(len(ok), np.bool_)
        ready[rows] = True
        return ready

    def task_explained(self, task: TaskInfo, causes: Iterable[str]) -> Verdict | None:
        """What a contextual check that refused nodes says of it with numbers, the last one first."""
        for item in reversed(self._task_checks):
            if item.explain is not None and item.cause in causes and (verdict := item.explain(task)) is not None:
                found: Verdict = verdict
                return found
        return None

    def task_scores(self, task: TaskInfo, rows: Any) -> Floats:
        """Sum of the contextual scores of a task over its candidates."""
        total = np.zeros(len(rows))
        at = Block(self.nodes, rows)
        for item in self._task_scores:
            if item.applies(task):
                total += item.score(task, at)
        return total

    def refused_by_checks(self, standing: Standing, within: Mask | None = None) -> tuple[dict[str, int], Mask]:
        """Live nodes (of some) that separable checks refuse, by the first cause, and the mask of those that pass them all."""
        whole, ok = Block(self.nodes), self.nodes.live.copy() if within is None else self.nodes.live & within
        counts: dict[str, int] = {}
        for check in [*self._static_checks, *self._checks]:
            if _applies(check.applies, standing.cls):
                answer = check.check(standing.cls, whole)
                refused = int((ok & ~answer).sum())
                if refused:
                    counts[check.cause] = counts.get(check.cause, 0) + refused
                    self.tell(check.cause, ok & ~answer)
                ok &= answer
        return counts, ok


def _applies(applies: Callable[[TaskClass], bool] | None, cls: TaskClass) -> bool:
    return applies is None or applies(cls)


def _has_slots(at: Block, cls: TaskClass, *, later: bool) -> Mask:
    """Enough whole GPUs that are healthy and free (`later`: or being released), where GPUs are known one by one."""
    free = np.bitwise_count(at.nodes.gpu_free[at.rows]).astype(np.int64)
    if at.copies is not None and not at.as_pipelined:
        free = free - at.copies * cls.gpus
    if later:
        free = free + (at.releasing[:, cls.gpu_dimension] - at.pipelined[:, cls.gpu_dimension]) // 1000
    enough: Mask = (free >= cls.gpus) | ~at.nodes.gpu_slots[at.rows]
    return enough


def _kept(ssn: Session) -> dict[TaskClass, Standing]:
    """Standings of earlier sessions under the same configuration, those of vanished classes dropped."""
    standings: dict[TaskClass, Standing]
    conf, standings = ssn.memo.get("standings", (None, {}))
    if conf is not ssn.conf:
        standings = {}
    elif len(standings) > 2 * len(ssn.classes) + _SPARE:
        known = set(ssn.classes)
        standings = {cls: standing for cls, standing in standings.items() if cls in known}
    ssn.memo["standings"] = (ssn.conf, standings)
    return standings
