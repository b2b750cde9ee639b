"""A dry run and the real thing: with the cluster unchanged between them, the decisions are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cluster import objects
from cluster.kinds import POD
from jobs import operations
from portal.unblock.trial import Trial, try_job
from tests.portal.unblock.world import SETUP, Stage, manifest

SHIPPED = yaml.safe_load((Path(__file__).parents[3] / "deploy" / "volcano-scheduler.conf").read_text())
DEPLOYED = {"actions": SHIPPED["actions"].replace(" ", "").split(","), "plugins": [tier["plugins"] for tier in SHIPPED["tiers"]]}
QUEUES = ("default", "a", "b")


def tried(stage: Stage, job: dict[str, Any]) -> Trial:
    complete = operations.submit(stage.cluster, job, dry_run=True)
    return stage.view(lambda view: try_job(view, complete))


def placed(stage: Stage, name: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    found = {}
    for pod in stage.world.pods(name):
        indices = objects.annotations(pod).get(objects.GPU_INDICES, "")
        found[objects.name(pod)] = (pod["spec"].get("nodeName", ""), tuple(int(each) for each in indices.split(",") if each))
    return found


@st.composite
def jobs(draw: Any, name: str) -> dict[str, Any]:
    words: dict[str, Any] = {"cpu": draw(st.integers(1, 16)), "gpu": draw(st.integers(0, 8))}
    if not words["gpu"]:
        del words["gpu"]
    pods = draw(st.integers(1, 4))
    return manifest(
        name, pods, least=draw(st.integers(1, pods)), queue=draw(st.sampled_from(QUEUES)),
        priority=draw(st.sampled_from(["", "", "high"])), **words,
    )  # fmt: skip


@st.composite
def worlds(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    nodes = [
        {"name": f"n{index}", "cpu": draw(st.sampled_from([16, 32])), "memory": "256Gi", "gpu": draw(st.sampled_from([0, 4, 8]))}
        for index in range(draw(st.integers(1, 4)))
    ]
    before = [draw(jobs(f"j{index}")) for index in range(draw(st.integers(0, 4)))]
    return draw(st.sampled_from([SETUP, DEPLOYED])), nodes, before, draw(jobs("new"))


QUICK = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)
@given(worlds())
def test_a_dry_run_and_a_submission_decide_alike(made: Any):
    setup, nodes, before, new = made
    stage = Stage(nodes=nodes, queues=[{"name": "a", "weight": 3}, {"name": "b", "capability": {"gpu": 8}}], setup=setup)
    stage.class_("high", 1000)
    for job in before:
        stage.submit(job)
        stage.rest()
    version = stage.cluster.list(POD).resource_version
    trial = tried(stage, new)
    assert stage.cluster.list(POD).resource_version == version, "a dry run writes nothing"
    gone: list[str] = []
    stage.submit(new)
    for _ in range(trial.cycles):
        stage.world.cycle()
        gone += [each.victim for each in stage.world.record.evictions]
    real = placed(stage, "new")
    if trial.starts:
        assert {pod: (node, gpus) for pod, node, gpus in trial.places} == {pod: at for pod, at in real.items() if at[0]}
    else:
        assert not any(node for node, _gpus in real.values())
        assert stage.world.verdict("new") == trial.verdict
    assert gone == [each.victim for each in trial.evicted]


def test_it_says_where_each_pod_would_go_and_at_whose_cost():
    stage = Stage(nodes=[{"name": "n0", "cpu": 16, "memory": "64Gi", "gpu": 4}])
    stage.class_("high", 1000)
    cheap = manifest("cheap", 4, least=1, cpu=1, gpu=1)
    cheap["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    stage.submit(cheap)
    stage.rest()
    trial = tried(stage, manifest("urgent", 1, cpu=1, gpu=1, priority="high"))
    assert not trial.starts  # 5 of 4 GPUs are more than are admitted
    assert trial.verdict is not None
    assert (trial.verdict.code, trial.verdict.resource, trial.verdict.short) == ("overcommit", "nvidia.com/gpu", 200)
    free = tried(stage, manifest("plain", 2, cpu=1))
    assert [(pod, node) for pod, node, _gpus in free.places] == [("plain-w-0", "n0"), ("plain-w-1", "n0")]
