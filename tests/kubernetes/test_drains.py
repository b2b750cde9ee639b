"""Draining nodes of a real API server: budgets block and are freed, DaemonSets stay, rights are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from cluster import objects, runtime
from cluster.admission import Admission
from cluster.admitted import Admitted
from cluster.errors import NotFound
from cluster.kinds import DISRUPTION_BUDGET, NAMESPACE, NODE, POD
from cluster.kubernetes import KubernetesCluster, connect
from cluster.leaving import DRAIN
from cluster.port import Binding, Obj
from cluster.projection import Batch
from portal.maintenance import rights
from portal.maintenance.acts import Wish, begin, cancel
from portal.maintenance.models import Drain
from portal.maintenance.worker import Worker
from portal.mirror import PROJECTIONS
from portal.unblock import copy
from testbed.server import TOKEN, ApiServer

NS, HERE = "drains", "drained-0"

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture(scope="module", autouse=True)
def surroundings(api_server: ApiServer, backend: KubernetesCluster) -> Iterator[None]:
    call_command("install-crds", kubeconfig=str(api_server.kubeconfig), stdout=StringIO())
    backend.create(NAMESPACE, {"metadata": {"name": NS}})
    backend.create(NODE, {"metadata": {"name": HERE}})
    yield
    backend.delete(NODE, HERE)


@pytest.fixture
def cluster(api_server: ApiServer, backend: KubernetesCluster) -> Iterator[Admitted]:
    """The portal's client; its node takes pods."""
    client = connect(api_server.url, TOKEN, str(api_server.authority), manager="basalt-tests")
    backend.patch(NODE, HERE, "", {"spec": {"unschedulable": None}, "metadata": {"annotations": {DRAIN: None}}})
    made = Admitted(client, Admission(), checks=True)
    runtime.use(made)
    PROJECTIONS[NODE].project(Batch([backend.get(NODE, HERE)]))
    yield made
    copy.current().close()
    runtime.use(None)
    for kind in (DISRUPTION_BUDGET, POD):
        for obj in backend.list(kind, NS).items:
            backend.delete(kind, objects.name(obj), NS, grace_seconds=0)
    client.close()


def running(backend: KubernetesCluster, name: str, kind: str = "", **meta: Any) -> Obj:
    """A pod that runs on the node."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": "them",
        "uid": "00000000-0000-4000-8000-000000000001",
        "controller": True,
    }
    references = {"ownerReferences": [owner]} if kind else {}
    body = {"metadata": {"name": name, "namespace": NS, **references, **meta}}
    made = backend.create(POD, {**body, "spec": {"containers": [{"name": "main", "image": "busybox"}]}})
    backend.bind(Binding(NS, name, objects.uid(made), HERE))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return backend.patch_status(POD, name, NS, status)


def stopped(backend: KubernetesCluster) -> None:
    """What a kubelet does with pods that are being deleted."""
    for pod in backend.list(POD, NS).items:
        if objects.is_deleting(pod):
            backend.delete(POD, objects.name(pod), NS, grace_seconds=0)


def there(backend: KubernetesCluster) -> set[str]:
    return {objects.name(pod) for pod in backend.list(POD, NS, fields=f"spec.nodeName={HERE}").items}


def looked(backend: KubernetesCluster, drain: Drain, times: int = 4) -> str:
    for _ in range(times):
        Worker("tests").look()
        stopped(backend)
    drain.refresh_from_db()
    return str(drain.state)


@pytest.fixture
def boss(django_user_model: Any) -> Any:
    return django_user_model.objects.create_user("boss", is_staff=True)


def test_a_budget_blocks_and_is_freed(cluster: Admitted, backend: KubernetesCluster, boss: Any) -> None:
    running(backend, "kept", "ReplicaSet", labels={"app": "kept"})
    running(backend, "agent", "DaemonSet")
    running(backend, "plain", "ReplicaSet")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    backend.create(DISRUPTION_BUDGET, {"metadata": {"name": "kept", "namespace": NS}, "spec": spec})
    generation = backend.get(DISRUPTION_BUDGET, "kept", NS)["metadata"]["generation"]
    counts = {"observedGeneration": generation, "expectedPods": 1, "currentHealthy": 1}
    told = {**counts, "desiredHealthy": 1, "disruptionsAllowed": 0}
    backend.patch_status(DISRUPTION_BUDGET, "kept", NS, told)
    drain = begin(boss, [HERE], Wish(reason="a fan"))
    assert looked(backend, drain) == "running"
    assert there(backend) == {"kept", "agent"}
    row = drain.nodes.get()
    assert (row.pods, row.left, [each["code"] for each in row.held]) == (2, 1, ["budget"])
    assert "disruption budget" in row.held[0]["why"]
    assert backend.get(NODE, HERE)["spec"]["unschedulable"] is True
    backend.patch_status(DISRUPTION_BUDGET, "kept", NS, {**told, "desiredHealthy": 0, "disruptionsAllowed": 1})
    assert looked(backend, drain) == "done"
    assert there(backend) == {"agent"}
    assert DRAIN not in objects.annotations(backend.get(NODE, HERE))


def test_a_drain_is_cancelled_and_the_node_takes_pods_again(cluster: Admitted, backend: KubernetesCluster, boss: Any) -> None:
    running(backend, "kept", "ReplicaSet", labels={"app": "kept"})
    for name in ("one", "two"):
        spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": "kept"}}}
        backend.create(DISRUPTION_BUDGET, {"metadata": {"name": name, "namespace": NS}, "spec": spec})
    drain = begin(boss, [HERE], Wish(reason="a fan"))
    assert looked(backend, drain) == "running"
    assert drain.nodes.get().held[0]["code"] == "budget"  # two budgets: the server refuses, whatever they allow
    cancel(boss, drain, uncordon=True)
    assert looked(backend, drain, 1) == "cancelled"
    node = backend.get(NODE, HERE)
    assert (bool(node["spec"].get("unschedulable")), objects.annotations(node).get(DRAIN)) == (False, None)
    assert there(backend) == {"kept"}


def test_the_server_is_asked_what_this_portal_may(cluster: Admitted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "_known", None)
    assert rights.missing() == ()
    assert cluster.may("create", POD, "eviction")
    with pytest.raises(NotFound):
        cluster.get(NODE, "none-such")
    monkeypatch.setattr(rights, "_known", None)
