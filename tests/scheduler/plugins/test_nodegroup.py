"""nodegroup: which nodes take a queue's tasks, how well they suit, and how much of a group a queue may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.port import Obj
from scheduler.framework.explain import Code
from scheduler.plugins.nodegroup import Affinity
from tests.scheduler.world import World, gang, node, queue

CONF = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: nodegroup
    enableHierarchy: {hierarchy}
    arguments:
      strict: {strict}
      enablePreferredOrder: {ordered}
"""
_TIMES = "DuringSchedulingIgnoredDuringExecution"


def conf(*, strict: bool = True, ordered: bool = False, hierarchy: bool = False) -> str:
    words = {"strict": strict, "ordered": ordered, "hierarchy": hierarchy}
    return CONF.format(**{key: str(value).lower() for key, value in words.items()})


def tied(name: str, *, parent: str = "", limits: Any = None, **groups: list[str]) -> Obj:
    """A queue; `required`, `preferred`, `refused`, `disliked` name groups."""
    near = {f"{key}{_TIMES}": groups[key] for key in ("required", "preferred") if key in groups}
    far = {f"{key}{_TIMES}": groups[word] for key, word in (("required", "refused"), ("preferred", "disliked")) if word in groups}
    spec = {"affinity": {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": far}} if groups else {}
    found = queue(name, parent=parent or "root", **spec)
    if limits is not None:
        text = limits if isinstance(limits, str) else json.dumps(limits)
        found["metadata"]["annotations"] = {"volcano.sh/nodegroup-resource-limits": text}
    return found


def nodes(*groups: str, cpu: int = 8) -> list[Obj]:
    return [node(f"n{i}", cpu, labels={"volcano.sh/nodegroup-name": name} if name else {}) for i, name in enumerate(groups)]


@pytest.mark.parametrize(
    ("words", "group", "allowed", "score", "ordered"),
    [
        ({"required": frozenset({"a"})}, "a", True, 100, 100),
        ({"required": frozenset({"a"})}, "b", False, 0, 0),
        ({"preferred": ("a", "b")}, "a", True, 50, 50),
        ({"preferred": ("a", "b")}, "b", True, 50, 25),
        ({"required": frozenset({"a"}), "preferred": ("a",)}, "a", True, 150, 150),
        ({"required": frozenset({"a"}), "refused": frozenset({"a"})}, "a", False, 100, 100),
        ({"required": frozenset({"a"}), "disliked": frozenset({"a"})}, "a", True, -1, -1),
        ({"refused": frozenset({"a"}), "disliked": frozenset({"a"})}, "a", True, -1, -1),
        ({"refused": frozenset({"a"})}, "b", False, 0, 0),
    ],
)
def test_what_an_affinity_says_of_a_group(words: Any, group: str, allowed: bool, score: float, ordered: float) -> None:
    affinity = Affinity(**words)
    assert affinity.allows(group) is allowed
    assert (affinity.score(group, False), affinity.score(group, True)) == (score, ordered)


@pytest.mark.parametrize(
    ("strict", "queues", "groups", "bound"),
    [
        (True, tied("q"), ["", "a"], None),
        (False, tied("q"), ["a", ""], "n1"),
        (False, tied("q", required=["a"]), ["", "a"], "n1"),
        (True, tied("q", required=["b"]), ["a", "b", ""], "n1"),
        (True, tied("q", preferred=["a", "b"]), ["c", "b"], "n1"),
        (False, tied("q", required=["b"]), ["", "a"], None),
    ],
)
def test_nodes_take_queues_that_name_their_group(strict: bool, queues: Obj, groups: list[str], bound: str | None) -> None:
    world = World(nodes(*groups), queues, gang("a", 1, queue="q", cpu=1), conf=conf(strict=strict)).cycle()
    assert world.bound.get("a-w-0") == bound
    if bound is None:
        assert world.verdicts["a"].rejected == {"node_group": len(groups)}


def test_preferred_groups_in_their_order_when_told_so() -> None:
    for ordered, bound in ((False, "n0"), (True, "n2")):
        objs = [nodes("c", "b", "a"), tied("q", preferred=["a", "b", "c"]), gang("a", 1, queue="q", cpu=1)]
        assert World(*objs, conf=conf(ordered=ordered)).cycle().bound == {"a-w-0": bound}


def test_a_queue_without_an_affinity_has_its_nearest_ancestors() -> None:
    tree = [tied("top", required=["a"]), tied("mid", parent="top"), tied("leaf", parent="mid")]
    for hierarchy, bound in ((False, {}), (True, {"j-w-0": "n1"})):
        objs = [nodes("b", "a"), *tree, gang("j", 1, queue="leaf", cpu=1)]
        assert World(*objs, conf=conf(hierarchy=hierarchy)).cycle().bound == bound


def test_a_cycle_of_queues_without_an_affinity_ends() -> None:
    tree = [tied("a", parent="b"), tied("b", parent="a")]
    assert World(nodes("g"), *tree, gang("j", 1, queue="a", cpu=1), conf=conf(hierarchy=True)).cycle().bound == {}


def test_a_limit_holds_in_its_group_and_over_cycles() -> None:
    limited = tied("q", required=["a", "b"], limits={"a": {"cpu": "2"}, "b": {"cpu": "1", "memory": "1Gi"}})
    world = World(nodes("a", "b"), limited, gang("j", 6, 1, queue="q", cpu=1, memory="1Gi"), conf=conf()).cycle(2)
    assert sorted(world.bound.values()) == ["n0", "n0", "n1"]


def test_what_a_discarded_gang_had_taken_is_given_back() -> None:
    limited = tied("q", required=["a"], limits={"a": {"cpu": "3"}})
    objs = [nodes("a"), limited, gang("big", 4, queue="q", cpu=1, at=1), gang("small", 3, queue="q", cpu=1, at=2)]
    assert World(*objs, conf=conf()).cycle().started() == {"small": 3}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": {"cpu": "much"}}', '{"a": 3}'])
def test_limits_that_cannot_be_read_hold_the_queue_alone_and_are_named(text: str) -> None:
    objs = [nodes("a"), tied("q", required=["a"], limits=text), tied("r", required=["a"])]
    world = World(*objs, gang("j", 1, queue="q", cpu=1), gang("k", 1, queue="r", cpu=1), conf=conf()).cycle()
    assert world.started() == {"k": 1}
    verdict = world.verdicts["j"]
    assert (verdict.code, verdict.queue, verdict.resource) == (Code.QUEUE_BROKEN, "q", "volcano.sh/nodegroup-resource-limits")


@pytest.mark.parametrize("affinity", ["x", {"nodeGroupAffinity": {f"required{_TIMES}": "ab"}}, {"nodeGroupAntiAffinity": [1]}])
def test_an_affinity_that_cannot_be_read_is_named(affinity: Any) -> None:
    broken = queue("q", affinity=affinity)
    world = World(nodes("a"), broken, gang("j", 1, queue="q", cpu=1), conf=conf()).cycle()
    assert (world.verdicts["j"].code, world.verdicts["j"].resource) == (Code.QUEUE_BROKEN, "spec.affinity")
