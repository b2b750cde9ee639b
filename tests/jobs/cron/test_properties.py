"""Cron jobs under any deaths of their controller and any lost fields: each time has one run at most, and none is forgotten."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.errors import NotFound
from cluster.kinds import CRON_JOB, JOB
from cluster.objects import annotations, name, uid
from jobs.keys import SCHEDULED_AT
from tests.jobs.cron.world import cron, end, go_to, make, runs, status
from tests.jobs.test_restart import DeathTrap, Killed
from tests.jobs.world import World


class Made:
    """The uids of the jobs ever made for each time."""

    def __init__(self, world: World) -> None:
        self._watch = world.cluster.watch([JOB])
        self.found: dict[str, set[str]] = {}

    def look(self) -> dict[str, set[str]]:
        for event in self._watch.drain():
            if event.kind == JOB:
                self.found.setdefault(annotations(event.object)[SCHEDULED_AT], set()).add(uid(event.object))
        return self.found


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_a_death_at_any_write_doubles_no_run_and_loses_none(policy: str, after: bool):
    deaths = 0
    for at in range(1, 120):
        world = World()
        go_to(world, "2030-06-01T00:00:30")
        made = Made(world)
        make(world, cron("* * * * *", concurrencyPolicy=policy, successfulJobsHistoryLimit=1))
        world.restart(DeathTrap(world.cluster, at, after=after))
        died = False
        for minute in range(1, 5):
            try:
                go_to(world, f"2030-06-01T00:0{minute}:00")
            except Killed:
                died = True
                world.restart()
                world.settle()
            if policy != "Replace":
                for run in runs(world):
                    with contextlib.suppress(Killed, NotFound):
                        end(world, run)
            world.restart()
            world.settle()
        assert {slot: len(uids) for slot, uids in made.look().items()} == {
            f"2030-06-01T00:0{minute}:00Z": 1 for minute in range(1, 5)
        }, f"after dying at write {at}"
        if not died:
            break
        deaths += 1
    assert deaths >= 4


happenings = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 400)),
        st.tuples(st.just("end"), st.sampled_from(["Completed", "Failed", "Terminated", "Aborted"])),
        st.tuples(st.just("lose"), st.sampled_from(["active", "lastScheduleTime"])),
        st.tuples(st.just("die"), st.integers(1, 5)),
        st.tuples(st.just("suspend"), st.booleans()),
        st.tuples(st.just("delete"), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(happenings, st.sampled_from(["Allow", "Forbid", "Replace"]), st.sampled_from(["* * * * *", "*/3 * * * *", "@every 70s"]))
def test_each_time_has_one_run_at_most(steps: list[tuple[str, Any]], policy: str, schedule: str):
    world = World()
    made = Made(world)
    make(world, cron(schedule, concurrencyPolicy=policy, successfulJobsHistoryLimit=2))
    for what, value in steps:
        with contextlib.suppress(Killed):
            _happen(world, what, value)
        assert all(len(uids) == 1 for uids in made.look().values())
        if policy != "Allow":
            assert len(_unfinished(world)) <= 1
    world.restart()
    world.settle()
    assert [ref["name"] for ref in status(world).get("active") or ()] == sorted(_unfinished(world), key=_age(world))
    before = world.cluster.get(CRON_JOB, "c", "default")
    world.restart()
    world.settle()
    assert world.cluster.get(CRON_JOB, "c", "default") == before


def _happen(world: World, what: str, value: Any) -> None:
    if what == "wait":
        world.clock.advance(value)
        world.settle()
    elif what == "end" and (left := _unfinished(world)):
        end(world, left[0], value)
    elif what == "lose" and (runs(world) or value == "active"):
        world.cluster.patch_status(CRON_JOB, "c", "default", {value: None})
        world.settle()
    elif what == "die":
        world.restart(DeathTrap(world.cluster, value, after=False))
        try:
            world.clock.advance(60)
            world.settle()
        finally:
            world.restart()
    elif what == "suspend":
        world.cluster.patch(CRON_JOB, "c", "default", {"spec": {"suspend": value}})
        world.settle()
    elif what == "delete" and (there := runs(world)) and len(there) > 1:
        world.cluster.delete(JOB, there[0], "default")
        world.settle()


def _unfinished(world: World) -> list[str]:
    return [run for run in runs(world) if world.phase(run) not in ("Completed", "Failed", "Terminated")]


def _age(world: World) -> Any:
    return lambda run: (world.job(run)["metadata"]["creationTimestamp"], name(world.job(run)))
