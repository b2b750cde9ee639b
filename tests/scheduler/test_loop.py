"""The loop over the embedded store: events in, binds and statuses out, and nothing more than what changed."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path

import pytest

from cluster.admission import Admission
from cluster.clock import ManualClock, SystemClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Unanswered, Unavailable
from cluster.kinds import EVENT, NODE, POD, POD_GROUP, QUEUE
from cluster.port import Outcome
from scheduler.framework.explain import Code
from scheduler.loop import SchedulerLoop
from tests.scheduler.world import gang, node, pod, queue


def cluster_with(*parts) -> EmbeddedCluster:
    cluster = EmbeddedCluster(clock=ManualClock(1_900_000_000.0), admission=Admission())
    add(cluster, queue("default"), *parts)
    return cluster


def add(cluster, *parts):
    kinds = {"Node": NODE, "Queue": QUEUE, "PodGroup": POD_GROUP, "Pod": POD}
    for part in parts:
        for obj in part if isinstance(part, list) else [part]:
            kind = kinds[obj["kind"]]
            made = cluster.create(kind, obj)
            if obj.get("status") and kind.has_status:
                cluster.patch_status(kind, made["metadata"]["name"], made["metadata"].get("namespace", ""), obj["status"])


def group_of(cluster, name):
    return cluster.get(POD_GROUP, name, "default")


def nodes_of(cluster):
    return {o["metadata"]["name"]: o["spec"].get("nodeName", "") for o in cluster.list(POD).items}


@pytest.fixture
def clock():
    return ManualClock(1_900_000_000.0)


def test_a_gang_is_bound_and_its_podgroup_says_running(clock):
    cluster = cluster_with(node("n0", gpu=8), gang("a", 2, cpu=2, gpu=4))
    records = []
    loop = SchedulerLoop(cluster, None, clock, records.append)
    loop.step()
    assert nodes_of(cluster) == {"a-w-0": "n0", "a-w-1": "n0"}
    held = {o["metadata"]["annotations"]["basalt.dev/gpu-indices"] for o in cluster.list(POD).items}
    assert held == {"0,1,2,3", "4,5,6,7"}
    assert group_of(cluster, "a")["status"]["phase"] == "Inqueue"
    loop.step()
    assert group_of(cluster, "a")["status"]["phase"] == "Running"
    assert cluster.get(QUEUE, "default")["status"]["allocated"]["nvidia.com/gpu"] == "8"
    assert [record.bound for record in records] == [2, 0]


def test_an_idle_gang_costs_no_writes(clock):
    cluster = cluster_with(node("n0"), gang("a", 3, cpu=4))
    loop = SchedulerLoop(cluster, None, clock)
    for _ in range(3):
        loop.step()
        clock.advance(1)
    before = cluster.list(POD).resource_version
    for _ in range(25):
        loop.step()
        clock.advance(1)
    assert cluster.list(POD).resource_version == before
    conditions = {c["type"]: c for c in group_of(cluster, "a")["status"]["conditions"]}
    assert conditions["Unschedulable"]["reason"] == "NotEnoughResources"
    pods = cluster.list(POD).items
    assert all(p["status"]["conditions"][0]["type"] == "PodScheduled" for p in pods)
    assert len(cluster.list(EVENT).items) == 1


def test_the_verdict_reaches_the_sink_once_and_is_taken_back(clock):
    cluster = cluster_with(node("n0", cpu=2), gang("a", 1, cpu=4))
    verdicts = []
    loop = SchedulerLoop(cluster, None, clock, lambda record: verdicts.append(record.verdicts))
    loop.step()
    loop.step()
    assert verdicts[0]["default/a"].code is Code.POD_TOO_LARGE
    assert verdicts[1] == {}
    add(cluster, node("n1", cpu=8))
    loop.step()
    assert verdicts[2] == {"default/a": None}
    assert nodes_of(cluster)["a-w-0"] == "n1"


def test_a_bind_that_fails_gives_the_room_back_and_is_tried_again(clock, monkeypatch):
    cluster = cluster_with(node("n0"), gang("a", 1, cpu=8))
    loop = SchedulerLoop(cluster, None, clock)
    refuse = lambda bindings: [Outcome(b.namespace, b.name, Unavailable("busy")) for b in bindings]  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "bind_many", refuse)
        loop.step()
    assert nodes_of(cluster) == {"a-w-0": ""}
    loop.step()
    assert nodes_of(cluster) == {"a-w-0": "n0"}


def test_a_status_write_that_fails_is_said_again(clock, monkeypatch):
    cluster = cluster_with(node("n0"), gang("a", 1, cpu=1))
    loop = SchedulerLoop(cluster, None, clock)
    refused = lambda kind, writes: [Outcome(w.namespace, w.name, Unavailable("busy")) for w in writes]  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "patch_status_many", refused)
        loop.step()
    assert group_of(cluster, "a")["status"]["phase"] == "Pending"
    loop.step()
    loop.step()
    assert group_of(cluster, "a")["status"]["phase"] == "Running"


class Inline:
    """An executor that does at once what it is given."""

    def submit(self, work, *arguments):
        future: Future = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


def test_writes_that_cannot_be_done_are_tried_again_after_pauses_that_grow(clock, monkeypatch):
    cluster = cluster_with(node("n0", cpu=2), gang("a", 1, cpu=2))
    loop, stop, at, tries = SchedulerLoop(cluster, None, clock), threading.Event(), [0.0], []
    monkeypatch.setattr("scheduler.loop.monotonic", lambda: at[0])

    def unavailable(*arguments, **more):
        raise Unavailable("the disk is full")

    def none_bound(self, bindings):
        tries.append(round(at[0], 2))
        return [Outcome(each.namespace, each.name, Unavailable("the disk is full")) for each in bindings]

    with monkeypatch.context() as outage:
        outage.setattr(EmbeddedCluster, "bind_many", none_bound)
        for name in ("patch", "patch_status", "create", "patch_status_many"):
            outage.setattr(EmbeddedCluster, name, unavailable)
        while at[0] < 40:
            loop._round(stop, Inline(), Inline(), Inline())
            at[0] += 0.05
    assert tries[0] == 0
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert all(later >= earlier - 0.1 for earlier, later in pairwise(gaps)), "no pause is shorter than the one before"
    assert 10 <= max(gaps) <= 10.2
    assert len(tries) <= 12
    at[0] += 10
    loop._round(stop, Inline(), Inline(), Inline())
    assert nodes_of(cluster) == {"a-w-0": "n0"}
    loop.close()


def test_news_that_change_no_decision_are_joined_into_one_later_cycle(clock, monkeypatch):
    cluster = cluster_with(node("n0"), gang("a", 2, cpu=1))
    monkeypatch.setattr(clock, "real", lambda seconds: seconds)
    loop, stop, at = SchedulerLoop(cluster, None, clock), threading.Event(), [0.0]
    monkeypatch.setattr("scheduler.loop.monotonic", lambda: at[0])
    for _ in range(4):
        loop._round(stop, Inline(), Inline(), Inline())
        at[0] += 1
    before = loop.cycles
    for number in range(20):  # pods run, a node beats, statuses count: 20 times news, and nothing to decide
        for name in ("a-w-0", "a-w-1"):
            cluster.patch_status(POD, name, "default", {"phase": "Running", "message": str(number)})
        cluster.patch_status(NODE, "n0", "", {"nodeInfo": {"beat": number}})
        cluster.patch_status(QUEUE, "default", "", {"running": number})
        cluster.patch_status(POD_GROUP, "a", "default", {"running": 2})
        loop._round(stop, Inline(), Inline(), Inline())
        at[0] += 0.02
    assert loop.cycles == before
    assert loop._until_due() == pytest.approx(0.5 - 20 * 0.02)
    at[0] += 0.2
    loop._round(stop, Inline(), Inline(), Inline())
    assert loop.cycles == before + 1
    loop._round(stop, Inline(), Inline(), Inline())
    assert loop.cycles == before + 1
    loop.close()


@pytest.mark.parametrize("what", ["pod", "gone", "node", "labels", "queue", "group"])
def test_news_that_may_change_a_decision_are_answered_at_once(clock, what):
    cluster = cluster_with(node("n0"), gang("a", 1, cpu=1))
    loop, stop = SchedulerLoop(cluster, None, clock), threading.Event()
    for _ in range(4):
        loop._round(stop, Inline(), Inline(), Inline())
    before = loop.cycles
    match what:
        case "pod":
            add(cluster, pod("b", "w", 0, {"cpu": "1"}))
        case "gone":
            cluster.delete(POD, "a-w-0", "default", grace_seconds=0)
        case "node":
            cluster.patch_status(NODE, "n0", "", {"allocatable": {"cpu": "63"}})
        case "labels":
            cluster.patch(NODE, "n0", "", {"metadata": {"labels": {"zone": "b"}}})
        case "queue":
            cluster.patch(QUEUE, "default", "", {"spec": {"weight": 7}})
        case "group":
            cluster.patch(POD_GROUP, "a", "default", {"spec": {"minMember": 2}})
    loop._round(stop, Inline(), Inline(), Inline())
    assert loop.cycles == before + 1
    loop.close()


def test_binds_of_which_nothing_is_known_have_everything_read_anew(clock, monkeypatch):
    cluster = cluster_with(node("n0"), gang("a", 2, cpu=2))
    loop, whole = SchedulerLoop(cluster, None, clock), cluster.bind_many

    def done_and_not_told(bindings):
        whole(bindings)
        return [Outcome(each.namespace, each.name, Unanswered("cut off")) for each in bindings]

    with monkeypatch.context() as cut:
        cut.setattr(cluster, "bind_many", done_and_not_told)
        loop.step()
    known = loop.cache
    loop.step()
    assert loop.cache is not known
    assert int(loop.cache.nodes.used[0][0]) == 4000, "the room that they hold is not given to others"
    assert loop.failures == 0


def test_a_bad_object_is_set_aside_and_the_others_go_on(clock):
    bad = node("bad")
    bad["status"]["allocatable"]["cpu"] = "2cpus"
    broken = pod("b", "w", 0, {"cpu": "many"})
    cluster = cluster_with(bad, node("n0"), broken, gang("a", 1, cpu=1))
    loop = SchedulerLoop(cluster, None, clock)
    loop.step()
    assert nodes_of(cluster)["a-w-0"] == "n0"
    assert {(aside.kind, aside.key) for aside in loop.aside} == {("Node", "/bad"), ("Pod", "default/b-w-0")}
    assert any("cpu" in aside.reason for aside in loop.aside)


def test_the_configuration_is_read_again_and_a_broken_one_is_not_used(clock, tmp_path: Path):
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text('actions: "enqueue"\ntiers: []\n')
    cluster = cluster_with(node("n0"), gang("a", 1, cpu=1))
    loop = SchedulerLoop(cluster, path, clock)
    loop.step()
    assert nodes_of(cluster) == {"a-w-0": ""}
    path.write_text('actions: "dance"\ntiers: []\n')
    loop.step()
    assert loop.conf.error is not None
    assert loop.conf.current.actions == ("enqueue",)
    path.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n')
    loop.step()
    assert loop.conf.error is None
    assert nodes_of(cluster) == {"a-w-0": "n0"}


def test_a_deleted_pod_frees_its_node(clock):
    cluster = cluster_with(node("n0"), gang("a", 1, cpu=8), gang("b", 1, cpu=8))
    loop = SchedulerLoop(cluster, None, clock)
    for _ in range(2):
        loop.step()
    first = next(name for name, where in nodes_of(cluster).items() if where)
    cluster.delete(POD, first, "default", grace_seconds=0)
    for _ in range(2):
        loop.step()
    assert list(nodes_of(cluster).values()) == ["n0"]


def test_the_running_loop_starts_a_gang_soon_and_survives_a_broken_cycle(monkeypatch):
    cluster = cluster_with(node("n0"))
    loop = SchedulerLoop(cluster, None, SystemClock(), period=0.2)
    stop, failed = threading.Event(), threading.Event()
    from scheduler import loop as module

    whole = module.run_cycle

    def once_broken(*args, **kwargs):
        if not failed.is_set():
            failed.set()
            raise RuntimeError("broken on purpose")
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, "run_cycle", once_broken)
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    try:
        assert failed.wait(5)
        add(cluster, gang("a", 2, cpu=2))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and group_of(cluster, "a").get("status", {}).get("phase") != "Running":
            time.sleep(0.01)
        assert group_of(cluster, "a")["status"]["phase"] == "Running"
        assert loop.failures == 1
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()
