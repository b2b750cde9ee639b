"""What must hold for every cluster and every gang, at every moment."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.scheduler.world import BARE, CONF, World, gang, node, queue

CONF_BINPACK = CONF.replace("- name: nodeorder", "- name: nodeorder\n  - name: binpack\n    arguments:\n      binpack.weight: 3")
settings.register_profile("core", deadline=None, suppress_health_check=[HealthCheck.too_slow])
core = settings(settings.get_profile("core"), max_examples=40)

amounts = st.integers(1, 8)
jobs = st.lists(
    st.tuples(st.integers(1, 8), st.integers(0, 8), amounts, st.sampled_from([0, 0, 1, 2, 4]), st.sampled_from(["default", "q"])),
    min_size=1,
    max_size=10,
)
fleets = st.lists(st.tuples(st.integers(2, 16), st.sampled_from([0, 4, 8]), st.integers(1, 6)), min_size=1, max_size=6)


def build(fleet, specs, conf=CONF_BINPACK) -> World:
    nodes = [node(f"n{i}", cpu=cpu, gpu=gpu, pods=pods) for i, (cpu, gpu, pods) in enumerate(fleet)]
    parts = []
    for i, (replicas, least, cpu, gpu, where) in enumerate(specs):
        asked = {"cpu": cpu, "memory": "1Gi"} | ({"gpu": gpu} if gpu else {})
        needs = {"cpu": str(cpu * min(least, replicas))}
        parts += gang(f"j{i}", replicas, min(least, replicas), queue=where, at=i, minResources=needs, **asked)
    return World(nodes, queue("q", capability={"cpu": "12"}), parts, conf=conf)


def check(world: World) -> None:
    cache = world.offline.cache
    nodes = cache.nodes
    assert (nodes.used <= nodes.allocatable).all()
    assert not nodes.pipelined.any()
    started = world.started()
    for job in cache.jobs.values():
        assert started.get(job.name, 0) == 0 or started[job.name] >= job.min_available
    held = sum((job.allocated for job in cache.jobs.values() if job.queue == "q"), np.zeros(nodes.width, np.int64))
    assert held[0] <= 12_000
    for row in nodes.live_rows():
        given = [index for task in nodes.tasks[row].values() for index in task.gpus]
        assert len(given) == len(set(given))
        assert len(given) == sum(task.cls.gpus for task in nodes.tasks[row].values())


@core
@given(fleets, jobs)
def test_gangs_start_whole_and_nothing_is_overcommitted(fleet, specs):
    world = build(fleet, specs)
    for _ in range(4):
        world.cycle()
        check(world)


@core
@given(fleets, jobs)
def test_the_same_cluster_gives_the_same_decisions(fleet, specs):
    first, second = build(fleet, specs).cycle(3), build(fleet, specs).cycle(3)
    assert first.bound == second.bound
    assert first.gpus == second.gpus
    assert first.verdicts == second.verdicts


@core
@given(st.integers(1, 6), st.integers(1, 4), st.integers(2, 4))
def test_gangs_that_each_need_the_whole_cluster_never_hold_pods_together(count, per_node, gangs):
    nodes = [node(f"n{i}", cpu=per_node) for i in range(count)]
    size = count * per_node
    world = World(nodes, *[gang(f"g{i}", size, cpu=1, at=i) for i in range(gangs)], conf=BARE)
    for _ in range(3):
        world.cycle()
        assert world.started() == {"g0": size}


@core
@given(fleets, jobs)
def test_what_was_counted_step_by_step_is_what_a_fresh_look_finds(fleet, specs):
    world = build(fleet, specs).cycle(3)
    cache = world.offline.cache
    for job in cache.jobs.values():
        held = [task for task in job.tasks.values() if task.node >= 0]
        expected = sum((task.request for task in held), np.zeros(cache.dims.width, np.int64))
        assert (job.allocated == expected).all()
        counted = Counter(task.status for task in job.tasks.values())
        assert all(job.count(status) == number for status, number in counted.items())
    nodes = cache.nodes
    for row in nodes.live_rows():
        expected = sum((task.request for task in nodes.tasks[row].values()), np.zeros(nodes.width, np.int64))
        assert (nodes.used[row] == expected).all()
        assert (nodes.listed[row] == expected).all()
        assert nodes.pod_count[row] == len(nodes.tasks[row])
