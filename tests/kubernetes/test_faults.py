"""What goes wrong between us and an API server, and that everything comes right again."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from cluster.admission import admission
from cluster.admitted import Admitted
from cluster.errors import ApiError
from cluster.kinds import JOB, NODE, POD, POD_GROUP
from cluster.kubernetes import KubernetesCluster, watch
from jobs.controller import ControllerManager
from scheduler.loop import SchedulerLoop
from testbed.kubelet import FakeKubelet
from testbed.server import ApiServer
from testbed.stack import Stack, at_work, eventually
from tests.kubernetes.faulty import Fault, Faulty, faulty, swallowed


@contextlib.contextmanager
def scheduling(cluster: KubernetesCluster) -> Iterator[SchedulerLoop]:
    loop = SchedulerLoop(cluster, None, cluster.clock)
    with at_work(loop.run):
        yield loop


@contextlib.contextmanager
def controlling(cluster: KubernetesCluster) -> Iterator[None]:
    with at_work(ControllerManager(Admitted(cluster, admission), cluster.clock).run):
        yield


@pytest.fixture
def client(api_server: ApiServer, stack: Stack, kubelet: FakeKubelet) -> Iterator[tuple[KubernetesCluster, Faulty]]:
    """A client that can be made to fail, over a server with nodes and the built-in queues."""
    with faulty(api_server) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(backend: KubernetesCluster) -> Iterator[None]:
    yield
    for kind in (JOB, POD_GROUP, POD):
        for obj in backend.list(kind, "default").items:
            with contextlib.suppress(Exception):
                backend.delete(kind, obj["metadata"]["name"], "default", grace_seconds=0 if kind == POD else None)
    eventually(lambda: not backend.list(POD, "default").items)


def submit(cluster: KubernetesCluster, name: str, pods: int = 4) -> None:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"schedulerName": "volcano", "tasks": [{"name": "w", "replicas": pods, "template": template}]}
    cluster.create(JOB, {"metadata": {"name": name}, "spec": spec})


def running(cluster: KubernetesCluster, name: str, pods: int = 4) -> bool:
    status = cluster.get(JOB, name, "default").get("status") or {}
    return (status.get("state") or {}).get("phase") == "Running" and status.get("running") == pods


def places(cluster: KubernetesCluster) -> list[str]:
    return [pod["spec"].get("nodeName") or "" for pod in cluster.list(POD, "default").items]


@pytest.mark.parametrize(("status", "reason"), [(429, "TooManyRequests"), (500, "InternalError"), (409, "Conflict"), (503, "")])
def test_refused_binds_are_tried_again_until_the_gang_runs(client: Any, backend: Any, status: int, reason: str) -> None:
    cluster, transport = client
    transport.put(Fault("POST", "/binding", 6, status, reason))
    with controlling(backend), scheduling(cluster) as loop:
        submit(backend, "refused")
        eventually(lambda: running(backend, "refused"))
    assert (transport.met, loop.failures) == (6, 0)


@pytest.mark.parametrize(("status", "reason"), [(429, "TooManyRequests"), (500, "InternalError"), (409, "Conflict")])
@pytest.mark.parametrize(
    ("method", "part"), [("POST", "/podgroups"), ("POST", "/pods"), ("PATCH", "/jobs/"), ("POST", "/events")]
)
def test_whatever_write_is_refused_the_job_runs_in_the_end(
    client: Any, backend: Any, method: str, part: str, status: int, reason: str
) -> None:
    cluster, transport = client
    times = 1 if part == "/events" else 2  # an event that was refused is not worth a second try
    transport.put(Fault(method, part, times, status, reason))
    with controlling(cluster), scheduling(cluster):
        submit(backend, "again")
        eventually(lambda: running(backend, "again"))
        eventually(lambda: transport.met == times)
        assert len(places(backend)) == 4


def test_refused_statuses_of_gangs_are_written_in_the_end(client: Any, backend: Any) -> None:
    cluster, transport = client
    transport.put(Fault("PATCH", "/podgroups/", 4, 500, "InternalError"))
    with controlling(backend), scheduling(cluster):
        submit(backend, "told")
        eventually(lambda: running(backend, "told"))
        eventually(lambda: (backend.list(POD_GROUP, "default").items[0].get("status") or {}).get("running") == 4)


def test_a_scheduler_that_dies_between_the_binds_of_a_gang_leaves_them_to_the_next(
    client: Any, backend: KubernetesCluster, api_server: ApiServer
) -> None:
    lock = threading.Lock()
    bound = 0
    with controlling(backend), faulty(api_server, at_once=1) as (cluster, transport):

        def heard(method: str, status: int) -> None:
            nonlocal bound
            with lock:
                bound += method == "POST" and status == 201
                transport.dead = transport.dead or bound >= 2

        cluster.on_answer(heard)
        with scheduling(cluster):
            submit(backend, "halves")
            eventually(lambda: transport.dead)
        before = places(backend)
        assert 0 < sum(map(bool, before)) < 4
        with scheduling(client[0]):
            eventually(lambda: running(backend, "halves"))
        after = places(backend)
        assert [now for was, now in zip(before, after, strict=True) if was] == [was for was in before if was]


def test_a_node_that_goes_between_decision_and_bind_costs_its_pods_and_no_more(client: Any, backend: KubernetesCluster) -> None:
    cluster, transport = client
    lost: list[str] = []
    kubelet = FakeKubelet(backend)

    def lose() -> None:
        for node in backend.list(NODE).items:
            lost.append(node["metadata"]["name"])
            backend.delete(NODE, node["metadata"]["name"])
        kubelet.add_nodes(["later-0", "later-1"])

    transport.put(Fault("POST", "/binding", 1, first=lose))
    try:
        with controlling(backend), scheduling(cluster):
            submit(backend, "moved")
            eventually(lambda: lost)
            eventually(  # of the places, not of the job's status, whose counts rest a second
                lambda: (
                    _collect_lost(backend, set(lost)) and [place.rpartition("-")[0] for place in places(backend)] == ["later"] * 4
                )
            )
            eventually(lambda: running(backend, "moved"))
    finally:
        kubelet.add_nodes(lost)
        for name in ("later-0", "later-1"):
            with contextlib.suppress(Exception):
                backend.delete(NODE, name)


def _collect_lost(cluster: KubernetesCluster, lost: set[str]) -> bool:
    """What Kubernetes's garbage collector of pods does: those of nodes that are gone go too."""
    for pod in cluster.list(POD, "default").items:
        if pod["spec"].get("nodeName") in lost:
            with contextlib.suppress(ApiError):  # the server may be away just now; it is asked again
                cluster.delete(POD, pod["metadata"]["name"], "default", uid=pod["metadata"]["uid"], grace_seconds=0)
    return True


def test_a_watch_that_hangs_without_a_word_is_begun_anew(
    client: Any, backend: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "IDLE_SECONDS", 1.5)
    cluster, proxy = client
    proxy.put(Fault("GET", "/pods", 1, query="watch=", lines=swallowed))
    with controlling(backend), scheduling(cluster):
        eventually(lambda: proxy.met)
        submit(backend, "unheard")
        eventually(lambda: running(backend, "unheard"))


def test_the_server_may_die_and_come_back(client: Any, backend: KubernetesCluster, api_server: ApiServer) -> None:
    cluster, _ = client
    with controlling(cluster), scheduling(cluster):
        submit(backend, "before")
        eventually(lambda: running(backend, "before"))
        uids = {pod["metadata"]["uid"] for pod in backend.list(POD, "default").items}
        api_server.pause()
        api_server.go_on()
        submit(backend, "after")
        eventually(lambda: running(backend, "after"))
        assert running(backend, "before")
        assert uids <= {pod["metadata"]["uid"] for pod in backend.list(POD, "default").items}


def test_a_kind_that_is_not_installed_is_named_and_waited_for(
    client: Any, backend: KubernetesCluster, api_server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, _ = client
    api_server.kubectl("delete", "crd", "hypernodes.topology.volcano.sh", check=True)
    with caplog.at_level(logging.WARNING), controlling(cluster), scheduling(cluster) as loop:
        said = "the cluster does not serve hypernodes.topology.volcano.sh: is it installed? (manage.py install-crds)"
        eventually(lambda: sum(said in record.getMessage() for record in caplog.records) >= 2)
        assert loop.cycles == 0
        call_command("install-crds", kubeconfig=str(api_server.kubeconfig))
        submit(backend, "late")
        eventually(lambda: running(backend, "late"))
    assert not [record for record in caplog.records if record.exc_info]
