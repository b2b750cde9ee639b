"""What would unblock a job: each way is tried in earnest, on the real scheduler and controllers, and the job starts."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.errors import Unavailable
from cluster.kinds import JOB, NAMESPACE
from cluster.port import WatchEvent
from portal.unblock import copy
from portal.unblock.ways import Way
from tests.portal.unblock.world import Stage, manifest

NODES = [{"name": f"n{i}", "cpu": 64, "memory": "256Gi", "gpu": 8} for i in range(3)]
QUEUES = ("default", "a", "b")


def full(*, classes: bool = False) -> Stage:
    """Three nodes of 8 GPUs, of which two are taken."""
    stage = Stage(nodes=NODES, queues=[{"name": "a"}, {"name": "b", "capability": {"gpu": 8}}])
    if classes:
        stage.class_("high", 1000)
    stage.submit(manifest("first", 1, cpu=4, gpu=8))
    stage.submit(manifest("second", 1, cpu=4, gpu=8, queue="a"))
    stage.rest()
    return stage


def told(found: list[Way]) -> dict[str, dict[str, Any]]:
    return {way.code: way.values for way in found}


def test_a_gang_that_is_too_large_now_may_be_smaller_or_ask_less():
    stage = full()
    stage.submit(manifest("big", 2, cpu=4, gpu=8))
    stage.rest()
    found = told(stage.ways("big", QUEUES))
    assert found["minimum"] == {"from": 2, "to": 1}
    assert found["per_pod"] == {"from": 8000, "to": 4000, "resource": "nvidia.com/gpu", "task": "w"}
    assert found["wait"]["amount"] == 8000


def test_a_queue_at_its_limit_sends_to_another_queue():
    stage = full()
    stage.submit(manifest("limited", 2, cpu=4, gpu=5, queue="b"))
    stage.rest()
    found = told(stage.ways("limited", QUEUES, 9))
    assert found["minimum"] == {"from": 2, "to": 1}
    assert "queue" not in found  # two pods of five GPUs have no two nodes
    stage.submit(manifest("small", 3, cpu=4, gpu=4, queue="b"))
    stage.rest()
    assert "queue" not in told(stage.ways("small", ("b",), 9))


def test_only_queues_that_are_offered_are_named():
    stage = Stage(nodes=NODES, queues=[{"name": "a"}, {"name": "b", "capability": {"gpu": 8}}])
    stage.submit(manifest("limited", 3, cpu=4, gpu=4, queue="b"))
    stage.rest()
    assert stage.running("limited") == 0
    assert told(stage.ways("limited", QUEUES, 9))["queue"]["queue"] in ("a", "default")
    assert told(stage.ways("limited", ("a", "b"), 9))["queue"] == {"from": "b", "queue": "a"}
    assert "queue" not in told(stage.ways("limited", ("b",), 9))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"nodeSelector": {"zone": "z9"}}, {"what": "selector", "key": "zone", "value": "z9", "task": "w"}),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z9"]}]}]}}}},
            {"what": "affinity", "task": "w"},
        ),
    ],
)  # fmt: skip
def test_a_selector_that_excludes_all_nodes_is_named(pod: Any, expected: Any):
    stage = Stage(nodes=NODES)
    stage.submit(manifest("picky", 1, cpu=1, gpu=1, pod=pod))
    stage.rest()
    assert told(stage.ways("picky", QUEUES)) == {"placement": expected}


def test_a_higher_priority_names_whom_it_evicts():
    stage = Stage(nodes=NODES[:1])
    stage.class_("high", 1000)
    cheap = manifest("cheap", 2, least=1, cpu=4, gpu=4)
    cheap["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    stage.submit(cheap)
    stage.rest()
    stage.submit(manifest("urgent", 1, cpu=4, gpu=1))
    stage.rest()
    way = next(way for way in stage.ways("urgent", ("default",), 9) if way.code == "priority")
    assert way.values["class"] == "high"
    assert [each.victim for each in way.evicted] == ["default/cheap-w-1"]


def test_a_run_that_breaks_makes_the_copy_anew():
    stage = full()
    with pytest.raises(ValueError, match="cannot change a Namespace"), stage.copy.pinned() as view:
        view.play([WatchEvent("ADDED", NAMESPACE, {"metadata": {"name": "x"}})])
    with pytest.raises(Unavailable):
        view.play()
    stage.submit(manifest("big", 2, cpu=4, gpu=8))
    stage.rest()
    assert told(stage.ways("big", QUEUES))["minimum"] == {"from": 2, "to": 1}


def test_a_copy_that_nobody_asks_is_let_go_and_begins_again(monkeypatch):
    monkeypatch.setattr(copy, "REST", 0.0)
    stage = full()
    let_go, close = threading.Event(), stage.copy.close
    monkeypatch.setattr(stage.copy, "close", lambda: (close(), let_go.set()))
    with stage.copy.pinned() as view:
        assert not let_go.is_set()
    assert let_go.wait(20)
    assert stage.copy.latest() is None
    assert view.cache.jobs.keys() == stage.view(lambda again: again.cache.jobs.keys())


@st.composite
def recipes(draw: Any) -> dict[str, Any]:
    jobs = [
        {
            "pods": draw(st.integers(1, 3)), "gpu": draw(st.integers(1, 8)), "queue": draw(st.sampled_from(QUEUES)),
            "priority": draw(st.sampled_from(["", "high"])),
        }
        for _ in range(draw(st.integers(2, 5)))
    ]  # fmt: skip
    last = {
        "pods": draw(st.integers(1, 4)),
        "gpu": draw(st.integers(1, 8)),
        "queue": draw(st.sampled_from(QUEUES)),
        "priority": "",
    }
    return {"nodes": draw(st.integers(1, 3)), "jobs": [*jobs, last], "zone": draw(st.booleans())}


def built(recipe: dict[str, Any]) -> tuple[Stage, list[str]]:
    stage = Stage(nodes=NODES[: recipe["nodes"]], queues=[{"name": "a"}, {"name": "b", "capability": {"gpu": 8}}])
    stage.class_("high", 1000)
    stage.class_("higher", 2000)
    for index, job in enumerate(recipe["jobs"]):
        is_last = index + 1 == len(recipe["jobs"])
        pod = {"nodeSelector": {"zone": "z9"}} if recipe["zone"] and is_last else {}
        stage.submit(
            manifest(f"j{index}", job["pods"], cpu=1, gpu=job["gpu"], queue=job["queue"], priority=job["priority"], pod=pod)
        )
        stage.rest()
    waiting = [f"j{index}" for index in range(len(recipe["jobs"])) if not stage.running(f"j{index}")]
    return stage, waiting


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(recipes())
def test_after_each_way_is_done_the_job_starts(recipe: dict[str, Any]):
    stage, waiting = built(recipe)
    for name in waiting[-1:]:
        for place, way in enumerate(stage.ways(name, QUEUES, 9)):
            real, again = built(recipe)
            assert again == waiting
            same = real.ways(name, QUEUES, 9)[place]
            assert (same.code, _without_uids(same.values)) == (way.code, _without_uids(way.values))
            real.apply(name, same)
            real.rest()
            assert real.running(name) >= int(real.job(name)["spec"]["minAvailable"]), (name, way.code, way.values)
            evicted = {each.victim for each in same.evicted}
            assert len(evicted) == len(same.evicted)


def _without_uids(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "job"}


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(2, 6), st.integers(1, 8), st.integers(1, 3))
def test_no_larger_minimum_would_do(pods: int, gpus: int, nodes: int):
    def made() -> Stage:
        stage = Stage(nodes=NODES[:nodes])
        stage.submit(manifest("one", pods, cpu=1, gpu=gpus))
        stage.rest()
        return stage

    stage = made()
    found = {way.code: way for way in stage.ways("one", ("default",), 9)} if not stage.running("one") else {}
    if "minimum" in found:
        number = found["minimum"].values["to"] + 1
        real = made()
        real.cluster.patch(JOB, "one", "default", {"spec": {"minAvailable": number}})
        real.rest()
        assert real.running("one") == 0
