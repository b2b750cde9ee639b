"""resource-strategy-fit: scores and proportions in numbers worked by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from scheduler.conf import Arguments, ConfError
from scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from tests.scheduler.plugins.world import World, block, static_score, verdicts_by_check

NAME = "resource-strategy-fit"
PACK_GPUS = {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}, "cpu": {"type": "LeastAllocated", "weight": 1}}


def world() -> World:
    """Two nodes of 8 cpus and 4 GPUs, the second with 2 cpus and 2 GPUs in use; and one without GPUs."""
    at = World()
    for name in ("empty", "busy"):
        at.node(name, cpu=8, memory="16Gi", gpu=4)
    at.node("plain", cpu=8, memory="16Gi")
    at.task(at.job("old"), at.cls({"cpu": 2, "gpu": 2}), node=1)
    return at


def scores(at: World, asked: dict[str, Any], **arguments: Any) -> list[float]:
    cls = at.cls(asked)
    return static_score(at.session((NAME, arguments)), cls, block(at))


def test_by_default_cpu_and_memory_are_spread() -> None:
    at = world()
    # cpu (8 − used − 2)/8, memory (16 − 4)/16; their mean × 100 × 10.
    assert scores(at, {"cpu": 2, "memory": "4Gi"}) == pytest.approx([750, 625, 750])


def test_gpus_may_be_packed_while_cpus_are_spread() -> None:
    at = world()
    found = scores(at, {"cpu": 2, "gpu": 1}, resources=PACK_GPUS, resourceStrategyFitWeight=1)
    assert found == pytest.approx([100 * (2 * 0.25 + 0.75) / 3, 100 * (2 * 0.75 + 0.5) / 3, 100 * 0.75 / 3])


def test_what_does_not_fit_what_is_idle_scores_nothing() -> None:
    at = world()
    assert scores(at, {"cpu": 7}) == pytest.approx([125, 0, 125])


def test_an_exact_name_goes_before_the_longest_prefix() -> None:
    at = world()
    most = {"type": "MostAllocated", "weight": 1}
    least = {"type": "LeastAllocated", "weight": 1}
    for resources, packed in (
        ({"nvidia.com/*": most, "nvidia*": least}, True),
        ({"nvidia.com/*": least, "nvidia.com/g*": most}, True),
        ({"nvidia.com/*": most, "nvidia.com/gpu": least}, False),
    ):
        found = scores(at, {"gpu": 1}, resources=resources, resourceStrategyFitWeight=1)
        assert found[:2] == pytest.approx([25, 75] if packed else [75, 25])


def own(at: World, annotations: dict[str, str]) -> list[float]:
    """All scores of a task that brings a strategy, the configured one apart."""
    task = at.task(at.job("new"), at.cls({"cpu": 2, "gpu": 1}))
    task.pod["metadata"]["annotations"] = annotations  # type: ignore[index]
    session = at.session((NAME, {"resourceStrategyFitWeight": 1}))
    total = np.array(static_score(session, task.cls, block(at)))
    for item in session.functions("task_score"):
        if item.applies(task):
            total = total + item.score(task, block(at))
    return list(total)


KIND, WEIGHT = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"


def test_a_pod_may_bring_its_own_strategy() -> None:
    marks = {KIND: "MostAllocated", WEIGHT: json.dumps({"nvidia.com/gpu": 3, "cpu": 1})}
    assert own(world(), marks) == pytest.approx([100 * (3 * 0.25 + 0.25) / 4, 100 * (3 * 0.75 + 0.5) / 4, 100 * 0.25 / 4])
    assert own(world(), {}) == pytest.approx([75, 50, 75])


@pytest.mark.parametrize("weights", ["", "{", "[1]", '{"cpu": "x"}'])
def test_an_own_strategy_that_cannot_be_read_scores_nothing(weights: str) -> None:
    assert own(world(), {KIND: "MostAllocated", WEIGHT: weights}) == pytest.approx([0, 0, 0])
    assert own(world(), {KIND: "Sideways", WEIGHT: '{"cpu": 1}'}) == pytest.approx([0, 0, 0])


def test_pods_keep_off_nodes_with_scarce_resources() -> None:
    at = world()
    sra = {"enable": True, "resources": "nvidia.com/gpu, cpu", "weight": 2, "resourceWeight": {"nvidia.com/gpu": 3}}
    assert scores(at, {"cpu": 1}, resourceStrategyFitWeight=0, sra=sra) == pytest.approx([0, 0, 150])
    assert scores(at, {"gpu": 1}, resourceStrategyFitWeight=0, sra={**sra, "resources": "cpu"}) == pytest.approx([0, 0, 0])
    assert scores(at, {"cpu": 1}, resourceStrategyFitWeight=0, sra={**sra, "enable": False}) == [0, 0, 0]


def test_enough_stays_idle_beside_idle_scarce_resources() -> None:
    at = world()
    # 4 and 2 idle GPUs want 2 cpus each; 8 and 6 cpus are idle.
    rule = {
        "enable": True,
        "resources": "nvidia.com/gpu",
        "resourceProportion": {"nvidia.com/gpu.cpu": 2, "nvidia.com/gpu.memory": 0},
    }
    session = at.session((NAME, {"proportional": rule}))
    for asked, refused in (({"cpu": 1}, [0]), ({"cpu": 2}, [0]), ({"cpu": 3}, [0, 1]), ({"cpu": 3, "gpu": 1}, [])):
        assert verdicts_by_check(session, at.cls(asked), block(at)).get("proportion", []) == refused


@pytest.mark.parametrize(
    "arguments",
    [
        {"resources": {"*": {"weight": 1}}}, {"resources": {"a*b": {"weight": 1}}}, {"resources": {"cpu": {"type": "Most"}}},
        {"resources": {"cpu": 3}}, {"resources": ["cpu"]}, {"sra": {"enable": "yes"}}, {"sra": {"enable": True, "weight": "x"}},
        {"proportional": {"enable": True, "resources": 3}}, {"resourceStrategyFitWeight": "10"},
        {"proportional": {"enable": True, "resources": "a", "resourceProportion": {"a.cpu": "x"}}},
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfError):
        ResourceStrategyFit(Arguments(NAME, arguments))
