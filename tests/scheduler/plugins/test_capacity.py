"""capacity: limits and order by what queues deserve, flat and along a tree. Tables: cluster in, binds out."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.port import Obj
from scheduler.framework.explain import Code, Stage
from tests.scheduler.plugins.amounts import amounts, running, world
from tests.scheduler.plugins.world import GIB
from tests.scheduler.world import gang, node, queue

CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    enableHierarchy: {hierarchy}
"""
FLAT, TREE = CONF.format(hierarchy="false"), CONF.format(hierarchy="true")


def job(name: str, queue: str, cpu: object = 1, gi: object = 1, *, replicas: int = 1, least: int = 1, **more: Any) -> list[Obj]:
    asked = amounts(cpu, gi, **more)
    return gang(name, replicas, least, queue=queue, minResources=asked if least == 1 else None, **asked)


def child(name: str, parent: str, *, deserved: Any = None, capability: Any = None, guarantee: Any = None, **spec: Any) -> Obj:
    named = {"deserved": deserved, "capability": capability, "guarantee": guarantee and {"resource": guarantee}}
    return queue(name, parent=parent, **{key: value for key, value in named.items() if value}, **spec)


# -- flat ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("capability", "started"), [((2, 2), 1), ((1.5, 1.5), 0)])
def test_a_queue_keeps_within_its_capability(capability: tuple[float, float], started: int) -> None:
    objs = [node("n1", 2, "4Gi"), node("n2", 2, "4Gi"), queue("q", capability=amounts(*capability))]
    at = world(objs, running(job("old", "q"), "n1"), job("new", "q"), conf=FLAT).cycle()
    assert len(at.bound) == started


def test_a_full_queue_says_what_of_and_how_much() -> None:
    objs = [node("n1", 8), queue("q", capability=amounts(2, 8))]
    at = world(objs, running(job("old", "q", 1), "n1"), job("new", "q", 2), conf=FLAT).cycle()
    verdict = at.verdicts["new"]
    assert (verdict.stage, verdict.code) == (Stage.ADMISSION, Code.QUEUE_CAPABILITY)
    assert (verdict.queue, verdict.resource) == ("q", "cpu")
    assert (verdict.asked, verdict.free, verdict.short, verdict.limit) == (2000, 1000, 1000, 2000)


def test_deserved_is_no_limit_and_only_asked_dimensions_count() -> None:
    objs = [node("n1", 3, "3Gi"), node("n2", 3, "3Gi")]
    queues = [
        queue("q1", deserved=amounts(2, 2), capability=amounts(2, 3)),
        queue("q2", deserved=amounts(2, 2), capability=amounts(3, 3)),
    ]
    held = [running(job("a", "q1", 1, 3), "n1"), running(job("b", "q2", 3, 1), "n2")]
    cpu_alone, memory_alone, both = job("c", "q1", 1, 0), job("d", "q2", 0, 1), job("e", "q1", 1, 1)
    at = world(objs, queues, held, cpu_alone, memory_alone, both, conf=FLAT).cycle()
    assert at.bound == {"c-w-0": "n1", "d-w-0": "n2"}
    assert at.phase("e") == "Pending"


def test_a_closed_queue_takes_nothing() -> None:
    closed = queue("q")
    closed["status"]["state"] = "Closed"
    at = world(node("n1"), closed, job("a", "q"), conf=FLAT).cycle()
    assert at.bound == {}
    assert at.verdicts["a"].code == Code.QUEUE_CLOSED


def test_priority_of_the_queue_goes_before_its_share() -> None:
    queues = [queue(name, priority=priority) for name, priority in (("q7", 5), ("q8", 1), ("q9", 10))]
    waiting = [job("low", "q8", 2, 4), job("high", "q9", 2, 4)]
    at = world(node("n5", 2, "4Gi"), node("n6", 2, "4Gi"), queues, running(job("old", "q7", 2, 4), "n5"), waiting, conf=FLAT)
    assert at.cycle().bound == {"high-w-0": "n6"}


def test_guarantees_of_others_are_held_back_even_when_they_are_idle() -> None:
    queues = [queue("idle", guarantee={"resource": amounts(3, 3)}), queue("busy")]
    at = world(node("n", 4, "4Gi"), queues, job("a", "busy", 1, 1, replicas=4), conf=FLAT).cycle()
    assert at.started() == {"a": 1}
    assert at.cycles[-1].record.queues["busy"].limit["cpu"] == 1000


def test_who_has_least_of_what_he_deserves_goes_first_and_who_deserves_nothing_last() -> None:
    queues = [queue("none"), queue("small", deserved=amounts(2, 2)), queue("large", deserved=amounts(6, 6))]
    jobs = [job(name, name, 1, 1, replicas=8) for name in ("none", "small", "large")]
    at = world(node("n", 8, "8Gi"), queues, jobs, conf=FLAT).cycle()
    assert at.started() == {"small": 2, "large": 6}


def test_shares_are_told_also_of_queues_without_jobs() -> None:
    queues = [queue("q", deserved=amounts(4, 16)), queue("idle", deserved=amounts(9, 9), guarantee={"resource": amounts(1, 1)})]
    record = world(node("n", 8, "8Gi"), queues, job("a", "q", 2), conf=FLAT).cycle().cycles[-1].record
    share = record.queues["q"]
    assert (share.share, share.allocated["cpu"], share.deserved) == (0.5, 2000, {"cpu": 4000, "memory": 7 * GIB})
    assert record.queues["idle"].deserved == {"cpu": 8000, "memory": 8 * GIB}
    assert record.queues["idle"].allocated == {}


# -- a tree --------------------------------------------------------------------------------------------------------------

COMPANY = [child("q1", "root", capability=amounts(4, 4)), child("q2", "root", capability=amounts(4, 4))]
LEAVES = [child("q11", "q1", capability=amounts(1, 1)), child("q12", "q1", capability=amounts(3, 3))]


def test_a_leaf_takes_jobs() -> None:
    at = world(node("n1", 8, "8Gi"), COMPANY, LEAVES, job("a", "q11"), conf=TREE).cycle()
    assert at.bound == {"a-w-0": "n1"}


@pytest.mark.parametrize(
    ("queues", "where", "code", "named"),
    [
        (COMPANY + LEAVES, "q1", Code.QUEUE_NOT_LEAF, "q1"),
        ([child("a", "b"), child("b", "c"), child("c", "a")], "a", Code.QUEUE_CYCLE, "a"),
        ([child("z", "b"), child("b", "b")], "z", Code.QUEUE_CYCLE, "b"),
        ([child("a", "nobody")], "a", Code.QUEUE_PARENT_MISSING, "a"),
    ],
)
def test_a_tree_with_a_fault_schedules_nothing_and_says_which(queues: list[Obj], where: str, code: Code, named: str) -> None:
    jobs = [job("there", where), job("elsewhere", "default")]
    at = world(node("n1", 8, "8Gi"), queues, jobs, conf=TREE).cycle(2)
    assert at.bound == {}
    for name in ("there", "elsewhere"):
        assert (at.verdicts[name].stage, at.verdicts[name].code, at.verdicts[name].queue) == (
            Stage.ADMISSION,
            code,
            named,
        )


def test_what_was_admitted_before_the_fault_hears_of_it_too() -> None:
    waiting = gang("a", 1, queue="default", cpu=1)
    at = world(node("n1", 8, "8Gi"), [child("x", "x")], waiting, conf=TREE).cycle()
    assert (at.verdicts["a"].code, at.verdicts["a"].queue) == (Code.QUEUE_CYCLE, "x")


def test_a_job_that_ended_in_an_inner_queue_is_no_fault() -> None:
    old = job("old", "q1")
    for obj in old:
        obj["status"] = {"phase": "Completed" if obj["kind"] == "PodGroup" else "Succeeded"}
    at = world(node("n1", 8, "8Gi"), COMPANY, LEAVES, old, job("a", "q11"), conf=TREE).cycle()
    assert at.bound == {"a-w-0": "n1"}


def test_every_ancestor_must_have_room() -> None:
    queues = [
        child("q3", "root", capability=amounts(4, 4)),
        *[child(f"q3{i}", "q3", capability=amounts(4, 4)) for i in (1, 2, 3)],
    ]
    held = [running(job("a", "q31", 2, 2), "n1"), running(job("b", "q32", 2, 2), "n1")]
    at = world(node("n1", 8, "8Gi"), queues, held, job("c", "q33", 3, 3), conf=TREE).cycle()
    assert at.bound == {}
    verdict = at.verdicts["c"]
    assert (verdict.code, verdict.queue, verdict.resource) == (Code.QUEUE_CAPABILITY, "q3", "cpu")
    assert (verdict.asked, verdict.free, verdict.limit) == (3000, 0, 4000)


def test_admission_is_charged_to_ancestors_so_the_second_of_two_siblings_waits() -> None:
    queues = [child("q6", "root", capability=amounts(2, 4)), child("q61", "q6"), child("q62", "q6")]
    groups = [gang(f"pg{i}", 0, 1, queue=f"q6{i}", minResources=amounts(2, 4)) for i in (1, 2)]
    at = world(node("n1", 8, "8Gi"), queues, groups, conf=TREE).cycle()
    assert (at.phase("pg1"), at.phase("pg2")) == ("Inqueue", "Pending")
    assert at.cycles[-1].record.queues["q6"].inqueue == {"cpu": 2000, "memory": 4 * GIB}


def test_a_capability_that_leaves_a_dimension_open_inherits_it() -> None:
    queues = [child("sub1", "root", capability=amounts(100, 10)), child("sub1-sub1", "sub1", capability=amounts(gi=5))]
    first, second = job("a", "sub1-sub1", 50), job("b", "sub1-sub1", 60)
    at = world(node("n1", 200, "100Gi"), queues, first, second, conf=TREE).cycle()
    assert at.started() == {"a": 1}
    assert at.cycles[-1].record.queues["sub1-sub1"].limit == {"cpu": 100_000, "memory": 5 * GIB}


def test_guarantees_beyond_the_parent_leave_each_child_its_own() -> None:
    promised = {"guarantee": amounts(4, 3), "capability": amounts(6, 4)}
    queues = [child("q7", "root", capability=amounts(6, 4)), child("q71", "q7", **promised), child("q72", "q7", **promised)]
    record = world(node("n1", 8, "8Gi"), queues, conf=TREE).cycle().cycles[-1].record
    assert record.queues["q71"].limit == {"cpu": 4000, "memory": 3 * GIB}
    assert record.queues["root"].deserved == {}
    assert record.queues["q71"].deserved == {"cpu": 4000, "memory": 3 * GIB}


def test_inner_queues_hold_what_is_below_them() -> None:
    queues = [child("top", "root", deserved=amounts(4, 4)), child("mid", "top"), child("leaf", "mid")]
    record = world(node("n1", 8, "8Gi"), queues, job("a", "leaf", 2, 1), conf=TREE).cycle().cycles[-1].record
    for name in ("leaf", "mid", "top", "root"):
        assert record.queues[name].allocated == {"cpu": 2000, "memory": GIB, "pods": 1}
    assert record.queues["top"].share == 0.5
    assert record.queues["root"].deserved == {"cpu": 4000, "memory": 4 * GIB}


def test_departments_take_turns_by_their_own_share_and_not_by_their_teams() -> None:
    queues = [child("a", "root", deserved=amounts(4, 4)), child("b", "root", deserved=amounts(4, 4)), child("b1", "b")]
    queues += [child(f"a{i}", "a", deserved=amounts(2, 2)) for i in (1, 2, 3)]
    jobs = [job(name, name, 1, 1, replicas=8) for name in ("a1", "a2", "a3", "b1")]
    started = world(node("n1", 8, "8Gi"), queues, jobs, conf=TREE).cycle().started()
    assert started["b1"] == 4
    assert started["a1"] + started["a2"] + started["a3"] == 4
    assert max(started["a1"], started["a2"], started["a3"]) == 2


def test_absurd_amounts_do_not_wrap_around() -> None:
    most = {"cpu": "9223372036854775", "memory": "9223372036854775807"}
    queues = [child(name, "root", deserved=most, guarantee=most) for name in ("a", "b", "c")]
    for conf in (FLAT, TREE):
        at = world(node("n1", 8, "8Gi"), queues, job("j", "a", 1), job("huge", "a", 1), conf=conf).cycle()
        assert at.started() == {"j": 1, "huge": 1}
        assert all(amount >= 0 for share in at.cycles[-1].record.queues.values() for amount in share.deserved.values())


def test_a_weight_of_a_billion_and_a_negative_amount_do_not_stop_the_others() -> None:
    queues = [child("heavy", "root"), child("bad", "root", deserved={"cpu": "-1"})]
    queues[0]["spec"]["weight"] = 10**9
    at = world(node("n1", 8, "8Gi"), queues, job("a", "heavy"), job("b", "bad"), conf=TREE).cycle()
    assert at.started() == {"a": 1}
    assert at.verdicts["b"].code == Code.QUEUE_MISSING
    assert "deserved" in at.offline.cache.aside["Queue", "/bad"].reason
