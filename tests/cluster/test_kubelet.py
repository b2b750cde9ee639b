"""The simulated kubelet in simulated time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.fates import INSTANT, Timing
from cluster.embedded.kubelet import Kubelet
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import NotFound, Unavailable
from cluster.kinds import EVENT, NODE, POD
from cluster.objects import stamp
from cluster.port import Binding, Obj

EXACT = Timing(start=(2, 2), run=(10, 10), stop=(1, 1))


@pytest.fixture
def kubelet(cluster: EmbeddedCluster) -> Kubelet:
    return Kubelet(cluster, timing=EXACT)


def make_pod(cluster: EmbeddedCluster, name: str = "p", *, policy: str = "Never", spec: Obj | None = None, **notes: str) -> Obj:
    """A pod on node `n`; keywords are simulation annotations with `_` for `-`."""
    annotations = {f"sim.basalt.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
    container = {"name": "main", "image": "busybox"}
    body: dict[str, Any] = {"containers": [container], "restartPolicy": policy, **(spec or {})}
    pod = cluster.create(POD, {"metadata": {"name": name, "annotations": annotations}, "spec": body})
    cluster.bind(Binding("default", name, pod["metadata"]["uid"], "n"))
    return pod


def phase(cluster: EmbeddedCluster, name: str = "p") -> str:
    return str(cluster.get(POD, name, "default")["status"]["phase"])


def advance(kubelet: Kubelet, clock: ManualClock, seconds: float) -> None:
    """Move on in steps to each due time, as a simulation does."""
    end = clock.now() + seconds
    kubelet.settle()
    while (due := kubelet.next_due()) is not None and due <= end:
        clock.advance(max(0.0, due - clock.now()))
        kubelet.settle()
    clock.advance(end - clock.now())
    kubelet.settle()


def test_a_pod_starts_after_its_delay_and_ends_after_its_duration(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    make_pod(cluster, start_delay="3s", duration="5s")
    advance(kubelet, clock, 2.9)
    assert phase(cluster) == "Pending"
    advance(kubelet, clock, 0.2)
    status = cluster.get(POD, "p", "default")["status"]
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["ready"] is True
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodScheduled": "True", "PodReadyToStartContainers": "True", "Initialized": "True", "Ready": "True",
        "ContainersReady": "True",
    }  # fmt: skip
    advance(kubelet, clock, 5)
    status = cluster.get(POD, "p", "default")["status"]
    assert status["phase"] == "Succeeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_without_annotations_the_distribution_decides(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    make_pod(cluster)
    advance(kubelet, clock, 11.9)
    assert phase(cluster) == "Running"
    advance(kubelet, clock, 0.2)
    assert phase(cluster) == "Succeeded"


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [("Never", "0", "Succeeded"), ("Never", "3", "Failed"), ("OnFailure", "0", "Succeeded")],
)
def test_a_pod_ends_by_its_exit_code_and_policy(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock, policy: str, code: str, expected: str
) -> None:
    make_pod(cluster, policy=policy, exit_code=code)
    advance(kubelet, clock, 15)
    assert phase(cluster) == expected


def test_on_failure_restarts_with_growing_back_off_until_it_succeeds(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    make_pod(cluster, policy="OnFailure", exit_code="1,1,0", duration="5s", start_delay="0s")
    advance(kubelet, clock, 5)  # first failure, started again at once
    container = cluster.get(POD, "p", "default")["status"]["containerStatuses"][0]
    assert (container["restartCount"], list(container["state"])) == (1, ["running"])
    assert container["lastState"]["terminated"]["exitCode"] == 1
    advance(kubelet, clock, 5)  # second failure, ten seconds of back-off
    container = cluster.get(POD, "p", "default")["status"]["containerStatuses"][0]
    assert (container["restartCount"], container["state"]["waiting"]["reason"]) == (2, "CrashLoopBackOff")
    advance(kubelet, clock, 10)
    assert phase(cluster) == "Running"
    advance(kubelet, clock, 5)
    assert phase(cluster) == "Succeeded"


def test_always_restarts_even_after_success(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    make_pod(cluster, policy="Always", duration="1s")
    advance(kubelet, clock, 60)
    pod = cluster.get(POD, "p", "default")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["containerStatuses"][0]["restartCount"] >= 3


def test_a_pod_past_its_active_deadline_fails(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    make_pod(cluster, spec={"activeDeadlineSeconds": 4})
    advance(kubelet, clock, 7)
    status = cluster.get(POD, "p", "default")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


@pytest.mark.parametrize(("command", "seconds"), [(["sleep", "7"], 7), (["sh", "-c", "echo a; sleep 4s && sleep 2"], 6)])
def test_a_sleeping_command_runs_as_long_as_it_sleeps(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock, command: list[str], seconds: int
) -> None:
    make_pod(cluster, spec={"containers": [{"name": "main", "image": "busybox", "command": command}]}, start_delay="0s")
    advance(kubelet, clock, seconds - 0.1)
    assert phase(cluster) == "Running"
    advance(kubelet, clock, 0.2)
    assert phase(cluster) == "Succeeded"


def test_a_deleted_pod_goes_when_its_container_has_stopped(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    make_pod(cluster)
    advance(kubelet, clock, 5)
    cluster.delete(POD, "p", "default")
    advance(kubelet, clock, 0.9)
    assert cluster.get(POD, "p", "default")["metadata"]["deletionTimestamp"]
    advance(kubelet, clock, 0.2)
    with pytest.raises(NotFound):
        cluster.get(POD, "p", "default")


def test_after_a_restart_what_should_have_happened_happens(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    make_pod(cluster, "old", duration="30s")
    advance(kubelet, clock, 10)
    make_pod(cluster, "new", duration="100s")
    kubelet.close()
    clock.advance(60)
    again = Kubelet(cluster, timing=EXACT)
    again.settle()
    assert (phase(cluster, "old"), phase(cluster, "new")) == ("Succeeded", "Running")
    state = cluster.get(POD, "old", "default")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["startedAt"], state["finishedAt"]) == ("2030-03-17T17:46:42Z", "2030-03-17T17:47:12Z")
    advance(again, clock, 43)  # it was bound at 10 and started at 12, so it ends at 112
    assert phase(cluster, "new") == "Succeeded"


def test_a_wrong_annotation_is_told_by_an_event_and_counts_as_missing(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    make_pod(cluster, duration="soon", exit_code="-1")
    advance(kubelet, clock, 15)
    assert phase(cluster) == "Succeeded"
    told = sorted(event["message"] for event in cluster.list(EVENT).items)
    assert len(told) == 2
    assert "'soon' is not a duration" in told[0]
    assert "'-1' is no exit code" in told[1]


def test_pods_of_a_lost_node_stand_still_and_catch_up_when_it_recovers(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    cluster.create(NODE, {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    make_pod(cluster, duration="20s")
    advance(kubelet, clock, 5)
    kubelet.lose_node("n")
    advance(kubelet, clock, 100)
    node = cluster.get(NODE, "n")
    assert phase(cluster) == "Running"
    assert [c["status"] for c in node["status"]["conditions"]] == ["Unknown"]
    assert {t["effect"] for t in node["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    kubelet.recover_node("n")
    advance(kubelet, clock, 0)
    assert phase(cluster) == "Succeeded"
    node = cluster.get(NODE, "n")
    assert "taints" not in node["spec"]
    assert [c["status"] for c in node["status"]["conditions"]] == ["True"]


def test_pods_of_a_node_that_stays_lost_fail_and_go(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    cluster.create(NODE, {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    make_pod(cluster, duration="1h")
    advance(kubelet, clock, 5)
    watch = cluster.watch([POD])
    kubelet.lose_node("n")
    advance(kubelet, clock, 301)
    last = watch.drain()[-1]
    assert (last.type, last.object["status"]["phase"], last.object["status"]["reason"]) == ("DELETED", "Failed", "NodeLost")


def test_a_node_is_lost_although_somebody_else_writes_to_it_meanwhile(
    cluster: EmbeddedCluster, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(NODE, {"metadata": {"name": "n"}})
    read = cluster.get
    others = iter([{"key": "maintenance", "effect": "NoSchedule"}])

    def get(*arguments: Any) -> Obj:
        obj = read(*arguments)
        for taint in others:
            cluster.patch(NODE, "n", "", {"spec": {"taints": [taint]}})
            break
        return obj

    monkeypatch.setattr(cluster, "get", get)
    kubelet.lose_node("n")
    assert {taint["key"] for taint in read(NODE, "n")["spec"]["taints"]} == {"maintenance", "node.kubernetes.io/unreachable"}


def test_losing_a_node_that_is_not_there_is_refused(kubelet: Kubelet) -> None:
    with pytest.raises(NotFound, match="no Node 'x'"):
        kubelet.lose_node("x")


def test_pods_of_a_deleted_node_go(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    cluster.create(NODE, {"metadata": {"name": "n"}})
    make_pod(cluster, duration="1h")
    advance(kubelet, clock, 5)
    cluster.delete(NODE, "n")
    advance(kubelet, clock, 0)
    assert cluster.list(POD).items == []


def test_logs_follow_from_the_containers_times(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    make_pod(cluster, duration="11s", exit_code="2")
    advance(kubelet, clock, 30)
    lines = list(cluster.logs("default", "p"))
    assert [line.split(": ")[1] for line in lines] == [
        "started (simulated",
        "step 1 (simulated)",
        "step 2 (simulated)",
        "ended (simulated), exit code 2",
    ]
    assert list(cluster.logs("default", "p", tail=1)) == lines[-1:]
    with pytest.raises(NotFound, match="no container 'side'"):
        cluster.logs("default", "p", "side")


def test_events_are_forgotten_after_an_hour(cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default", "uid": "x"}
    for name, seen in (("old", clock.now()), ("new", clock.now() + 3000)):
        cluster.create(EVENT, {"metadata": {"name": name}, "involvedObject": about, "lastTimestamp": stamp(seen)})
    advance(kubelet, clock, 3590)
    assert len(cluster.list(EVENT).items) == 2
    advance(kubelet, clock, 100)
    assert [event["metadata"]["name"] for event in cluster.list(EVENT).items] == ["new"]


def test_the_kubelet_serves_live_in_a_thread_until_it_is_told_to_stop() -> None:
    cluster = EmbeddedCluster(admission=Admission())
    kubelet = Kubelet(cluster, timing=INSTANT)
    stop = threading.Event()
    thread = threading.Thread(target=kubelet.run, args=(stop,))
    thread.start()
    watch = cluster.watch([POD])
    make_pod(cluster, duration="50ms")
    until, phases = time.monotonic() + 10, []
    while "Succeeded" not in phases and time.monotonic() < until:
        event = watch.get(1)
        if event and event.object:
            phases.append(event.object["status"]["phase"])
    stop.set()
    thread.join(5)
    assert not thread.is_alive()
    assert [phase for number, phase in enumerate(phases) if phase not in phases[:number]] == ["Pending", "Running", "Succeeded"]


def make_node(cluster: EmbeddedCluster, **allocatable: str) -> None:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1", **allocatable}
    cluster.create(NODE, {"metadata": {"name": "n"}, "status": {"allocatable": amounts}})


def asking(**requests: str) -> Obj:
    return {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": requests, "limits": requests}}]}


@pytest.mark.parametrize(
    ("requests", "reason", "message"),
    [
        ({"cpu": "3"}, "OutOfcpu", "requested: 3, used: 2, capacity: 4"),
        ({"memory": "9Gi"}, "OutOfmemory", "requested: 9Gi, used: 0, capacity: 8Gi"),
        ({"nvidia.com/gpu": "2"}, "OutOfnvidia.com/gpu", "requested: 2, used: 0, capacity: 1"),
    ],
)
def test_a_pod_beyond_its_nodes_room_is_refused_and_those_before_it_run(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock, requests: dict[str, str], reason: str, message: str
) -> None:
    make_node(cluster)
    make_pod(cluster, "first", spec=asking(cpu="2"), duration="1h")
    advance(kubelet, clock, 5)
    make_pod(cluster, "second", spec=asking(**requests))
    advance(kubelet, clock, 5)
    status = cluster.get(POD, "second", "default")["status"]
    assert (phase(cluster, "first"), status["phase"], status["reason"]) == ("Running", "Failed", reason)
    assert message in status["message"]
    make_pod(cluster, "third", spec=asking(cpu="2"))
    advance(kubelet, clock, 5)
    assert phase(cluster, "third") == "Running"


def test_of_two_that_start_together_the_first_gets_the_room(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock
) -> None:
    make_node(cluster)
    for name in ("a", "b"):
        make_pod(cluster, name, spec=asking(cpu="3"), duration="1h")
    advance(kubelet, clock, 5)
    assert sorted((phase(cluster, "a"), phase(cluster, "b"))) == ["Failed", "Running"]


def test_what_was_due_while_the_store_kept_nothing_is_done_afterwards(
    cluster: EmbeddedCluster, kubelet: Kubelet, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise Unavailable("the disk is full")

    make_pod(cluster)
    kubelet.settle()
    clock.advance(3)
    with monkeypatch.context() as failing:
        failing.setattr(cluster, "patch_status_many", full)
        with pytest.raises(Unavailable):
            kubelet.step()
    kubelet.settle()
    assert phase(cluster) == "Running"
