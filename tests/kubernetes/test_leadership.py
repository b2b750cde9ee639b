"""Two schedulers over one API server: one leads, and whatever becomes of it, the other one takes over and no two write."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator

import pytest

from cluster.errors import NotFound, Unavailable
from cluster.kinds import CONFIG_MAP, LEASE, POD, POD_GROUP
from cluster.kubernetes import KubernetesCluster, connect
from cluster.leadership import Election
from testbed.kubelet import FakeKubelet
from testbed.server import TOKEN, ApiServer
from testbed.stack import Stack, eventually

TAKES_OVER = 15.0


@pytest.fixture(scope="module")
def schedulers(stack: Stack, kubelet: FakeKubelet, backend: KubernetesCluster) -> Iterator[Stack]:
    """A controller, which makes the queues, and two schedulers; `one` leads, and nobody did before."""
    with contextlib.suppress(NotFound):
        backend.delete(LEASE, "basalt-scheduler", "default")
    stack.start("controller")
    stack.start("one", "--no-decisions", part="scheduler")
    stack.wait_ready("controller", "one")
    eventually(lambda: stack.metric("one", "basalt_leads") == 1)
    stack.start("two", "--no-decisions", part="scheduler")
    stack.wait_ready("two")
    return stack


def gang(cluster: KubernetesCluster, name: str, pods: int = 3) -> None:
    """A PodGroup and its pods, as any operator makes them."""
    cluster.create(POD_GROUP, {"metadata": {"name": name}, "spec": {"minMember": pods, "queue": "default"}})
    for number in range(pods):
        notes = {"scheduling.k8s.io/group-name": name}
        container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
        meta = {"name": f"{name}-{number}", "labels": {"gang": name}, "annotations": notes}
        cluster.create(POD, {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [container]}})


def is_bound(cluster: KubernetesCluster, name: str) -> bool:
    return all(pod["spec"].get("nodeName") for pod in cluster.list(POD, labels=f"gang={name}").items)


def test_one_leads_and_the_other_is_ready_to(schedulers: Stack, backend: KubernetesCluster) -> None:
    assert [schedulers.metric(name, "basalt_leads") for name in ("one", "two")] == [1, 0]
    assert backend.get(LEASE, "basalt-scheduler", "default")["spec"]["leaseTransitions"] == 0
    gang(backend, "first")
    eventually(lambda: is_bound(backend, "first"))
    assert schedulers.metric("two", "volcano_e2e_scheduling_latency_milliseconds_count") == 0


def test_a_held_up_leader_is_replaced_and_writes_nothing_when_it_wakes(schedulers: Stack, backend: KubernetesCluster) -> None:
    schedulers.hold("one")
    begin = time.monotonic()
    gang(backend, "second")
    eventually(lambda: schedulers.metric("two", "basalt_leads") == 1, TAKES_OVER)
    assert time.monotonic() - begin < TAKES_OVER
    eventually(lambda: is_bound(backend, "second"))
    schedulers.release("one")
    eventually(lambda: schedulers.metric("one", "basalt_leads") == 0)
    gang(backend, "third")
    eventually(lambda: is_bound(backend, "third"))
    assert schedulers.metric("two", "basalt_pods_bound_total") == 6
    assert schedulers.metric("one", "basalt_pods_bound_total") == 3
    said = eventually(lambda: "leads no more" in schedulers.log("one"))
    assert said


def test_a_leader_that_ends_in_order_gives_its_lease_back(schedulers: Stack, backend: KubernetesCluster) -> None:
    begin = time.monotonic()
    assert schedulers.end("two") == 0
    eventually(lambda: schedulers.metric("one", "basalt_leads") == 1)
    assert time.monotonic() - begin < 10, "a lease that was given back is not waited for"
    gang(backend, "fourth")
    eventually(lambda: is_bound(backend, "fourth"))


def test_a_killed_leader_is_replaced(schedulers: Stack, backend: KubernetesCluster) -> None:
    schedulers.start("two", "--no-decisions", part="scheduler")
    schedulers.wait_ready("two")
    schedulers.end("one", signal.SIGKILL)
    gang(backend, "fifth")
    eventually(lambda: schedulers.metric("two", "basalt_leads") == 1, TAKES_OVER)
    eventually(lambda: is_bound(backend, "fifth"))


def test_each_write_of_a_batch_is_refused_once_the_lease_is_lost(api_server: ApiServer, backend: KubernetesCluster) -> None:
    guarded = connect(api_server.url, TOKEN, str(api_server.authority), at_once=1)
    election = Election(backend, "of-a-batch", "default", who="me")
    assert election.attempt()
    guarded.guard(election.check)
    made = 0

    def heard(method: str, status: int) -> None:
        nonlocal made
        made += method == "POST"
        if made == 2:
            election._until = 0.0  # what a lease that was not renewed comes to

    guarded.on_answer(heard)
    outcomes = guarded.create_many(CONFIG_MAP, [{"metadata": {"name": f"batch-{number}"}} for number in range(5)])
    assert [type(each.error) for each in outcomes] == [type(None)] * 2 + [Unavailable] * 3
    guarded.close()
    for number in range(2):
        backend.delete(CONFIG_MAP, f"batch-{number}", "default")
