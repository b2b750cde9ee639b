"""nodeorder: exact sums of weighted scores."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.conf import Arguments, ConfError
from scheduler.plugins.nodeorder import WEIGHTS, NodeOrder
from tests.scheduler.plugins.world import MIB, World, block, static_score

OFF = {f"{scorer}.weight": 0 for scorer in WEIGHTS}


def total(world: World, quantities: dict[str, Any], spec: dict[str, Any] | None = None, **weights: int) -> list[float]:
    """The score of every node; only the scorers that are named take part, unless none is."""
    arguments = {**OFF, **{f"{name}.weight": weight for name, weight in weights.items()}} if weights else {}
    cls = world.cls(quantities, spec)
    return static_score(world.session(("nodeorder", arguments)), cls, block(world))


def test_the_default_weights() -> None:
    assert WEIGHTS == {
        "leastrequested": 1, "mostrequested": 0, "balancedresource": 1, "nodeaffinity": 2, "podaffinity": 2,
        "tainttoleration": 3, "imagelocality": 1, "podtopologyspread": 2,
    }  # fmt: skip


def test_least_and_most_requested_take_opposite_nodes() -> None:
    """Volcano's first two cases: 1 CPU and 1 G on nodes of 2 and 4."""
    world = World()
    world.node("n1", cpu=2, memory="4Gi", pods=10)
    world.node("n2", cpu=4, memory="8Gi", pods=10)
    pod = {"cpu": 1, "memory": "1G"}
    # n1: 50 and 100·(4294967296 − 10^9)//4294967296 = 76 → 63; n2: 75 and 88 → 81.
    assert total(world, pod, leastrequested=1) == [63, 81]
    # n1: 50 and 23 → 36; n2: 25 and 11 → 18.
    assert total(world, pod, mostrequested=1) == [36, 18]
    assert total(world, pod, mostrequested=5, leastrequested=2) == [5 * 36 + 2 * 63, 5 * 18 + 2 * 81]


def test_balance_takes_the_node_whose_shares_are_alike() -> None:
    """Volcano's third case, with its weight of 10."""
    world = World()
    world.node("n1", cpu=2, memory="2Gi", pods=10)
    world.node("n2", cpu=4, memory="2Gi", pods=10)
    assert total(world, {"cpu": 1, "memory": "1Gi"}, balancedresource=10) == [750, 680], "100 and 87, from 100"
    assert total(world, {}, balancedresource=10) == [0, 0], "a pod that asks for nothing is not balanced"


def test_gpus_are_balanced_only_for_pods_that_ask_for_them() -> None:
    world = World()
    world.node("n1", cpu=4, memory="4Gi", gpu=4)
    # shares 1/4, 1/4, 1: mean 1/2, deviation √((1/16 + 1/16 + 1/4)/3) = √(1/8) = 0.3535…
    assert total(world, {"cpu": 1, "memory": "1Gi", "gpu": 4}, balancedresource=1) == [57], "50 + (50 + 64 − 100) // 2"
    assert total(world, {"cpu": 1, "memory": "1Gi"}, balancedresource=1) == [75]


def test_containers_without_requests_count_a_tenth_of_a_cpu_and_200_mib() -> None:
    world = World()
    row = world.node("n1", cpu=1, memory="1000Mi")
    assert total(world, {}, leastrequested=1) == [85], "(90 + 80) / 2"
    world.task(None, world.cls({}), node=row)
    assert total(world, {}, leastrequested=1) == [70]
    assert total(world, {"cpu": "100m", "memory": "200Mi"}, balancedresource=1) == [72], (
        "what is really asked: 10 % and 20 %, so 95"
    )


def test_preferred_affinity_is_scaled_to_the_best_candidate() -> None:
    world = World()
    for name, zone in (("n1", "z1"), ("n2", "z2"), ("n3", "z3")):
        world.node(name, cpu=2, memory="4Gi", labels={"zone": zone})
    terms = [(100, "z1"), (30, "z2")]
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}}
        for weight, zone in terms
    ]
    wishes = [*preferred, {"weight": 50, "preference": {}}]
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}
    assert total(world, {"cpu": 1}, spec, nodeaffinity=10) == [1000, 300, 0], "an empty preference says nothing"
    assert total(world, {"cpu": 1}, nodeaffinity=10) == [0, 0, 0]


def test_soft_taints_make_a_node_less_wanted() -> None:
    world = World()
    soft = [{"key": key, "value": "v", "effect": "PreferNoSchedule"} for key in "abc"]
    for i, count in enumerate((0, 1, 3)):
        world.node(f"n{i}", cpu=2, memory="4Gi", taints=soft[:count])
    assert total(world, {"cpu": 1}, tainttoleration=3) == [300, 201, 0], "3·(100 − 100·1//3) = 3·67"
    spec = {"tolerations": [{"key": "b", "operator": "Exists"}, {"key": "c", "operator": "Equal", "value": "v"}]}
    assert total(world, {"cpu": 1}, spec, tainttoleration=3) == [300, 0, 0]


def test_images_that_are_there_are_worth_their_size() -> None:
    world = World()
    world.node("n1", cpu=2, memory="4Gi", images={"a:1": 1000 * MIB})
    world.node("n2", cpu=2, memory="4Gi")
    spec = {"containers": [{"image": "a:1"}]}
    assert total(world, {"cpu": 1}, spec, imagelocality=1) == [48, 0], "on one of two nodes: 100·(500 − 23)/977"


def test_company_and_evenness_are_scored_over_the_candidates() -> None:
    world = World()
    for i in range(3):
        world.node(f"n{i}", cpu=9)
    where = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"service": "s1"}}}
    liked = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": where}]}}
    even = {**where, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    job = world.job("j")
    world.task(None, world.cls({"cpu": 1}), node=0, labels={"service": "s1"})
    world.task(None, world.cls({"cpu": 1}), node=2, labels={"service": "s2"})
    liker = world.task(job, world.cls({"cpu": 1}, {"affinity": liked}))
    spreader = world.task(job, world.cls({"cpu": 1}, {"topologySpreadConstraints": [even]}), labels={"service": "s1"})
    other = world.task(job, world.cls({"cpu": 1}))
    company, evenness = world.session("nodeorder").functions("task_score")
    assert [company.applies(task) for task in (liker, spreader, other)] == [True, True, False], "the liker's terms speak of it"
    assert company.score(liker, block(world)).tolist() == [200, 0, 0]
    assert company.score(liker, block(world, 1, 2)).tolist() == [0, 0], "among candidates that are alike nothing is preferred"
    assert [evenness.applies(task) for task in (liker, spreader, other)] == [False, True, False]
    # ln(3 + 2) = 1.61 → 2 on n0; 200·(2 + 0 − raw)/2.
    assert evenness.score(spreader, block(world)).tolist() == [0, 200, 200]


def test_weight_zero_turns_a_scorer_off() -> None:
    world = World()
    world.node("n1", cpu=2, memory="4Gi", taints=[{"key": "a", "effect": "PreferNoSchedule"}], images={"a:1": 1000 * MIB})
    session = world.session(("nodeorder", OFF))
    families = ("node_score", "normalised_score", "task_score")
    assert [session.functions(family) for family in families] == [[], [], []]


def test_a_weight_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(ConfError, match=r"leastrequested\.weight.*whole number"):
        NodeOrder(Arguments("nodeorder", {"leastrequested.weight": 1.5}))
