"""Names decide nothing but ties, and a machine more never makes a job wait that is alone."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, conf, job
from tests.scheduler.world import World, gang, node, queue

TEXT = conf("enqueue, allocate, preempt, reclaim, backfill", "priority -gang conformance -drf predicates proportion nodeorder")
core = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fleets = st.lists(st.integers(1, 6), min_size=1, max_size=4)
jobs = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.sampled_from("ab"), st.sampled_from([LOW, MID, HIGH])),
    min_size=2,
    max_size=6,
)


def play(fleet, specs, prefix: str) -> tuple[dict, list, dict]:
    """Binds, evictions and verdicts of some cycles, nodes and jobs called by a prefix that keeps their order."""
    parts = [
        job(f"{prefix}{i}", replicas, min(least, replicas), cpu=cpu, queue=where, priority=priority, at=i)
        for i, (replicas, least, cpu, where, priority) in enumerate(specs)
    ]
    nodes = [node(f"{prefix}n{i}", cpu=cpu) for i, cpu in enumerate(fleet)]
    world = Busy(nodes, queue("a"), queue("b"), *parts[: len(parts) // 2], conf=TEXT).cycle(3)
    world.add(*parts[len(parts) // 2 :]).cycle(3)
    evictions = [(record.victim, record.preemptor_pod, record.node, record.rule) for record in world.records]
    return world.bound, evictions, {name: (v and (v.code, v.short, v.spared)) for name, v in world.verdicts.items()}


@core
@given(fleets, jobs)
def test_other_names_in_the_same_order_change_only_the_names(fleet, specs):
    assert play(fleet, specs, "x") == _renamed(play(fleet, specs, "quite-another-"), "quite-another-", "x")


def _renamed(found, old: str, new: str):
    if isinstance(found, str):
        return found.replace(old, new)
    if isinstance(found, dict):
        return {_renamed(key, old, new): _renamed(value, old, new) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return type(found)(_renamed(each, old, new) for each in found)
    return found


@core
@given(fleets, st.lists(st.integers(1, 6), max_size=3), st.integers(1, 6), st.integers(0, 6), st.integers(1, 4))
def test_a_job_that_is_alone_and_fits_starts_whatever_free_nodes_are_added(fleet, more, replicas, least, cpu):
    def started(sizes) -> int:
        nodes = [node(f"n{i}", cpu=size) for i, size in enumerate(sizes)]
        return World(nodes, gang("a", replicas, min(least, replicas), cpu=cpu)).cycle(3).started().get("a", 0)

    assert started([*fleet, *more]) >= started(fleet)
