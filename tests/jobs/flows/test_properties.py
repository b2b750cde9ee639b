"""Flows under anything: any graph, any ends, any deaths of the controller. They end as they must, and no job is made twice."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.errors import NotFound
from cluster.kinds import JOB, JOB_FLOW
from cluster.objects import name, owner, uid
from jobs.flows.status import BROKEN
from tests.jobs.flows.world import finish, flow, jobs, make, phase, status, template
from tests.jobs.test_restart import DeathTrap, Killed
from tests.jobs.world import World

TITLES = "abcd"


class Made:
    """Counts the jobs that are ever made."""

    def __init__(self, world: World) -> None:
        self._watch = world.cluster.watch([JOB])
        self.uids: dict[str, set[str]] = {}

    def look(self) -> dict[str, set[str]]:
        for event in self._watch.drain():
            if event.kind == JOB:
                self.uids.setdefault(name(event.object), set()).add(uid(event.object))
        return self.uids


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("ttl", [None, 0], ids=["kept", "gone at once"])
def test_a_death_at_any_write_doubles_no_job(after: bool, ttl: int | None):
    more = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    deaths = 0
    for at in range(1, 200):
        world = World()
        made = Made(world)
        make(world, template("a", **more), template("b", **more), flow("f", "a", "b<a"))
        world.restart(DeathTrap(world.cluster, at, after=after))
        died = False
        for _ in range(6):
            try:
                world.turn()
                for job in jobs(world):
                    finish(world, job)
            except Killed:
                died = True
                world.restart()
        world.turn()
        assert phase(world) == "Succeed", f"after dying at write {at}"
        assert {title: len(uids) for title, uids in made.look().items()} == {"f-a": 1, "f-b": 1}, f"after dying at write {at}"
        if not died:
            break
        deaths += 1
    assert deaths >= 10


graphs = st.fixed_dictionaries(
    {title: st.sets(st.sampled_from(TITLES[:at]), max_size=at) if at else st.just(set()) for at, title in enumerate(TITLES)}
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("end"), st.sampled_from(TITLES), st.sampled_from([0, 0, 0, 1])),
        st.tuples(st.just("command"), st.sampled_from(TITLES), st.sampled_from(["AbortJob", "TerminateJob", "ResumeJob"])),
        st.tuples(st.just("delete"), st.sampled_from(TITLES), st.just(0)),
        st.tuples(st.just("die"), st.integers(1, 6), st.booleans()),
        st.tuples(st.just("turn"), st.just(0), st.just(0)),
    ),
    max_size=8,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs, steps, st.sampled_from(["retain", "delete"]))
def test_any_events_and_restarts_converge(graph: dict[str, set[str]], happenings: list[Any], retain: str):
    world = World()
    make(world, *(template(title) for title in TITLES))
    parts = [f"{title}<{','.join(sorted(targets))}" if targets else title for title, targets in graph.items()]
    make(world, flow("f", *parts, jobRetainPolicy=retain))
    for what, first, second in happenings:
        with contextlib.suppress(Killed):
            _happen(world, what, first, second)
        if world.manager is None:
            world.restart()
        _check_order(world, graph)
    world.restart()
    for _ in range(len(TITLES) + 1):
        world.turn()
        for job in jobs(world):
            if world.gone(job) or world.phase(job) == "Aborted":
                continue
            finish(world, job)
    world.turn()
    told = status(world)["jobStatusList"]
    if any(step["state"] in BROKEN for entry in told for step in entry["runningHistories"]):
        assert phase(world) == "Failed"  # for good, also when what was aborted was resumed
    else:
        assert (phase(world), {entry["state"] for entry in told}) == ("Succeed", {"Completed"})
        assert retain == "retain" or jobs(world) == []
    before = world.cluster.get(JOB_FLOW, "f", "default")
    world.restart()
    world.turn()
    assert world.cluster.get(JOB_FLOW, "f", "default") == before


def _happen(world: World, what: str, first: Any, second: Any) -> None:
    job = f"f-{first}"
    if what == "die":
        world.restart(DeathTrap(world.cluster, first, after=second))
        try:
            world.turn()
        finally:
            world.restart()
    elif what == "turn":
        world.turn()
    else:
        world.turn()
        with contextlib.suppress(NotFound):
            if what == "end":
                world.job(job)
                finish(world, job, second)
            elif what == "command":
                world.command(second, job)
            elif what == "delete":
                world.cluster.delete(JOB, job, "default")
        world.turn()


def _check_order(world: World, graph: dict[str, set[str]]) -> None:
    """A job is there only when what it waits for has completed; each is the flow's own."""
    done = {e["name"] for e in status(world).get("jobStatusList") or () if e["state"] == "Completed"}
    for job in world.cluster.list(JOB).items:
        targets = graph[name(job).removeprefix("f-")]
        assert {f"f-{target}" for target in targets} <= done
        assert (owner(job) or {})["kind"] == "JobFlow"
