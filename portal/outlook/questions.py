"""How a draft or a change would move starts: futures of the cluster as it is, and the same futures after the change."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import orjson

from cluster.port import Obj
from jobs.reasons import is_impossible
from portal.maintenance.futures import changes_of
from portal.outlook import ground
from portal.outlook.ground import FUTURES, HORIZON, PAUSE, Ground
from portal.simulations import estimates, present
from portal.unblock import changes, line
from portal.unblock.changes import Change
from portal.unblock.copy import Copy, View
from portal.unblock.line import Position
from scheduler.simulation.estimate import SPREAD, Estimate, Futures


@dataclass(frozen=True, slots=True)
class Question:
    """What is tried: a `draft` (its manifest, complete as admission leaves it) that is submitted now; waiting jobs `patched` in
    place (`jobs` by namespace and name, `patch`); a `queue` as it would be written; a `drain` of nodes. `data` is JSON-ready."""

    kind: str
    data: Any

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return hashlib.sha256(orjson.dumps([self.kind, self.data], option=orjson.OPT_SORT_KEYS)).hexdigest()

    def changes(self, view: View) -> list[Change]:
        """What it changes. Jobs that do not wait any more are left as they are."""
        if self.kind == "draft":
            return [changes.submitted(view, self.data)]
        if self.kind == "queue":
            return [Change("", changes.queue_changed(view, self.data))]
        if self.kind == "drain":
            return changes_of(view, self.data)
        found = []
        for namespace, name in self.data["jobs"]:
            manifest = view.job(namespace, name)
            group = view.gang(manifest) if manifest is not None else None
            if manifest is not None and group is not None and not group.ready_count():
                found.append(changes.in_place(view, manifest, self.data["patch"]))
        return found


def draft(manifest: Obj) -> Question:
    """A job submitted now."""
    return Question(
        "draft", {**manifest, "metadata": {k: v for k, v in manifest["metadata"].items() if k in _KEPT}, "status": {}}
    )


def patched(jobs: Iterable[tuple[str, str]], patch: Obj) -> Question:
    """Waiting jobs changed in place."""
    return Question("patched", {"jobs": [list(each) for each in jobs], "patch": patch})


def queue(obj: Obj) -> Question:
    """A queue changed."""
    return Question("queue", obj)


def drain(nodes: Iterable[str]) -> Question:
    """Nodes drained now; it is about the jobs that begin anew for it."""
    return Question("drain", list(nodes))


_KEPT = ("name", "namespace", "annotations", "labels")


@dataclass(frozen=True, slots=True)
class Span:
    """P50 and P90 of a start in epoch seconds; infinity: not in sight."""

    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class Move:
    """A job, by PodGroup, and its likely start without and with the change; None: it is not there then."""

    uid: str
    before: Span | None
    after: Span | None

    @property
    def delay(self) -> float:
        """By how many seconds P50 comes later; 0 where both are out of sight."""
        if self.before is None or self.after is None or self.before.p50 == self.after.p50:
            return 0.0
        return self.after.p50 - self.before.p50


@dataclass(slots=True)
class Outlook:
    """What is known of a question. `state`: working, done, none (it is about no job that could start), or unavailable.

    `mine` are the jobs that it is about, `delayed` others that start later, the longest first, `sooner` how many start earlier.
    `position` is the place of a job that comes anew; `is_deep`: too many are ahead of it to be played.
    """

    state: str = "working"
    at: float = 0.0
    mine: list[Move] = field(default_factory=list)
    delayed: list[Move] = field(default_factory=list)
    sooner: int = 0
    position: Position | None = None
    is_deep: bool = False
    futures: int = 0
    known: int = 0
    by: str = ""
    taken: float = 0.0


def answer(copy: Copy, question: Question, *, futures: int = FUTURES, pause: float = PAUSE) -> Outlook:
    """Play it. Raises Unavailable when the cluster cannot be read."""
    with ground.turn:
        with copy.pinned() as view:
            made = question.changes(view)
            mine = [each.uid for each in made if each.uid]
            standing = ground.of(view, mine)
            found = Outlook("done", standing.at, known=standing.past.times.count)
            never = stand(view, made, found)
            objs = present.after(view, standing.objs, made)
            places = estimates.positions(view)
        mine = [uid for uid in mine if uid not in never]
        if not mine and question.kind != "queue":
            found.state, found.taken = "none", time.monotonic()
            return found
        is_new = standing.futures is None
        before = standing.as_it_is([uid for uid in mine if uid in view.cache.jobs], futures, pause)
        if is_new:
            estimates.keep(standing, places)
        after = standing.play(objs, mine, before.count, pause)
        compare(found, standing, before, after, mine)
        found.taken = time.monotonic()
        return found


def stand(view: View, made: Sequence[Change], found: Outlook) -> set[str]:
    """Find the place of a job that comes anew; which of those that are changed can never start."""
    by_uid = {each.uid: each for each in made}
    played = view.play(
        [event for each in made for event in each.events],
        extra=lambda uid: by_uid[uid].pods(view, uid) if uid in by_uid else view.pods_of(uid),
    )
    never = {uid for uid in by_uid if (verdict := played.verdicts.get(uid)) is not None and is_impossible(verdict.as_dict())}
    if len(made) == 1 and (new := made[0].job) is not None and made[0].uid not in view.cache.jobs:
        found.position = line.position(played, view.cache.jobs, made[0].uid, str(new["spec"].get("queue") or "default"))
        found.is_deep = found.position is not None and found.position.place > ground.DEEP
    return never


def compare(found: Outlook, standing: Ground, before: Futures, after: Futures, mine: Sequence[str]) -> None:
    """What is different between the same futures of the two."""
    found.futures = count = min(before.count, after.count)
    then, now = before.said(standing.factors, count), after.said(standing.factors, count)
    for uid in mine:
        said = None if found.is_deep else _span(standing.at, now.get(uid))
        found.mine.append(Move(uid, _span(standing.at, then.get(uid)), said or Span(inf, inf)))
        found.by = found.by or (now[uid].by if uid in now else "")
    others = [Move(uid, _span(standing.at, then[uid]), _span(standing.at, now.get(uid))) for uid in then if uid not in set(mine)]

    def least(move: Move) -> float:
        """Within half of what a cycle joins then, starts differ by chance."""
        first = min(each.p50 for each in (move.before, move.after) if each is not None)
        return max(standing.period, SPREAD * (first - standing.at)) / 2

    others = [each for each in others if abs(each.delay) > 0]
    later = [each for each in others if each.delay >= least(each)]
    found.delayed = sorted(later, key=lambda each: (-each.delay, each.before and each.before.p50))
    found.sooner = sum(each.delay <= -least(each) for each in others)


def _span(at: float, said: Estimate | None) -> Span | None:
    if said is None:
        return None
    p50, p90 = (at + each if each < HORIZON else inf for each in (said.p50, said.p90))
    return Span(p50, p90)
