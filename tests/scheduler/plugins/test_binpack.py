"""binpack, against the numbers of Volcano's own unit test."""

from __future__ import annotations

import pytest

from scheduler.conf import Arguments, ConfError
from scheduler.model.tasks import TaskClass
from scheduler.plugins.binpack import Binpack
from tests.scheduler.plugins.world import World, block, static_score

FOO = "example.com/foo"


def cluster() -> tuple[World, dict[str, TaskClass]]:
    """n1 with p1, n3 with p2; n2 has 4 GPUs, n3 16 of a thing named foo."""
    world = World()
    n1 = world.node("n1", cpu=2, memory="4Gi", pods=10)
    world.node("n2", cpu=4, memory="16Gi", gpu=4, pods=10)
    n3 = world.node("n3", cpu=2, memory="4Gi", pods=10, **{FOO: 16})
    classes = {
        "p1": world.cls({"cpu": 1, "memory": "1Gi"}),
        "p2": world.cls({"cpu": "1500m", "memory": 0}),
        "p3": world.cls({"cpu": 2, "memory": "10Gi", "gpu": 2}),
        "p4": world.cls({"cpu": 3, "memory": "4Gi", FOO: 3}),
    }
    world.task(world.job("j1"), classes["p1"], node=n1)
    world.task(world.job("j2"), classes["p2"], node=n3)
    return world, classes


def scores(arguments: dict[str, object]) -> dict[str, list[float]]:
    world, classes = cluster()
    session = world.session(("binpack", arguments))
    return {name: static_score(session, cls, block(world)) for name, cls in classes.items()}


def test_weights_of_every_resource() -> None:
    found = scores({
        "binpack.weight": 10, "binpack.cpu": 2, "binpack.memory": 3, "binpack.resources": f"nvidia.com/gpu, {FOO}",
        "binpack.resources.nvidia.com/gpu": 7, f"binpack.resources.{FOO}": 8,
    })  # fmt: skip
    assert found["p1"] == pytest.approx([700, 137.5, 0]), "n3 has 1.5 CPUs in use: p1 does not fit"
    assert found["p2"] == pytest.approx([0, 375, 0])
    assert found["p3"] == pytest.approx([0, 531.25, 0])
    assert found["p4"] == pytest.approx([0, 173.076923076, 0]), "foo is not on n2 and still counts in the divisor"


def test_the_weight_of_a_gpu_alone_matters() -> None:
    found = scores({
        "binpack.weight": 1, "binpack.cpu": 1, "binpack.memory": 1, "binpack.resources": "nvidia.com/gpu",
        "binpack.resources.nvidia.com/gpu": 23,
    })  # fmt: skip
    assert found["p1"] == pytest.approx([75, 15.625, 0])
    assert found["p2"] == pytest.approx([0, 37.5, 0])
    assert found["p3"] == pytest.approx([0, 50.5, 0])
    assert found["p4"] == pytest.approx([0, 50, 0])


def test_a_negative_weight_is_one_and_weight_zero_turns_the_plugin_off() -> None:
    assert scores({"binpack.cpu": -3, "binpack.memory": -1}) == scores({})
    world, classes = cluster()
    assert world.session(("binpack", {"binpack.weight": 0})).functions("node_score") == []
    assert scores({"binpack.cpu": 0, "binpack.memory": 0})["p1"] == [0, 0, 0]
    assert classes


def test_what_is_used_and_not_what_is_reserved_counts() -> None:
    world, classes = cluster()
    at = block(world, 1)
    session = world.session("binpack")
    before = static_score(session, classes["p1"], at)
    world.nodes.pipelined[1] += classes["p1"].request
    assert static_score(session, classes["p1"], block(world, 1)) == before


def test_a_weight_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(ConfError, match=r"binpack\.cpu.*whole number"):
        Binpack(Arguments("binpack", {"binpack.cpu": "5"}))
