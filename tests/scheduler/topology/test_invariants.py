"""What must hold for every tree of domains and every gang that asks for closeness."""

from __future__ import annotations

from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.actions.planning import Planner
from scheduler.topology.places import Places
from tests.scheduler.topology.test_allocate import CONF
from tests.scheduler.topology.world import close, domain
from tests.scheduler.world import World, gang, node

core = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

jobs = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.integers(0, 6),
        st.integers(1, 4),
        st.sampled_from([None, ("hard", 1), ("hard", 2), ("soft", None), ("hard", None)]),
        st.sampled_from([None, (2, None), (2, 1), (3, 2)]),
    ),
    min_size=1,
    max_size=6,
)
fleets = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3)), min_size=1, max_size=8)


def build(fleet: Any, specs: Any) -> World:
    """Nodes in racks 0 to 2 (3: in none), racks 0 and 1 on one spine."""
    nodes = [node(f"n{i}", cpu=cpu) for i, (cpu, _) in enumerate(fleet)]
    racks = {rack: [f"n{i}" for i, (_, where) in enumerate(fleet) if where == rack] for rack in range(3)}
    domains = [domain(f"r{rack}", 1, names or ["nobody"]) for rack, names in racks.items()]
    domains += [domain("m", 2, domains=["r0", "r1"])]
    parts = []
    for i, (replicas, least, cpu, topology, split) in enumerate(specs):
        least, policies = min(least, replicas), None
        if split is not None:
            size, tier = split
            policies = [{"name": "p", "subGroupSize": size, "minSubGroups": 0, "matchLabelKeys": ["part"]}]
            if tier is not None:
                policies[0]["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
        said: Any = False
        if topology is not None:
            said = {"mode": topology[0], **({} if topology[1] is None else {"highestTierAllowed": topology[1]})}
        made = close(f"j{i}", replicas, least, topology=said, policies=policies, at=i, cpu=cpu)
        for number, each in enumerate(made[1:]):
            each["metadata"]["labels"] = {"part": str(number // 2)}
        parts += made
    return World(nodes, domains, parts, conf=CONF)


def check(world: World) -> None:
    cache = world.offline.cache
    nodes = cache.nodes
    assert (nodes.used <= nodes.allocatable).all()
    assert not nodes.pipelined.any()
    places = Places(cache._network(), cache.jobs.values())
    started = world.started()
    for job in cache.jobs.values():
        assert started.get(job.name, 0) == 0 or started[job.name] >= job.min_available
        limit = places.job_limit(job)
        if limit is not None and job.uid in places.of_job:
            rows = [task.node for task in job.tasks.values() if task.node >= 0]
            assert places.tree.holding(rows).tier <= limit
        for sub in job.parts.sub_jobs.values() if job.parts is not None else ():
            limit = places.sub_limit(sub)
            if limit is not None and sub.uid in places.of_sub:
                assert places.of_sub[sub.uid].tier <= limit


@core
@given(fleets, jobs)
def test_gangs_start_whole_and_stay_where_they_may(fleet: Any, specs: Any) -> None:
    world = build(fleet, specs)
    for _ in range(3):
        world.cycle()
        check(world)


@core
@given(fleets, jobs)
def test_the_same_cluster_gives_the_same_decisions(fleet: Any, specs: Any) -> None:
    first, second = build(fleet, specs).cycle(2), build(fleet, specs).cycle(2)
    assert first.bound == second.bound
    assert first.verdicts == second.verdicts


@core
@given(fleets, jobs)
def test_plans_that_were_tried_leave_nothing_behind(fleet: Any, specs: Any) -> None:
    world = build(fleet, specs).cycle(3)
    nodes = world.offline.cache.nodes
    for row in nodes.live_rows():
        expected = sum((task.request for task in nodes.tasks[row].values()), np.zeros(nodes.width, np.int64))
        assert (nodes.used[row] == expected).all()
        assert (nodes.listed[row] == expected).all()


@core
@given(fleets, st.integers(1, 6), st.integers(1, 4))
def test_soft_starts_whatever_starts_without_a_topology(fleet: Any, replicas: int, cpu: int) -> None:
    nodes = [node(f"n{i}", cpu=each) for i, (each, _) in enumerate(fleet)]
    domains = [domain("r", 1, [f"n{i}" for i, (_, where) in enumerate(fleet) if where])]
    plain = World(nodes, domains, gang("a", replicas, cpu=cpu), conf=CONF).cycle()
    soft = World(nodes, domains, close("a", replicas, cpu=cpu, mode="soft"), conf=CONF).cycle()
    assert soft.started() == plain.started()


@core
@given(fleets, jobs)
def test_domains_that_are_passed_over_would_not_have_been_better(fleet: Any, specs: Any) -> None:
    with patch.object(Planner, "_promises", lambda self, job, row: [inf] * len(row)):
        thorough = build(fleet, specs).cycle(2)
    assert build(fleet, specs).cycle(2).bound == thorough.bound
