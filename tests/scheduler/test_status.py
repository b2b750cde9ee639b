"""PodGroup phases and conditions at the end of a session."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from cluster.port import WatchEvent
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.status import phase
from scheduler.wording import describe
from tests.scheduler.world import BARE, World, gang, group, node, pod, queue


def job_with(least: int, old: str, *pods: tuple[str, str]):
    parts = []
    for index, (status, where) in enumerate(pods):
        made = pod("a", "w", index, {"cpu": 1}, **({"nodeName": where} if where else {}))
        made["status"]["phase"] = status.removesuffix("-leaving")
        if status.endswith("-leaving"):
            made["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        parts.append(made)
    head = group("a", least)
    head["status"]["phase"] = old
    return World(node("n"), head, parts).offline.cache.jobs["default/a"]


RUN, WAIT, BOUND, DONE, BAD = ("Running", "n"), ("Pending", ""), ("Pending", "n"), ("Succeeded", "n"), ("Failed", "n")
LEAVING = ("Running-leaving", "n")


@pytest.mark.parametrize(
    ("least", "old", "pods", "unschedulable", "expected"),
    [
        (2, "Inqueue", [RUN, BOUND], False, "Running"),
        (2, "Inqueue", [WAIT, WAIT], True, "Inqueue"),
        (2, "Pending", [WAIT, WAIT], True, "Pending"),
        (2, "Running", [RUN, WAIT], True, "Unknown"),
        (2, "Running", [DONE, DONE], False, "Completed"),
        (2, "Running", [DONE, BAD], False, "Completed"),
        (2, "Running", [RUN, DONE], False, "Running"),
        (2, "Running", [LEAVING, LEAVING], False, "Running"),
        (2, "Running", [], False, "Pending"),
        (0, "Pending", [], False, "Completed"),
    ],
)
def test_the_phase_follows_the_pods(least, old, pods: Sequence[tuple[str, str]], unschedulable, expected):
    assert phase(job_with(least, old, *pods), unschedulable=unschedulable) == expected


def conditions(world: World) -> dict:
    return {c["type"]: c for c in world.offline.cache.jobs["default/a"].obj["status"]["conditions"]}


def test_a_waiting_gang_says_so_and_takes_it_back_when_it_is_ready():
    world = World(node("n0", cpu=4), gang("a", 3, cpu=2), conf=BARE).cycle()
    found = conditions(world)["Unschedulable"]
    assert (found["status"], found["reason"]) == ("True", "NotEnoughResources")
    assert found["message"] == (
        "1/3 tasks in gang unschedulable: 2 of the needed 3 pods have room; 0/1 nodes are available: 1 Insufficient cpu"
    )
    world.offline._modify(NODE, node("n0", cpu=8))
    found = conditions(world.cycle())
    assert found["Unschedulable"]["status"] == "False"
    assert found["Scheduled"]["status"] == "True"


def test_pods_that_had_room_are_called_schedulable():
    world = World(node("n0", cpu=4), gang("a", 3, cpu=2), conf=BARE).cycle()
    reasons = {
        write.name: write.status["conditions"][0]["reason"]
        for write in world.cycles[0].writes.statuses
        if write.kind.kind == "Pod"
    }
    assert reasons == {"a-w-0": "Schedulable", "a-w-1": "Schedulable", "a-w-2": "Unschedulable"}


def test_a_verdict_whose_numbers_alone_moved_is_not_said_again_at_once():
    world = World([node("n0", cpu=8), node("n1", cpu=8)], gang("a", 3, cpu=6), gang("b", 1, cpu=1, at=70_000), conf=BARE).cycle()
    assert world.started() == {"b": 1}
    first = world.verdicts["a"]
    for index in range(1, 4):
        made = pod("b", "w", index, {"cpu": 1})
        world.offline._modify(POD, made)
        world.cycle()
    said = [cycle.record.verdicts for cycle in world.cycles[1:]]
    assert all("default/a" not in verdicts for verdicts in said)
    assert world.verdicts["a"] == first
    world.offline.now += 60
    assert "default/a" in world.cycle().cycles[-1].record.verdicts


def test_nothing_is_said_while_the_pods_are_just_being_made():
    half = [group("a", 2, minResources={"cpu": "2"}), pod("a", "w", 0, {"cpu": 1})]
    world = World(node("n0"), half).cycle(3)
    assert "conditions" not in world.cycles[0].writes.statuses[0].status or not conditions(world)
    assert not any(cycle.writes.events for cycle in world.cycles)
    assert not [write for cycle in world.cycles for write in cycle.writes.statuses if write.kind == POD]
    world.offline.now += 5
    world.cycle()
    assert conditions(world)["Unschedulable"]["message"].endswith("1 of the needed 2 pods exist")


def test_pods_beyond_the_minimum_are_told_what_kept_them():
    world = World(node("n0", cpu=4), gang("a", 3, 1, cpu=2), conf=BARE).cycle()
    assert world.started() == {"a": 2}
    told = [write for write in world.cycles[0].writes.statuses if write.kind == POD]
    assert [write.name for write in told] == ["a-w-2"]
    assert told[0].status["conditions"][0]["message"] == "0/1 nodes are available: 1 Insufficient cpu"


def test_a_podgroup_that_takes_the_place_of_another_is_written_anew():
    world = World(node("n0"), gang("a", 2, cpu=1), conf=BARE).cycle(2)
    assert world.phase("a") == "Running"
    old = world.offline.cache.jobs["default/a"]
    for task in list(old.tasks.values()):
        world.offline.cache.apply(WatchEvent("DELETED", POD, dict(task.pod)))
    world.offline.cache.apply(WatchEvent("DELETED", POD_GROUP, dict(old.obj)))
    again = gang("a", 2, cpu=1)
    again[0]["metadata"]["uid"] = "another"
    for made in again:
        world.offline._modify(POD_GROUP if made["kind"] == "PodGroup" else POD, made)
    world.cycle()
    assert [write.uid for write in world.cycles[-1].writes.statuses if write.kind == POD_GROUP] == ["another"]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict(Stage.ADMISSION, Code.QUEUE_MISSING, queue="x"), "queue x does not exist"),
        (Verdict(Stage.GANG, Code.GANG_TOO_FEW_PODS, needed=4, placeable=1), "1 of the needed 4 pods exist"),
        (
            Verdict(Stage.NODE_FIT, Code.POD_TOO_LARGE, resource="cpu", asked=9000, limit=8000),
            "a pod asks 9 cpu, and the largest node has 8",
        ),
        (
            Verdict(Stage.NODE_FIT, Code.NODES_REFUSED, nodes=2, rejected={"taint": 2}),
            "0/2 nodes are available: 2 node(s) had an untolerated taint",
        ),
        (
            Verdict(Stage.GANG, Code.GANG_INCOMPLETE, nodes=3, needed=4, placeable=3, rejected={"insufficient:cpu": 3}),
            "3 of the needed 4 pods have room; 0/3 nodes are available: 3 Insufficient cpu",
        ),
        (
            Verdict(
                Stage.QUEUE_LIMIT, Code.QUEUE_CAPABILITY, queue="speech", resource="cpu", asked=64000, free=4000, limit=32000
            ),
            "queue speech is at its limit: asks 64 cpu, 4 of 32 left",
        ),
        (Verdict(Stage.GANG, Code.GATED), "a scheduling gate holds the pods"),
        (
            Verdict(Stage.ADMISSION, Code.OVERCOMMIT, resource="nvidia.com/gpu", asked=320000, free=500, limit=184400),
            "the cluster has admitted as much as it may: asks 320 nvidia.com/gpu, 500m of 184.4 left",
        ),
        (
            Verdict(Stage.NODE_FIT, Code.POD_TOO_LARGE, resource="memory", asked=2**40, limit=1055531163648),
            "a pod asks 1Ti memory, and the largest node has 983.04Gi",
        ),
    ],
)
def test_verdicts_have_words_for_events(verdict, words):
    assert describe(verdict) == words


def test_every_code_has_words():
    assert all(describe(Verdict(Stage.GANG, code, queue="q")) != code.value for code in Code)


@pytest.mark.parametrize("plugin", ["proportion", "capacity", "capacity\n    enableHierarchy: true", "gang"])
def test_an_inner_queues_status_counts_what_is_below_it(plugin: str) -> None:
    conf = f'actions: "allocate"\ntiers:\n- plugins:\n  - name: {plugin}\n  - name: priority\n'
    queues = [
        queue("top", parent="root"),
        queue("leaf", parent="top"),
        queue("odd", parent="odder"),
        queue("odder", parent="root"),
    ]
    jobs = [*gang("a", 2, queue="leaf", cpu=1, memory="1Gi"), *gang("b", 1, queue="odd", cpu=2, memory="1Gi")]
    writes = World(node("n"), queues, jobs, conf=conf).cycle().cycles[-1].writes
    cpu = {write.name: write.status["allocated"]["cpu"] for write in writes.statuses if write.kind == QUEUE}
    assert cpu == {"leaf": "2", "top": "2", "odd": "2", "odder": "2", "root": "4"}


def test_a_cycle_of_queues_is_counted_once_each() -> None:
    queues = [queue("a", parent="b"), queue("b", parent="a")]
    writes = World(node("n"), queues, gang("j", 1, queue="a", cpu=1, memory="1Gi"), conf=BARE).cycle().cycles[-1].writes
    assert {write.name for write in writes.statuses if write.kind == QUEUE} == {"a", "b"}
