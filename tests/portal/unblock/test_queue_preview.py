"""A queue's change looked at first: what it says comes true when it is written, and nothing is written by looking."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from jobs.keys import group_name
from portal.unblock import queue_preview
from queues import operations
from tests.portal.unblock.world import Stage, manifest

NODES = [{"name": f"n{index}", "cpu": 32, "memory": "128Gi", "gpu": 8} for index in range(2)]
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)


def stage(capability: int = 8) -> Stage:
    made = Stage(nodes=NODES, queues=[{"name": "a", "capability": {"gpu": capability}}, {"name": "b"}])
    made.submit(manifest("held", 2, cpu=1, gpu=4, queue="a"))
    made.rest()
    made.submit(manifest("waits", 1, cpu=1, gpu=4, queue="a"))
    made.rest()
    return made


def look(made: Stage, name: str, spec: dict[str, Any]) -> queue_preview.QueuePreview:
    queue = operations.update(made.cluster, name, spec, dry_run=True)
    return made.view(lambda view: queue_preview.on(view, queue))


def key(made: Stage, name: str) -> str:
    return f"default/{group_name(made.job(name))}"


def everything(made: Stage) -> Any:
    return {
        str(kind): [obj["metadata"]["resourceVersion"] for obj in made.cluster.list(kind).items]
        for kind in (NODE, QUEUE, JOB, POD_GROUP, POD)
    }


def test_a_higher_capability_lets_a_job_start():
    made = stage()
    before = everything(made)
    found = look(made, "a", {"capability": {"nvidia.com/gpu": "16"}})
    assert everything(made) == before
    assert found.starts == {key(made, "waits"): 1}
    assert found.waits == {}
    change = next(each for each in found.queues if each.name == "a")
    assert [units["nvidia.com/gpu"] for units in change.allocated] == [8000, 12000]
    operations.update(made.cluster, "a", {"capability": {"nvidia.com/gpu": "16"}})
    made.rest()
    assert made.running("waits") == 1


def test_a_lower_capability_moves_nobody_who_runs():
    made = stage(16)
    found = look(made, "a", {"capability": {"nvidia.com/gpu": "4"}})
    assert found.is_nothing
    assert found.evicted == []


def test_what_a_queue_may_reclaim_is_told():
    made = Stage(nodes=NODES[:1], queues=[{"name": "a", "weight": 1}, {"name": "b", "weight": 1}])
    big = manifest("big", 8, least=1, cpu=1, gpu=1, queue="a")
    big["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    made.submit(big)
    made.rest()
    made.submit(manifest("other", 1, cpu=1, gpu=1, queue="b"))
    made.rest()
    found = look(made, "b", {"weight": 7})
    operations.update(made.cluster, "b", {"weight": 7})
    before = made.running("big")
    made.rest()
    assert len(found.evicted) == before - made.running("big")


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 8), st.sampled_from(["a", "b"])), min_size=1, max_size=5),
    st.sampled_from(["a", "b"]),
    st.sampled_from(
        [{"weight": 9}, {"capability": {"nvidia.com/gpu": "16"}}, {"capability": {"nvidia.com/gpu": "4"}}, {"reclaimable": False}]
    ),
)
def test_what_is_foretold_comes_true(jobs: Any, name: str, spec: dict[str, Any]):
    made = Stage(nodes=NODES, queues=[{"name": "a", "capability": {"gpu": 8}}, {"name": "b"}])
    for index, (pods, gpus, queue) in enumerate(jobs):
        made.submit(manifest(f"j{index}", pods, cpu=1, gpu=gpus, queue=queue))
        made.rest()
    ran = {f"j{index}" for index in range(len(jobs)) if made.running(f"j{index}")}
    found = look(made, name, spec)
    operations.update(made.cluster, name, spec)
    made.rest()
    now = {f"j{index}" for index in range(len(jobs)) if made.running(f"j{index}")}
    assert set(found.starts) == {key(made, each) for each in now - ran}
