"""The tree of HyperNodes."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.kinds import HYPER_NODE, NODE
from cluster.port import Obj, WatchEvent
from scheduler.cache import SchedulerCache
from scheduler.topology.hypernodes import TOP, HyperNodes
from tests.scheduler.topology.world import domain
from tests.scheduler.world import node


def cache(*objs: Obj) -> SchedulerCache:
    found = SchedulerCache()
    found.apply_all(WatchEvent("ADDED", NODE if obj["kind"] == "Node" else HYPER_NODE, obj) for obj in objs)
    return found


def tree(*objs: Obj) -> HyperNodes:
    return cache(*objs)._network()


def nodes(count: int) -> list[Obj]:
    return [node(f"n{i}", labels={"half": "ab"[i >= count // 2]}) for i in range(count)]


def names(tree: HyperNodes, name: str) -> list[str]:
    return [f"n{row}" for row in tree.by_name[name].rows]


def aside(cache: SchedulerCache) -> dict[str, str]:
    cache._network()
    return {found.key.removeprefix("/"): found.reason for found in cache.aside.values()}


SPINES = [
    domain("s0", 1, ["n0", "n1"]), domain("s1", 1, ["n2", "n3"]), domain("s2", 1, ["n4"]),
    domain("m0", 2, domains=["s0", "s1"]), domain("m1", 2, domains=["s2"], name_of_tier="pod"),
]  # fmt: skip


def test_a_domain_has_the_nodes_of_the_domains_below_it_and_the_top_has_all():
    found = tree(*nodes(6), *SPINES)
    assert names(found, "m0") == ["n0", "n1", "n2", "n3"]
    assert names(found, TOP) == [f"n{i}" for i in range(6)]
    assert (found.tiers, found.top.tier) == ([1, 2, 3], 3)
    assert [child.name for child in found.top.children] == ["m0", "m1"]
    assert found.leaf[:6].tolist() == [0, 0, 1, 1, 2, -1]


def test_without_hypernodes_the_top_is_of_tier_one():
    found = tree(*nodes(2))
    assert (found.top.tier, found.tiers, found.leaf[:2].tolist()) == (1, [1], [0, 0])


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [("s0", "s1", "m0"), ("s0", "m0", "m0"), ("s0", "s2", TOP), ("s2", "s2", "s2"), ("m1", TOP, TOP)],
)
def test_the_lowest_common_domain(first: str, second: str, common: str):
    found = tree(*nodes(6), *SPINES)
    assert found.common(found.by_name[first], found.by_name[second]) is found.by_name[common]
    assert found.common(None, found.by_name[first]) is found.by_name[first]


def test_the_lowest_domain_that_holds_some_nodes():
    found = tree(*nodes(6), *SPINES)
    assert [found.holding(rows).name for rows in ([0], [0, 1], [0, 2], [0, 4], [5])] == ["s0", "s0", "m0", TOP, TOP]


def test_members_are_found_by_pattern_and_by_label():
    by_pattern = domain("p", 1, members=[{"type": "Node", "selector": {"regexMatch": {"pattern": "^n[12]$"}}}])
    by_label = domain("l", 1, members=[{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"half": "b"}}}}])
    found = tree(*nodes(4), by_pattern, by_label)
    assert (names(found, "p"), names(found, "l")) == (["n1", "n2"], ["n2", "n3"])


def test_a_node_may_be_called_like_its_domain():
    found = tree(node("rack-a"), node("w2"), domain("rack-a", 1, ["rack-a", "w2"]))
    assert found.by_name["rack-a"].rows.tolist() == [0, 1]


def test_tiers_have_names():
    found = tree(*nodes(6), *SPINES)
    assert (found.tier_called("pod"), found.tier_called("nothing"), found.tier_called("")) == (2, None, None)


def test_nodes_that_come_later_are_taken_in_and_those_that_go_are_left_out():
    known = cache(*nodes(1), domain("s", 1, ["n0", "n1"]))
    assert names(known._network(), "s") == ["n0"]
    known.apply(WatchEvent("ADDED", NODE, node("n1")))
    assert names(known._network(), "s") == ["n0", "n1"]
    known.apply(WatchEvent("DELETED", NODE, node("n0")))
    assert names(known._network(), "s") == ["n1"]
    known.apply(WatchEvent("DELETED", HYPER_NODE, domain("s", 1, ["n0"])))
    assert list(known._network().by_name) == [TOP]


def test_an_unchanged_tree_is_not_made_anew():
    known = cache(*nodes(2), *SPINES)
    first = known._network()
    known.apply(WatchEvent("MODIFIED", HYPER_NODE, {**SPINES[0], "status": {"nodeCount": 2}}))
    assert known._network() is first


@pytest.mark.parametrize(
    ("bad", "name", "reason"),
    [
        (domain("x", 1, []), "x", "spec.members is empty"),
        (domain("x", -1, ["n0"]), "x", "spec.tier must be 0 or more"),
        ({**domain("x", 1, ["n0"]), "spec": {"tier": "low"}}, "x", "tier must be a whole number"),
        (domain("x", 1, members=[{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}]), "x", "no regular expression"),
        (domain("x", 1, members=[{"type": "Node", "selector": {}}]), "x", "exactly one of"),
        (
            domain("x", 2, members=[{"type": "HyperNode", "selector": {"regexMatch": {"pattern": "s"}}}]),
            "x",
            "named by exactMatch",
        ),
        (domain("x", 1, domains=["s0"]), "x", "its member s0 has tier 1, which must be below its own 1"),
        (domain("x", 3, domains=["s0"]), "x", "its member s0 belongs to m0 already"),
        (domain("x", 3, domains=["x"]), "x", "member of itself"),
        (domain("x", 3, domains=["gone"]), "x", "its member gone does not exist"),
    ],
)
def test_a_bad_domain_is_set_aside_with_its_reason_and_the_others_stand(bad: Obj, name: str, reason: str):
    known = cache(*nodes(6), *SPINES, bad)
    assert reason in aside(known)[name]
    assert names(known._network(), "m0") == ["n0", "n1", "n2", "n3"]


def test_a_circle_of_domains_is_set_aside_whole_and_comes_back_when_it_is_mended():
    known = cache(*nodes(2), domain("a", 1, ["n0"], domains=["b"]), domain("b", 2, ["n1"], domains=["a"]))
    assert set(aside(known)) == {"a", "b"}
    known.apply(WatchEvent("MODIFIED", HYPER_NODE, domain("a", 1, ["n0"])))
    assert aside(known) == {}
    assert names(known._network(), "b") == ["n0", "n1"]


def test_a_domain_counts_without_a_member_that_takes_no_part():
    known = cache(*nodes(3), domain("s", 1, members=[{"type": "Node", "selector": {}}]), domain("m", 2, ["n0"], domains=["s"]))
    assert "does not exist" in aside(known)["m"] or "takes no part" in aside(known)["m"]
    assert names(known._network(), "m") == ["n0"]


def test_the_virtual_top_cannot_be_taken_by_an_object():
    known: Any = tree(*nodes(2), domain("s", 4, ["n0"]))
    assert known.by_name[TOP].tier == 5
