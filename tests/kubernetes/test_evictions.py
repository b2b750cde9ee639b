"""Evictions by the Eviction API: budgets are minded, the reason is on the pod, and who wants it deletes what a budget keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.errors import Conflict, NotFound, TooManyRequests
from cluster.kinds import DISRUPTION_BUDGET, NAMESPACE, POD
from cluster.kubernetes import KubernetesCluster, connect
from cluster.port import Binding, Eviction, Obj
from testbed.server import TOKEN, ApiServer

NS = "evictions"


@pytest.fixture(scope="module", autouse=True)
def namespace(backend: KubernetesCluster) -> None:
    backend.create(NAMESPACE, {"metadata": {"name": NS}})


@pytest.fixture
def cluster(api_server: ApiServer) -> Iterator[KubernetesCluster]:
    """A client that takes a budget's no for an answer."""
    client = connect(api_server.url, TOKEN, str(api_server.authority), manager="basalt-tests")
    yield client
    client.close()


@pytest.fixture
def deleting(api_server: ApiServer) -> Iterator[KubernetesCluster]:
    """A client that falls back to delete."""
    client = connect(api_server.url, TOKEN, str(api_server.authority), eviction_fallback="delete")
    yield client
    client.close()


@pytest.fixture(autouse=True)
def clean(backend: KubernetesCluster) -> Iterator[None]:
    yield
    for kind in (DISRUPTION_BUDGET, POD):
        for obj in backend.list(kind, NS).items:
            backend.delete(kind, obj["metadata"]["name"], NS, grace_seconds=0)


def running(cluster: KubernetesCluster, name: str) -> str:
    """The uid of a pod that runs on a node."""
    container = {"name": "main", "image": "busybox"}
    meta = {"name": name, "namespace": NS, "labels": {"app": "kept"}}
    made = cluster.create(POD, {"metadata": meta, "spec": {"containers": [container]}})
    cluster.bind(Binding(NS, name, made["metadata"]["uid"], "node-0"))
    conditions = [{"type": "Ready", "status": "True"}]
    cluster.patch_status(POD, name, NS, {"phase": "Running", "conditions": conditions})
    return str(made["metadata"]["uid"])


def budget(cluster: KubernetesCluster, allowed: int, name: str = "kept") -> None:
    """A budget as the disruption controller leaves it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    made = cluster.create(DISRUPTION_BUDGET, {"metadata": {"name": name, "namespace": NS}, "spec": spec})
    status = {
        "disruptionsAllowed": allowed, "currentHealthy": allowed + 1, "desiredHealthy": 1, "expectedPods": allowed + 1,
        "observedGeneration": made["metadata"]["generation"],
    }  # fmt: skip
    cluster.patch_status(DISRUPTION_BUDGET, name, NS, status)


def condition(pod: Obj) -> Any:
    return next((c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget"), None)


def test_a_budget_is_minded_and_tells_why(cluster: KubernetesCluster, backend: KubernetesCluster) -> None:
    uid = running(backend, "a")
    budget(backend, 0)
    with pytest.raises(TooManyRequests, match="disruption budget"):
        cluster.evict(NS, "a", uid=uid, reason="Preempted", message="for somebody else")
    pod = backend.get(POD, "a", NS)
    assert condition(pod) is None
    assert "deletionTimestamp" not in pod["metadata"]


def test_of_many_as_many_go_as_the_budget_allows(cluster: KubernetesCluster, backend: KubernetesCluster) -> None:
    victims = [Eviction(NS, name, running(backend, name), "Preempted", "for somebody else") for name in "abcd"]
    budget(backend, 2)
    outcomes = cluster.evict_many(victims)
    refused = [each for each in outcomes if each.error is not None]
    assert [type(each.error) for each in refused] == [TooManyRequests] * 2
    for outcome in outcomes:
        pod = backend.get(POD, outcome.name, NS)
        assert bool(pod["metadata"].get("deletionTimestamp")) == (outcome.error is None)
        if outcome.error is None:
            told = condition(pod)
            assert (told["status"], told["reason"], told["message"]) == ("True", "Preempted", "for somebody else")
            assert {c["type"] for c in pod["status"]["conditions"]} == {"Ready", "DisruptionTarget"}, "others stay"


def test_where_it_is_wanted_a_refused_pod_is_deleted_with_its_grace(
    deleting: KubernetesCluster, backend: KubernetesCluster
) -> None:
    uid = running(backend, "a")
    budget(backend, 0)
    deleting.evict(NS, "a", uid=uid, reason="Preempted", message="for somebody else")
    pod = backend.get(POD, "a", NS)
    assert (pod["metadata"]["deletionGracePeriodSeconds"], condition(pod)["reason"]) == (30, "Preempted")


def test_two_budgets_of_one_pod_which_no_server_evicts(
    cluster: KubernetesCluster, deleting: KubernetesCluster, backend: KubernetesCluster
) -> None:
    uid = running(backend, "a")
    budget(backend, 5)
    budget(backend, 5, "also")
    with pytest.raises(Exception, match="more than one PodDisruptionBudget"):
        cluster.evict(NS, "a", uid=uid)
    deleting.evict(NS, "a", uid=uid)
    assert backend.get(POD, "a", NS)["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("client", ["cluster", "deleting"])
def test_another_pod_of_the_name_is_left_alone(client: str, request: pytest.FixtureRequest, backend: KubernetesCluster) -> None:
    running(backend, "a")
    with pytest.raises(Conflict):
        request.getfixturevalue(client).evict(NS, "a", uid="00000000-0000-4000-8000-000000000000", reason="x")
    assert "deletionTimestamp" not in backend.get(POD, "a", NS)["metadata"]
    with pytest.raises(NotFound):
        request.getfixturevalue(client).evict(NS, "missing", uid="u")


def test_writes_name_who_made_them(cluster: KubernetesCluster, backend: KubernetesCluster) -> None:
    running(cluster, "a")
    pod = backend.get(POD, "a", NS)
    assert {entry["manager"] for entry in pod["metadata"]["managedFields"]} == {"basalt-tests"}
