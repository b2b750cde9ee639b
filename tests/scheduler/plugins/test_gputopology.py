"""gputopology: nodes by the GPUs that they would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.topology import format_topology, from_pairs, parse_topology
from scheduler.conf import ConfError, load
from scheduler.topology.gpu import LinkMatrix, best_set, indices, mask
from scheduler.topology.worth import judge
from tests.scheduler.topology.world import domain
from tests.scheduler.world import World, gang, node, pod

CONF = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: gputopology
"""
NVSWITCH = format_topology(from_pairs(8, {}, "NV18"))
PCIE = format_topology(from_pairs(8, {}, "SYS"))
ISLANDS = format_topology(from_pairs(8, {(a, b): "NV4" for a in range(8) for b in range(a + 1, 8) if a // 4 == b // 4}, "SYS"))
PAIRS = format_topology(from_pairs(8, {(a, a + 1): "NV4" for a in (0, 2, 4, 6)}, "SYS"))


def box(name: str, topology: str = "", gpus: int = 8, **labels: str) -> Any:
    made = node(name, cpu=128, gpu=gpus, labels=labels)
    if topology:
        made["metadata"]["annotations"] = {"basalt.dev/gpu-topology": topology}
    return made


def holding(name: str, where: str, gpus: str) -> Any:
    made = pod(name, "w", 0, {"cpu": 1, "gpu": gpus.count(",") + 1}, nodeName=where)
    made["metadata"]["annotations"] = {"basalt.dev/gpu-indices": gpus}
    made["status"]["phase"] = "Running"
    return made


def place(*parts: Any, conf: str = CONF) -> dict[str, tuple[str, str]]:
    world = World(*parts, conf=conf).cycle()
    return {name: (where, world.gpus[name]) for name, where in world.bound.items()}


def test_linked_gpus_are_preferred_to_unlinked_ones():
    assert place(box("a", PCIE), box("b", NVSWITCH), gang("j", 1, gpu=2))["j-w-0"][0] == "b"
    assert place(box("a"), box("b", PAIRS), gang("j", 1, gpu=2))["j-w-0"] == ("b", "0,1")
    assert place(box("a", PAIRS), box("b", ISLANDS), gang("j", 1, gpu=4))["j-w-0"] == ("b", "0,1,2,3")


def test_more_nvlinks_are_better_than_fewer():
    few = format_topology(from_pairs(8, {}, "NV4"))
    assert place(box("a", few), box("b", NVSWITCH), gang("j", 1, gpu=8))["j-w-0"][0] == "b"


def test_a_single_gpu_is_taken_where_an_island_is_broken_already():
    parts = [box("a", ISLANDS), box("b", ISLANDS), holding("x", "b", "0,1,2")]
    assert place(*parts, gang("j", 1, gpu=1))["j-w-0"] == ("b", "3")


def test_a_whole_machine_is_kept_for_who_needs_it():
    parts = [box("a", NVSWITCH), box("b", NVSWITCH), holding("x", "b", "0,1,2,3,4,5")]
    assert place(*parts, gang("j", 1, gpu=2))["j-w-0"] == ("b", "6,7")


def test_a_run_of_equal_pods_is_scored_copy_by_copy():
    taken = place(box("a", PAIRS), box("b", ISLANDS), gang("j", 4, 1, gpu=4))
    assert sorted(taken.values()) == [("a", "0,1,2,3"), ("a", "4,5,6,7"), ("b", "0,1,2,3"), ("b", "4,5,6,7")]
    assert [taken[f"j-w-{i}"][0] for i in range(4)] == ["b", "b", "a", "a"]


def test_pods_of_a_gang_share_an_nvlink_domain():
    boxes = [box(f"n{i}", NVSWITCH, **{"nvidia.com/gpu.clique": f"c.{i % 2}"}) for i in range(4)]
    found = place(*boxes, gang("j", 2, gpu=8))
    assert {where for where, _ in found.values()} == {"n0", "n2"}


def test_without_a_shared_fabric_they_share_the_nearest_network_domain():
    boxes = [box(f"n{i}", NVSWITCH) for i in range(4)]
    racks = [domain("r0", 1, ["n0", "n3"]), domain("r1", 1, ["n1", "n2"])]
    found = place(*boxes, *racks, gang("j", 2, gpu=8))
    assert {where for where, _ in found.values()} == {"n0", "n3"}


def test_gangs_are_not_drawn_together_when_that_has_no_weight():
    conf = CONF + "    arguments: {gputopology.gang: 0}\n"
    boxes = [box(f"n{i}", NVSWITCH) for i in range(4)]
    found = place(*boxes, domain("r0", 1, ["n0", "n3"]), gang("j", 2, gpu=8), conf=conf)
    assert {where for where, _ in found.values()} == {"n0", "n1"}


def test_unhealthy_gpus_are_not_counted_on():
    ill = box("a", NVSWITCH)
    ill["metadata"]["annotations"]["volcano.sh/gpu-unhealthy-ids"] = "0,1,2,3,4,5,6"
    assert place(ill, box("b", PCIE), gang("j", 1, gpu=2))["j-w-0"][0] == "b"


def test_a_topology_that_cannot_be_read_is_no_topology():
    assert place(box("a", "nonsense"), box("b", NVSWITCH), gang("j", 1, gpu=2))["j-w-0"][0] == "b"


def test_other_pods_are_not_scored():
    assert place(box("a", PCIE), box("b", NVSWITCH), gang("j", 1, cpu=1))["j-w-0"][0] == "a"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("gputopology.weight: -1", "-1 must be 0 or more"),
        ("gputopology.link: 0, gputopology.bandwidth: 0, gputopology.damage: 0", "something must count"),
        ('gputopology.gang: "1"', "must be a whole number"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: str, message: str):
    with pytest.raises(ConfError, match=message):
        load(CONF + f"    arguments: {{{arguments}}}\n")


def test_a_choice_is_judged_between_0_and_1_and_the_best_set_never_worse_by_its_link(shared_dir: Path):
    for file in sorted((shared_dir / "data" / "topologies").glob("*.txt")):
        links = LinkMatrix.of(parse_topology(file.read_text("utf-8")).links)
        if links.size > 8:
            continue
        for free in range(1, 1 << links.size):
            for k in range(1, free.bit_count() + 1):
                parts = judge(links, free, mask(best_set(links, free, k)))
                assert all(0.0 <= part <= 1.0 for part in parts), (file.name, free, k)
                assert parts[0] >= judge(links, free, mask(indices(free)[:k]))[0]
