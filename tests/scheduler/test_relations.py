"""What a change of the cluster must not change: its names, and free nodes that a lone job does not need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.framework.explain import Verdict
from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, conf, job
from tests.scheduler.world import World, gang, node, queue

CONF = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
CROWDED = conf("enqueue, allocate, preempt, reclaim, backfill", "priority -gang conformance -drf predicates proportion nodeorder")
Names = Callable[[str, int], str]
often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

fleets = st.lists(
    st.tuples(st.integers(1, 16), st.sampled_from([0, 4, 8]), st.integers(1, 6), st.sampled_from(["", "a", "b"])),
    min_size=1,
    max_size=6,
)
jobs = st.lists(
    st.tuples(
        st.integers(1, 6), st.integers(0, 6), st.integers(0, 8), st.sampled_from([0, 0, 1, 2]), st.sampled_from(["", "a", "b"])
    ),
    min_size=1,
    max_size=8,
)


def nodes_of(fleet: Any, name: Names) -> list[Any]:
    return [
        node(name("n", i), cpu=cpu, gpu=gpu, pods=pods, labels={"zone": zone} if zone else None)
        for i, (cpu, gpu, pods, zone) in enumerate(fleet)
    ]


def job_of(spec: Any, i: int, name: Names) -> list[Any]:
    replicas, least, cpu, gpu, zone = spec
    asked = {"cpu": cpu} | ({"gpu": gpu} if gpu else {}) if cpu or gpu else {}
    pod_spec = {"nodeSelector": {"zone": zone}} if zone else {}
    needs = {"cpu": str(cpu * min(least, replicas))}
    return gang(name("j", i), replicas, min(least, replicas), at=i, pod_spec=pod_spec, minResources=needs, **asked)


def decided(fleet: Any, specs: Any, name: Names) -> World:
    return World(nodes_of(fleet, name), *[job_of(spec, i, name) for i, spec in enumerate(specs)], conf=CONF).cycle(3)


def plain(kind: str, i: int) -> str:
    return f"{kind}{i}"


def other(kind: str, i: int) -> str:
    return f"z{kind}x{i}y"


def facts(verdict: Verdict | None) -> Any:
    return None if verdict is None else {each.name: getattr(verdict, each.name) for each in fields(verdict)}


@often
@given(fleets, jobs)
def test_other_names_in_the_same_order_change_nothing_but_the_names(fleet, specs):
    first, second = decided(fleet, specs, plain), decided(fleet, specs, other)
    names = {plain(kind, i): other(kind, i) for kind in "nj" for i in range(10)}
    renamed = {pod.replace(job := pod.split("-")[0], names[job], 1): names[place] for pod, place in first.bound.items()}
    assert renamed == second.bound
    assert list(first.gpus.values()) == list(second.gpus.values())
    assert {names[job]: facts(verdict) for job, verdict in first.verdicts.items()} == {
        job: facts(verdict) for job, verdict in second.verdicts.items()
    }
    phases = [[write.status.get("phase") for write in cycle.writes.statuses] for cycle in first.cycles]
    assert phases == [[write.status.get("phase") for write in cycle.writes.statuses] for cycle in second.cycles]


@often
@given(fleets, fleets, jobs, st.integers(0, 6))
def test_free_nodes_never_make_a_lone_gang_wait_that_fitted(fleet, more, specs, place):
    alone = specs[:1]
    before = World(nodes_of(fleet, plain), job_of(alone[0], 0, plain), conf=CONF).cycle(2)
    extra = nodes_of(more, lambda kind, i: f"extra{i}")
    at = min(place, len(fleet))
    known = nodes_of(fleet, plain)
    after = World(known[:at], extra, known[at:], job_of(alone[0], 0, plain), conf=CONF).cycle(2)
    assert len(after.bound) >= len(before.bound)


crowds = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.sampled_from("ab"), st.sampled_from([LOW, MID, HIGH])),
    min_size=2,
    max_size=6,
)


def crowded(fleet: Any, specs: Any, prefix: str) -> tuple[dict[str, str], list[Any], dict[str, Any]]:
    """Binds, evictions and verdicts of some cycles, nodes and jobs called by a prefix that keeps their order."""
    parts = [
        job(f"{prefix}{i}", replicas, min(least, replicas), cpu=cpu, queue=where, priority=priority, at=i)
        for i, (replicas, least, cpu, where, priority) in enumerate(specs)
    ]
    nodes = [node(f"{prefix}n{i}", cpu=cpu) for i, cpu in enumerate(fleet)]
    world = Busy(nodes, queue("a"), queue("b"), *parts[: len(parts) // 2], conf=CROWDED).cycle(3)
    world.add(*parts[len(parts) // 2 :]).cycle(3)
    evictions = [(record.victim, record.preemptor_pod, record.node, record.rule) for record in world.records]
    return world.bound, evictions, {name: (v and (v.code, v.short, v.spared)) for name, v in world.verdicts.items()}


def called(found: Any, old: str, new: str) -> Any:
    """The same with other names."""
    if isinstance(found, str):
        return found.replace(old, new)
    if isinstance(found, dict):
        return {called(key, old, new): called(value, old, new) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return type(found)(called(each, old, new) for each in found)
    return found


@often
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), crowds)
def test_other_names_in_the_same_order_evict_the_same(fleet, specs):
    assert crowded(fleet, specs, "x") == called(crowded(fleet, specs, "quite-another-"), "quite-another-", "x")
