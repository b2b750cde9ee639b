"""All paths of placement choose what one naive loop chooses: every node looked at afresh for every pod."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.placement import ladder
from tests.scheduler.world import CONF, World, gang, group, node, pod, queue

SPREAD = CONF
PACK = CONF.replace(
    "- name: nodeorder",
    "- name: nodeorder\n    arguments: {leastrequested.weight: 0}\n  - name: binpack\n    arguments: {binpack.weight: 5}",
)

terms = st.sampled_from([None, "a", "b"])
classes = st.tuples(
    st.sampled_from([1, 2, 3]),  # cpu
    st.sampled_from([0, 0, 1, 2]),  # gpu
    terms,  # preferred zone
    st.sampled_from([0, 0, 0, 80]),  # host port
)
fleets = st.lists(
    st.tuples(st.integers(2, 12), st.sampled_from([0, 4, 8]), st.integers(1, 8), terms, st.booleans(), st.booleans()),
    min_size=1,
    max_size=9,
)
jobs = st.lists(
    st.tuples(
        st.lists(st.tuples(classes, st.integers(1, 7)), min_size=1, max_size=3),
        st.integers(0, 12),
        st.sampled_from(["default", "q"]),
    ),
    min_size=1,
    max_size=5,
)


def naive(evaluator, standing, count, within=None):
    """One pod a time, everything computed again."""
    del count
    fresh = evaluator._fresh(standing.cls)
    candidates, pipelined = fresh.candidates(within)
    if not candidates.any():
        return [], pipelined
    return [int(fresh.scores(candidates).argmax())], pipelined


def preferring(zone: str):
    """Three levels, so that the scale moves when the best is used up: the zone itself, any zone, none."""
    wishes = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]}}
        for weight, zones in ((10, [zone]), (3, ["a", "b"]))
    ]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}


def pods_of(name: str, role: str, cls, replicas: int):
    cpu, gpu, zone, port = cls
    spec = preferring(zone) if zone else {}
    made = [pod(name, role, i, {"cpu": cpu} | ({"gpu": gpu} if gpu else {}), **spec) for i in range(replicas)]
    for each in made:
        if port:
            each["spec"]["containers"][0]["ports"] = [{"hostPort": port}]
    return made


def build(fleet, specs, conf):
    nodes, leaving = [], []
    for i, (cpu, gpu, pods, zone, soft, busy) in enumerate(fleet):
        nodes.append(node(f"n{i}", cpu=cpu, gpu=gpu, pods=pods, labels={"zone": zone} if zone else {}))
        if soft:
            nodes[-1]["spec"]["taints"] = [{"key": "soft", "effect": "PreferNoSchedule"}]
        if busy:
            leaving.append(pod("old", "w", i, {"cpu": 1}, nodeName=f"n{i}"))
            leaving[-1]["status"]["phase"] = "Running"
            leaving[-1]["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    parts = []
    for number, (roles, least, where) in enumerate(specs):
        name, total = f"j{number}", sum(replicas for _, replicas in roles)
        parts.append(group(name, min(least, total), queue=where, at=number))
        for place, (cls, replicas) in enumerate(roles):
            parts += pods_of(name, f"r{place}", cls, replicas)
    return World(nodes, leaving, queue("q", capability={"cpu": "9"}), parts, conf=conf)


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(fleets, jobs, st.sampled_from([SPREAD, PACK]))
def test_ladders_and_caches_choose_what_the_naive_loop_chooses(fleet, specs, conf):
    fast = build(fleet, specs, conf).cycle(2)
    with patch.object(ladder, "choose", naive):
        slow = build(fleet, specs, conf).cycle(2)
    assert fast.bound == slow.bound
    assert fast.gpus == slow.gpus


def test_a_run_goes_on_by_a_new_scale_when_the_best_level_is_used_up():
    spec = preferring("a")
    fleet = [
        node("free", cpu=64, labels={}),
        node("best", cpu=2, labels={"zone": "a"}),
        node("good", cpu=8, labels={"zone": "b"}),
    ]
    parts = [fleet, gang("a", 8, cpu=1, pod_spec=spec)]
    fast = World(*parts).cycle()
    with patch.object(ladder, "choose", naive):
        slow = World(*parts).cycle()
    assert fast.bound == slow.bound
    assert list(fast.bound.values())[:3] == ["best", "best", "good"]


def test_a_run_is_placed_in_one_go_and_in_the_same_order():
    fast = World([node(f"n{i}", cpu=16) for i in range(40)], gang("a", 200, cpu=2)).cycle()
    with patch.object(ladder, "choose", naive):
        slow = World([node(f"n{i}", cpu=16) for i in range(40)], gang("a", 200, cpu=2)).cycle()
    assert len(fast.bound) == 200
    assert fast.bound == slow.bound


def test_the_best_rows_are_taken_by_score_then_by_row():
    scores = np.array([1.0, 3.0, 2.0, 3.0, 2.0, 2.0])
    everywhere = np.ones(6, np.bool_)
    assert sorted(ladder._best(scores, everywhere, 3).tolist()) == [1, 2, 3]
    assert sorted(ladder._best(scores, everywhere, 9).tolist()) == [0, 1, 2, 3, 4, 5]
