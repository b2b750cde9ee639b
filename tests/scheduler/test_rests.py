"""Counts of statuses are written at once, and then at most once in a while; everything else is written when it happens."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cluster.kinds import POD, POD_GROUP, QUEUE
from scheduler.cycle import run_cycle
from scheduler.rests import Rests
from scheduler.status import StatusKeeper
from tests.scheduler.world import BARE, World, gang, node


@given(st.lists(st.floats(0, 5), max_size=40))
def test_no_two_writes_come_closer_than_the_pause_and_the_last_change_is_written(gaps: list[float]) -> None:
    rests, now, written, changes = Rests(1.0), 0.0, [], 0

    def look() -> None:
        if not rests.must_wait("a", now):
            rests.written("a", now)
            written.append((now, changes))

    for gap in gaps:
        while rests.earliest() <= now + gap:
            gap -= max(rests.earliest() - now, 0.0)
            now = max(rests.earliest(), now)
            look()
        now += gap
        changes += 1
        look()
    if rests.earliest() < inf:
        now = rests.earliest()
        assert rests.due(now) == ["a"]
        look()
    assert all(later - earlier >= 1.0 - 1e-9 for (earlier, _), (later, _) in pairwise(written))
    assert not gaps or written[-1][1] == len(gaps)
    assert rests.earliest() == inf


def test_without_a_pause_nothing_waits() -> None:
    rests = Rests()
    rests.written("a", 1.0)
    assert (rests.must_wait("a", 1.0), rests.due(1.0), rests.earliest()) == (False, [], inf)


class Resting:
    """Cycles of a world whose keeper rests a second between counts."""

    def __init__(self) -> None:
        self.world = World(node("n0", cpu=8), gang("a", 3, cpu=2), conf=BARE).cycle(2)
        self.keeper, self.number = StatusKeeper(1.0), 0

    def cycle(self, after: float = 0.0) -> list[tuple[str, object]]:
        """What is written: kinds, with the counts of running pods of a group."""
        offline = self.world.offline
        offline.now += after
        self.number += 1
        done = run_cycle(offline.cache, offline.conf, self.keeper, self.number, now=offline.now, random=Random(0))
        offline.take_in(done)
        return [(w.kind.kind, w.status.get("running")) for w in done.writes.statuses if w.kind in (POD_GROUP, QUEUE)]

    def run(self, pod: str) -> None:
        """One more pod runs."""
        offline = self.world.offline
        task = next(t for t in offline.cache.jobs["default/a"].tasks.values() if t.name == pod)
        offline._modify(POD, {**task.pod, "status": {**task.pod.get("status", {}), "phase": "Running"}})


def test_counts_that_change_one_by_one_make_two_writes() -> None:
    resting = Resting()
    resting.cycle(5.0)
    resting.run("a-w-0")
    assert resting.cycle(5.0) == [("PodGroup", 1)]
    resting.run("a-w-1")
    assert resting.cycle(0.25) == []
    resting.run("a-w-2")
    assert resting.cycle(0.25) == []
    assert resting.keeper.due_at() == resting.world.offline.now + 0.5
    assert resting.cycle(0.5) == [("PodGroup", 3)]
    assert (resting.cycle(5.0), resting.keeper.due_at()) == ([], inf)


def test_a_condition_does_not_wait() -> None:
    resting = Resting()
    resting.cycle(5.0)
    resting.run("a-w-0")
    assert resting.cycle(5.0) == [("PodGroup", 1)]
    before = {**resting.world.offline.cache.jobs["default/a"].obj["status"], "conditions": []}
    group = {**resting.world.offline.cache.jobs["default/a"].obj, "status": before}
    resting.world.offline._modify(POD_GROUP, group)
    assert [kind for kind, _ in resting.cycle(0.125)] == ["PodGroup"]
