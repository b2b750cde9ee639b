"""PodGroup phases and conditions at the end of a session."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.kinds import NODE, POD, POD_GROUP
from cluster.port import WatchEvent
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.status import describe, phase
from tests.scheduler.world import BARE, World, gang, group, node, pod


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
    assert found["message"].startswith("1/3 tasks in gang unschedulable: 0/1 nodes are available")
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
        (Verdict(Stage.NODE_FIT, Code.POD_TOO_LARGE, resource="cpu", asked=9000, limit=8000), "asks for 9 of cpu"),
        (Verdict(Stage.NODE_FIT, Code.NODES_REFUSED, nodes=2, rejected={"taint": 2}), "0/2 nodes are available: 2 had an untol"),
        (Verdict(Stage.GANG, Code.GATED), "pod.gated"),
    ],
)
def test_verdicts_have_words_for_events(verdict, words):
    assert words in describe(verdict)
