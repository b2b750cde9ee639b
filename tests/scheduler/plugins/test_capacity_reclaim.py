"""capacity: who is reclaimed from by what queues deserve, flat and along a tree. Tables: cluster in, evictions out."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.port import Obj
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import EvictionKind
from tests.scheduler.plugins.amounts import amounts, running, world
from tests.scheduler.plugins.world import World as Model
from tests.scheduler.world import gang, node, queue


def model(**queues: dict[str, Any]) -> Model:
    at = Model()
    at.node("n", cpu=16, memory="16Gi", gpu=4)
    at.queue("root", parent="")
    for name, spec in queues.items():
        at.queue(name, **spec)
    return at


def victims(at: Model, level: int, theirs: str, held: dict[str, Any], mine: str, asked: dict[str, Any], *, count: int = 1) -> int:
    """How many of `count` tasks of one queue may go for a task of another; −1 when it may not even ask."""
    tasks = [at.task(at.job(f"v{i}", theirs), at.cls(held), node=0) for i in range(count)]
    reclaimer = at.task(at.job("r", mine), at.cls(asked))
    session = at.session(("capacity", {"ancestorReclaimLevel": level}), enableHierarchy=True)
    if not session.preemptive(at.queues[mine], [reclaimer]):
        return -1
    (rule,) = session.functions("reclaimable")
    return len(rule(reclaimer, tasks))


CPU2 = {"cpu": 2, "memory": "2Gi"}
LEVELS = {
    "grand_a": {"deserved": CPU2},
    "parent_a": {"parent": "grand_a", "deserved": CPU2},
    "a": {"parent": "parent_a", "deserved": CPU2},
    "grand_b": {"deserved": {"cpu": 3, "memory": "3Gi"}},
    "parent_b": {"parent": "grand_b", "deserved": {"cpu": 1, "memory": "1Gi"}},
    "b": {"parent": "parent_b", "deserved": {"cpu": 1, "memory": "1Gi"}},
}


@pytest.mark.parametrize(("level", "found"), [(0, 1), (1, 1), (2, 0)])
def test_ancestors_within_the_level_must_hold_too_much_as_well(level: int, found: int) -> None:
    assert victims(model(**LEVELS), level, "b", CPU2, "a", CPU2) == found


@pytest.mark.parametrize(("level", "found"), [(0, -1), (1, 1)])
def test_what_the_parent_deserves_may_start_reclaiming(level: int, found: int) -> None:
    queues = {"house": {"deserved": {"gpu": 1}}, "leaf": {"parent": "house"}, "other": {}}
    assert victims(model(**queues), level, "other", {"cpu": 1, "gpu": 1}, "leaf", {"cpu": 1, "gpu": 1}) == found


def test_queues_of_one_house_that_deserve_nothing_spare_each_other() -> None:
    queues = {"house": {"deserved": {"cpu": 4, "memory": "4Gi"}}, "a": {"parent": "house"}, "b": {"parent": "house"}}
    assert victims(model(**queues), 1, "b", CPU2, "a", CPU2) == 0


def test_victims_end_where_the_queue_holds_what_it_deserves() -> None:
    queues = {"a": {"deserved": {"cpu": 8, "memory": "8Gi"}}, "b": {"deserved": {"cpu": 2, "memory": "8Gi"}}}
    assert victims(model(**queues), 0, "b", {"cpu": 1, "memory": "1Gi"}, "a", {"cpu": 4, "memory": "1Gi"}, count=5) == 3


def test_a_guarantee_is_never_reclaimed() -> None:
    queues = {"a": {"deserved": {"cpu": 8}}, "b": {"guarantee": {"memory": "4Gi"}}}
    assert victims(model(**queues), 0, "b", {"cpu": 1, "memory": "1Gi"}, "a", {"cpu": 1}, count=6) == 2


def test_who_shares_no_dimension_with_the_reclaimer_is_no_victim() -> None:
    queues = {"a": {"deserved": {"gpu": 2}}, "b": {}}
    assert victims(model(**queues), 0, "b", {"memory": "1Gi"}, "a", {"gpu": 1}) == 0
    assert victims(model(**queues), 0, "b", {"gpu": 1}, "a", {"gpu": 1}) == 1


@pytest.mark.parametrize(("deserved", "found"), [({"gpu": 1}, 0), ({"gpu": 0}, 1), ({}, 1)])
def test_a_queue_that_deserves_gpus_alone_keeps_its_cpus(deserved: dict[str, Any], found: int) -> None:
    queues = {"a": {"deserved": CPU2}, "b": {"deserved": deserved}}
    assert victims(model(**queues), 0, "b", {"cpu": 4, "memory": "4Gi", "gpu": 1}, "a", {"cpu": 1, "memory": "1Gi"}) == found


def test_nobody_reclaims_beyond_his_capability() -> None:
    full = {"cpu": 8, "memory": "16Gi"}
    at = model(mine={"deserved": full, "capability": full}, theirs={})
    at.task(at.job("held", "mine"), at.cls({"cpu": 7, "memory": "1Gi"}), node=0)
    assert victims(at, 0, "theirs", {"cpu": 2}, "mine", {"cpu": 2, "memory": "1Gi"}) == -1


def test_the_verdict_of_a_closed_queue_is_told_when_taking() -> None:
    at = model(q={"state": "Closed"})
    task = at.task(at.job("j", "q"), at.cls({"cpu": 1}))
    session = at.session("capacity")
    assert session.room(at.queues["q"], task.cls) == 0
    assert session.room_refusal(at.queues["q"], task.cls) == Verdict(Stage.QUEUE_LIMIT, Code.QUEUE_CLOSED, "q")


# -- whole cycles with reclaim, after Volcano's own tables ---------------------------------------------------------------

RECLAIM = """\
actions: "enqueue, allocate, reclaim"
tiers:
- plugins:
  - name: priority
    enableJobStarving: false
  - name: gang
    enableReclaimable: false
  - name: predicates
  - name: capacity
    enableHierarchy: {hierarchy}
    arguments:
      ancestorReclaimLevel: {level}
"""


def evicted(nodes: list[Obj], queues: list[Obj], held: Any, wants: tuple[Any, ...], conf: str) -> list[str]:
    """Pods that go when one job comes; `held`: name, queue, node, amounts, and whether the pod may be preempted."""
    jobs = []
    for name, where, on, asked, *may in held:
        objs = running(gang(name, 1, queue=where, **amounts(*asked)), on)
        if may:
            objs[1]["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
        jobs += objs
    name, where, asked = wants
    jobs += gang(name, 1, queue=where, **amounts(*asked))
    cycle = world(nodes, queues, jobs, conf=conf).cycle().cycles[-1]
    return [eviction.name.split("-")[0] for eviction in cycle.evictions]


def q(name: str, deserved: tuple[object, ...] = (), capability: tuple[object, ...] = (), parent: str = "") -> Obj:
    spec = {"deserved": amounts(*deserved), "capability": amounts(*capability), "parent": parent}
    return queue(name, **{key: value for key, value in spec.items() if value})


def n(name: str, cpu: int, gi: int, gpu: int = 0) -> Obj:
    return node(name, cpu, f"{gi}Gi", **({"gpu": gpu} if gpu else {}))


TWO = [n("n1", 2, 4), n("n2", 2, 4)]
GPU1 = [n("n8", 4, 8, 1)]
CASES: dict[str, Any] = {
    "below its deserved, it takes what may be preempted": (
        TWO, [q("q3", (2, 4)), q("q4", (2, 4))],
        [("a", "q3", "n1", (2, 4), False), ("b", "q3", "n2", (2, 4))], ("c", "q4", (2, 4)), ["b"],
    ),
    "only what it asks for matters, though its cpu is used up": (
        [n("n3", 2, 4, 8), n("n4", 2, 4, 8)], [q("q5", (2, 4, 8)), q("q6", (2, 4, 8))],
        [("a", "q5", "n3", (None, None, 8), False), ("b", "q5", "n4", (None, None, 8)),
         ("c", "q6", "n3", (2, 4)), ("d", "q6", "n4", (2, 4))],
        ("e", "q6", (None, None, 8)), ["b"],
    ),
    "who holds no gpu is not taken for one": (
        [n("n7", 4, 8, 4)], [q("q14", (2, 4, 2)), q("q15"), q("q16", (2, 4, 2))],
        [("a", "q14", "n7", (2, 4)), ("b", "q15", "n7", (None, None, 1)), ("c", "q16", "n7", (2, 1, 1))],
        ("d", "q16", (2, 3, 1)), [],
    ),
    "of three, the one that holds what is lacking": (
        GPU1, [q("q17", (2, 2)), q("q18", (2, 4, 1))],
        [("a", "q17", "n8", (None, 4)), ("b", "q17", "n8", (1,)), ("c", "q17", "n8", (None, None, 1)),
         ("d", "q18", "n8", (2, 4))],
        ("e", "q18", (1, None, 1)), ["c"],
    ),
    "a queue that deserves gpus alone keeps its cpus": (
        GPU1, [q("q19", (None, None, 1)), q("q20", (2, 2))], [("a", "q19", "n8", (4, 4, 1))], ("b", "q20", (1, 1)), [],
    ),
    "one dimension within deserved is enough": (
        TWO[:1], [q("q10", (2, 2), (4, 4)), q("q11", (0, 0), (2, 2))],
        [("a", "q10", "n1", (1, 3)), ("b", "q11", "n1", (1, 1))], ("c", "q10", (1, 1)), ["b"],
    ),
    "no dimension within deserved": (
        TWO[:1], [q("q12", (1, 2), (4, 4)), q("q13", (0, 0), (2, 2))],
        [("a", "q12", "n1", (1, 1)), ("b", "q13", "n1", (1, 1))], ("c", "q12", (1, 2)), [],
    ),
    "beyond its capability it takes nothing": (
        [n("n9", 8, 100), n("n10", 8, 100)], [q("q21", (8, 100), (8, 100)), q("q22", (), (2, 5))],
        [("a", "q21", "n9", (7, 90)), ("b", "q22", "n10", (2, 5))], ("c", "q21", (2, 5)), [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_flat_reclaim(case: str) -> None:
    nodes, queues, held, wants, expected = CASES[case]
    assert evicted(nodes, queues, held, wants, RECLAIM.format(hierarchy="false", level=0)) == expected


PROJECTS = [
    q("p1", (None, None, 1), (None, None, 2)), q("p1-firm", (None, None, 1), (None, None, 1), "p1"), q("p1-loose", parent="p1"),
    q("p2", (None, None, 3), (None, None, 4)), q("p2-firm", (None, None, 3), (None, None, 3), "p2"), q("p2-loose", parent="p2"),
]  # fmt: skip
BUSY = [(name, "p2-loose", "n", (1, 1, 1)) for name in "abcd"]
TREES: dict[str, Any] = {
    "within the parent's deserved": (1, PROJECTS, BUSY, ("e", "p1-loose", (1, 1, 1)), 1, set("abcd")),
    "the queue alone deserves nothing": (0, PROJECTS, BUSY, ("e", "p1-loose", (1, 1, 1)), 0, set()),
    "a nearer queue's pods go first": (
        1, PROJECTS, [*BUSY[:3], ("d", "p1-loose", "n", (1, 1, 1))], ("e", "p2-firm", (1, 1, 1)), 1, set("abc"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TREES)
def test_reclaim_along_the_tree(case: str) -> None:
    level, queues, held, wants, count, among = TREES[case]
    found = evicted([n("n", 16, 16, 4)], queues, held, wants, RECLAIM.format(hierarchy="true", level=level))
    assert len(found) == count
    assert set(found) <= among


def test_who_may_go_for_a_whole_gang_keeps_guarantees_and_what_is_deserved() -> None:
    at = model(mine={"deserved": {"cpu": 8}}, theirs={"deserved": {"cpu": 2}, "guarantee": {"memory": "3Gi"}})
    tasks = [at.task(at.job(f"v{i}", "theirs"), at.cls({"cpu": 1, "memory": "1Gi"}), node=0) for i in range(5)]
    session = at.session("capacity", enableHierarchy=True)
    job = at.jobs["ns/v0"]
    assert session.victims.unified(EvictionKind.RECLAIM, job, tasks).victims == tasks[:2]
    assert session.victims.unified(EvictionKind.PREEMPT, job, tasks).victims == tasks
