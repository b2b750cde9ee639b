"""Making room on shared cards: who holds the card that is wanted goes, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.cpus import parse_cpus
from tests.scheduler.eviction.world import HIGH, LOW, Busy
from tests.scheduler.plugins.test_deviceshare import asks, box
from tests.scheduler.plugins.test_numa_aware import guaranteed, topology
from tests.scheduler.world import group, node


def text(actions: str, arguments: str) -> str:
    return (
        f'actions: "allocate, {actions}"\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: false\n'
        f"    enableReclaimable: false\n  - name: priority\n  - name: proportion\n  - name: predicates\n{arguments}"
    )


CARDS = text("preempt", "  - name: deviceshare\n    arguments:\n      deviceshare.VGPUEnable: true\n")


def holding(name: str, memory: int, priority: str, at: int) -> list[Any]:
    one = asks({"memory": memory}, name=name)
    return [group(name, 1, at=at, priorityClassName=priority), one]


def test_the_pod_on_the_wanted_card_gives_way() -> None:
    # Cards of 1000 MiB: a and b have one each, as no card takes both; c fits beside b.
    there = [*holding("a", 900, LOW, 0), *holding("b", 600, LOW, 1), *holding("c", 300, LOW, 2)]
    world = Busy(box("g", 2, memory=1000), there, conf=CARDS).cycle()
    assert sorted(world.bound) == ["a-w-0", "b-w-0", "c-w-0"]
    world.add(*holding("h", 500, HIGH, 3)).cycle(2)
    # One is enough: on a's card 1000 come free with it, on the other b's 600 and the 100 that were left.
    assert len(world.evicted) == 1
    assert world.evicted[0] in ("a-w-0", "b-w-0")
    assert world.bound["h-w-0"] == "g"


def test_two_go_where_only_both_make_room() -> None:
    there = [*holding("a", 500, LOW, 0), *holding("b", 400, LOW, 1)]
    world = Busy(box("g", 1, memory=1000), there, conf=CARDS).cycle()
    world.add(*holding("h", 1000, HIGH, 2)).cycle(2)
    assert sorted(world.evicted) == ["a-w-0", "b-w-0"]
    assert world.bound["h-w-0"] == "g"


def test_nobody_goes_when_the_card_is_too_small() -> None:
    world = Busy(box("g", 2, memory=1000), holding("a", 900, LOW, 0), conf=CARDS).cycle()
    world.add(*holding("h", 1500, HIGH, 1)).cycle(2)
    assert world.evicted == []


@pytest.mark.parametrize("policy", ["", "single-numa-node"])
def test_cpus_of_their_own_are_not_made_free_by_evicting(policy: str) -> None:
    """What a kubelet gave is free again when it says so: a node that lacks CPUs is no place to preempt on."""
    low = [group("a", 1, at=0, priorityClassName=LOW), guaranteed("a", 0, 4, policy=policy)]
    world = Busy(node("n0", cpu=8), topology("n0", free="0-3"), low, conf=text("preempt", "  - name: numa-aware\n")).cycle()
    assert world.bound == {"a-w-0": "n0"}
    assert parse_cpus(world.offline.cache.tasks["pod-a-w-0"].pod["metadata"]["annotations"]["basalt.dev/cpus"]) == 0b1111
    world.add(group("h", 1, at=1, priorityClassName=HIGH), guaranteed("h", 0, 4, policy=policy)).cycle(2)
    assert world.evicted == []
