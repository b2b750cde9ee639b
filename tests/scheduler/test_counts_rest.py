"""Counts of statuses are written a while after they changed; everything else is written when it happens."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cluster.kinds import POD, POD_GROUP, QUEUE
from cluster.rests import Rests
from scheduler.cycle import run_cycle
from scheduler.status import StatusKeeper
from tests.scheduler.world import BARE, World, gang, node


@given(st.lists(st.floats(0, 5), max_size=40))
def test_no_two_writes_come_closer_than_the_pause_and_every_change_is_written_within_it(gaps: list[float]) -> None:
    rests, now, written, changed = Rests(1.0), 0.0, [], []

    def look() -> None:
        if not rests.left("a", now):
            rests.written("a")
            written.append((now, len(changed)))

    for gap in gaps:
        end = now + gap
        while rests.earliest() <= end:
            now = rests.earliest()
            look()
        now = end
        changed.append(now)
        look()
    if rests.earliest() < inf:
        now = rests.earliest()
        assert rests.due(now) == ["a"]
        look()
    assert all(later - earlier >= 1.0 - 1e-9 for (earlier, _), (later, _) in pairwise(written))
    assert not gaps or written[-1][1] == len(gaps)
    for number, at in enumerate(changed):
        assert min(when for when, count in written if count > number) <= at + 1.0
    assert rests.earliest() == inf


def test_without_a_pause_nothing_waits() -> None:
    rests = Rests()
    assert (rests.left("a", 1.0), rests.due(1.0), rests.earliest()) == (0.0, [], inf)


class Resting:
    """Cycles of a world whose keeper rests a second between counts."""

    def __init__(self) -> None:
        self.world = World(node("n0", cpu=8), gang("a", 3, cpu=2), conf=BARE).cycle(2)
        self.keeper, self.number = StatusKeeper(1.0), 0
        self.cycle()
        self.cycle(1.0)

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


def test_counts_that_change_one_by_one_make_one_write_a_second_after_the_first() -> None:
    resting = Resting()
    resting.run("a-w-0")
    assert resting.cycle(5.0) == []
    due = resting.world.offline.now + 1.0
    assert resting.keeper.due_at() == due
    resting.run("a-w-1")
    assert resting.cycle(0.25) == []
    resting.run("a-w-2")
    assert resting.cycle(0.25) == []
    assert resting.keeper.due_at() == due
    assert resting.cycle(0.5) == [("PodGroup", 3)]
    assert (resting.cycle(5.0), resting.keeper.due_at()) == ([], inf)


def test_that_a_gang_is_ready_is_left_to_its_phase_to_say_for_a_second() -> None:
    resting = Resting()
    group = resting.world.offline.cache.jobs["default/a"].obj
    resting.world.offline._modify(POD_GROUP, {**group, "status": {**group["status"], "conditions": []}})
    assert resting.cycle(0.125) == []
    assert resting.cycle(1.0) == [("PodGroup", 0)]


def test_that_a_gang_waits_is_said_at_once() -> None:
    world = World(node("n0", cpu=8), gang("large", 3, cpu=4), conf=BARE)
    done = run_cycle(world.offline.cache, world.offline.conf, StatusKeeper(1.0), 1, now=world.offline.now, random=Random(0))
    told = [w.status["conditions"] for w in done.writes.statuses if w.kind == POD_GROUP]
    assert [[(c["type"], c["status"]) for c in conditions] for conditions in told] == [[("Unschedulable", "True")]]
