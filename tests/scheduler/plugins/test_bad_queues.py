"""Whatever queues, quotas and annotations say, a cycle ends, and every object is either used or set aside by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scheduler.world import World, gang, node, queue

CONF = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: sla
  - name: priority
  - name: gang
- plugins:
  - name: drf
    enableHierarchy: {hierarchy}
  - name: predicates
  - name: {shares}
    enableHierarchy: {hierarchy}
  - name: resourcequota
  - name: nodegroup
    enableHierarchy: {hierarchy}
    arguments:
      strict: false
  - name: usage
"""
ODD: Any = st.one_of(
    st.none(), st.booleans(), st.sampled_from([-1, 0, 10**9, 10**20]), st.text(max_size=3), st.just([]), st.just({}),
    st.just({"cpu": "-1"}),
    st.just({"cpu": "1e30"}), st.just({"cpu": "2", "memory": "4Gi"}), st.just({"resource": {"cpu": "9223372036854775"}}),
    st.sampled_from(["a", "b", "c", "root"]),
)  # fmt: skip
FIELDS = ("weight", "capability", "deserved", "guarantee", "parent", "priority", "affinity", "reclaimable")
MARKS = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights", "volcano.sh/nodegroup-resource-limits")


@st.composite
def worlds(draw: Any) -> Any:
    queues = []
    for name in ("a", "b", "c"):
        found = queue(name, **{key: draw(ODD) for key in draw(st.sets(st.sampled_from(FIELDS), max_size=3))})
        found["metadata"]["annotations"] = {
            key: draw(st.text(alphabet='root/ab1{}.-:"', max_size=8)) for key in draw(st.sets(st.sampled_from(MARKS)))
        }
        queues.append(found)
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default", "uid": "q"},
        "spec": {"hard": draw(ODD)}, "status": {"used": draw(ODD)},
    }  # fmt: skip
    machine = node("n", 4, "8Gi")
    machine["metadata"]["annotations"] = {"basalt.dev/usage": draw(st.text(alphabet='{}"cpu:1', max_size=8))}
    jobs = [gang(f"j{name}", 2, 1, queue=name, minResources={"cpu": "1"}, cpu=1, memory="1Gi") for name in "abc"]
    jobs[0][0]["metadata"]["annotations"] = {"volcano.sh/sla-waiting-time": draw(st.text(alphabet="1hms.-", max_size=4))}
    words = {"shares": draw(st.sampled_from(["capacity", "proportion"])), "hierarchy": draw(st.sampled_from(["true", "false"]))}
    conf = CONF.format(**words)
    if words["shares"] == "proportion" and words["hierarchy"] == "true":
        conf = conf.replace("  - name: predicates\n", "- plugins:\n  - name: predicates\n")
    return [machine, queues, quota, *jobs], conf


@settings(deadline=None, max_examples=100)
@given(worlds())
def test_a_cycle_survives_whatever_a_queue_says(drawn: Any) -> None:
    objs, conf = drawn
    world = World(*objs, conf=conf).cycle(2)
    aside = {key for kind, key in world.offline.cache.aside if kind == "Queue"}
    for name in ("a", "b", "c"):
        taken = world.offline.cache.queues.keys()
        assert (name in taken) != (f"/{name}" in aside)
        assert world.started().get(f"j{name}", 0) or world.verdicts.get(f"j{name}") is not None


@pytest.mark.parametrize(("weight", "started"), [(0, {"j": 1, "k": 1}), (10**9, {"j": 1, "k": 1}), (10**20, {"k": 1})])
def test_a_weight_that_is_no_32_bit_number_is_named_and_others_are_taken(weight: int, started: dict[str, int]) -> None:
    conf = CONF.format(shares="proportion", hierarchy="false")
    jobs = [gang(name, 1, queue=where, cpu=1, memory="1Gi") for name, where in (("j", "a"), ("k", "b"))]
    world = World(node("n"), queue("a", weight), queue("b"), *jobs, conf=conf).cycle()
    assert world.started() == started
    if "j" not in started:
        assert "weight must be a 32-bit number" in world.offline.cache.aside["Queue", "/a"].reason
