"""Jobs on a real API server when people delete, change and apply them, and when namespaces end or have no room."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster.admission import admission
from cluster.admitted import Admitted
from cluster.errors import NotFound
from cluster.kinds import EVENT, JOB, NAMESPACE, POD, POD_GROUP, RESOURCE_QUOTA
from cluster.kubernetes import KubernetesCluster, connect
from cluster.port import Obj
from jobs.controller import ControllerManager
from jobs.held import verdict
from scheduler.loop import SchedulerLoop
from testbed.kubelet import FakeKubelet
from testbed.server import TOKEN, ApiServer
from testbed.stack import Stack, at_work, eventually


class Heard:
    """The client of controller and scheduler, and the creations that it asked for."""

    def __init__(self, server: ApiServer) -> None:
        self.cluster = connect(server.url, TOKEN, str(server.authority))
        self.refused = 0
        self.cluster.on_answer(self._hear)

    def _hear(self, method: str, status: int) -> None:
        self.refused += method == "POST" and status == 403


@pytest.fixture(scope="module")
def parts(api_server: ApiServer, stack: Stack, kubelet: FakeKubelet) -> Iterator[Heard]:
    """A controller and a scheduler at work, as their processes have them."""
    heard = Heard(api_server)
    manager = ControllerManager(Admitted(heard.cluster, admission), heard.cluster.clock, rest=1.0)
    with at_work(manager.run), at_work(SchedulerLoop(heard.cluster, None, heard.cluster.clock, rest=1.0).run):
        yield heard
    heard.cluster.close()


@pytest.fixture
def space(backend: KubernetesCluster, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = request.node.name.replace("_", "-").replace("[", "-").strip("]")[-50:].strip("-")
    backend.create(NAMESPACE, {"metadata": {"name": name}})
    return name


def manifest(name: str, space: str, replicas: int = 3, **spec: Any) -> str:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": "w", "replicas": replicas, "template": template}]
    job = {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": space},
        "spec": {"schedulerName": "volcano", "minAvailable": replicas, "tasks": tasks, **spec},
    }
    return yaml.safe_dump(job)


def names(backend: KubernetesCluster, space: str) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in backend.list(POD, space).items)


def runs(backend: KubernetesCluster, space: str, name: str, pods: int = 3) -> bool:
    status = backend.get(JOB, name, space).get("status") or {}
    return (status.get("state") or {}).get("phase") == "Running" and status.get("running") == pods


def gone(backend: KubernetesCluster, space: str, name: str) -> bool:
    with contextlib.suppress(NotFound):
        return not backend.get(JOB, name, space)
    return True


def events(backend: KubernetesCluster, space: str, reason: str) -> list[Obj]:
    return [event for event in backend.list(EVENT, space).items if event["reason"] == reason]


@pytest.mark.parametrize("cascade", ["foreground", "background"])
def test_a_deleted_job_takes_its_pods_along(
    parts: Heard, api_server: ApiServer, backend: KubernetesCluster, kubelet: FakeKubelet, space: str, cascade: str
) -> None:
    api_server.kubectl("create", "-f", "-", text=manifest("train", space), check=True)
    eventually(lambda: runs(backend, space, "train"))
    uids = {pod["metadata"]["uid"] for pod in backend.list(POD, space).items}
    with contextlib.closing(backend.watch([POD], namespace=space)) as watch:
        api_server.kubectl("delete", "vcjob", "train", "-n", space, f"--cascade={cascade}", check=True)
        eventually(lambda: gone(backend, space, "train") and not names(backend, space))
        seen = {event.object["metadata"]["uid"] for event in watch.drain() if event.kind == POD}
    assert seen == uids  # no pod was made anew while the job was going
    eventually(lambda: not backend.list(POD_GROUP, space).items)
    assert len([line for line in kubelet.log if line.startswith(f"stop {space}/")]) == 3


def test_a_job_deleted_alone_leaves_its_pods_running_and_nobody_touches_them(
    parts: Heard, api_server: ApiServer, backend: KubernetesCluster, kubelet: FakeKubelet, space: str
) -> None:
    api_server.kubectl("create", "-f", "-", text=manifest("train", space), check=True)
    eventually(lambda: runs(backend, space, "train"))
    before = {pod["metadata"]["uid"] for pod in backend.list(POD, space).items}
    api_server.kubectl("delete", "vcjob", "train", "-n", space, "--cascade=orphan", check=True)
    eventually(lambda: gone(backend, space, "train"))
    api_server.kubectl("create", "-f", "-", text=manifest("train", space), check=True)  # its names are taken
    told = eventually(lambda: events(backend, space, "FailedCreate"))
    assert "somebody else's" in told[0]["message"]
    pods = backend.list(POD, space).items
    assert {pod["metadata"]["uid"] for pod in pods} == before
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    for pod in pods:
        backend.delete(POD, pod["metadata"]["name"], space)
    eventually(lambda: runs(backend, space, "train"))
    assert not before & {pod["metadata"]["uid"] for pod in backend.list(POD, space).items}


def test_a_namespace_that_is_being_deleted_is_not_pressed(
    parts: Heard, api_server: ApiServer, backend: KubernetesCluster, space: str
) -> None:
    api_server.kubectl("create", "-f", "-", text=manifest("train", space), check=True)
    eventually(lambda: runs(backend, space, "train"))
    api_server.kubectl("delete", "namespace", space, "--wait=false", check=True)
    refused = parts.refused
    for pod in backend.list(POD, space).items:  # as its own controller does, one by one
        backend.delete(POD, pod["metadata"]["name"], space, grace_seconds=0)
    eventually(lambda: not names(backend, space))
    eventually(lambda: parts.refused > refused)
    threading.Event().wait(5.0)
    assert parts.refused - refused <= 12  # three or four tries of at most three pods
    assert backend.get(JOB, "train", space)["status"]["state"]["phase"] in ("Running", "Pending")
    backend.delete(JOB, "train", space)


def test_a_quota_that_refuses_pods_is_told_and_waited_for(
    parts: Heard, api_server: ApiServer, backend: KubernetesCluster, space: str
) -> None:
    quota = backend.create(RESOURCE_QUOTA, {"metadata": {"name": "few", "namespace": space}, "spec": {"hard": {"pods": "2"}}})
    backend.patch_status(RESOURCE_QUOTA, "few", space, {"hard": quota["spec"]["hard"], "used": {"pods": "0"}})
    refused = parts.refused
    api_server.kubectl("create", "-f", "-", text=manifest("train", space, replicas=20), check=True)
    told = eventually(lambda: events(backend, space, "FailedCreate"))
    assert "exceeded quota: few" in told[0]["message"]
    held = eventually(lambda: verdict(backend.get(JOB, "train", space)))
    assert (held["code"], held["object"]) == ("quota.used", "few")
    assert len(names(backend, space)) == 2
    threading.Event().wait(4.0)
    assert parts.refused - refused <= 18 + 4  # all were tried once, then one at a time
    backend.patch(RESOURCE_QUOTA, "few", space, {"spec": {"hard": {"pods": "50"}}})
    backend.patch_status(RESOURCE_QUOTA, "few", space, {"hard": {"pods": "50"}})
    eventually(lambda: runs(backend, space, "train", 20))
    assert verdict(backend.get(JOB, "train", space)) is None


def test_a_running_job_that_kubectl_changes_follows(
    parts: Heard, api_server: ApiServer, backend: KubernetesCluster, space: str
) -> None:
    api_server.kubectl("create", "-f", "-", text=manifest("train", space), check=True)
    eventually(lambda: runs(backend, space, "train"))

    def patch(*operations: Obj) -> None:
        body = json.dumps([{"op": "replace", **operation} for operation in operations])
        api_server.kubectl("patch", "vcjob", "train", "-n", space, "--type=json", "-p", body, check=True)

    patch({"path": "/spec/tasks/0/replicas", "value": 5})
    eventually(lambda: runs(backend, space, "train", 5))
    patch({"path": "/spec/minAvailable", "value": 2})
    eventually(lambda: backend.list(POD_GROUP, space).items[0]["spec"]["minMember"] == 2)
    patch({"path": "/spec/tasks/0/replicas", "value": 2})
    eventually(lambda: runs(backend, space, "train", 2))
    assert names(backend, space) == ["train-w-0", "train-w-1"]
    status = backend.get(JOB, "train", space)["status"]
    assert (status["minAvailable"], status["retryCount"], status["version"]) == (2, 0, 0)


def test_appliers_of_a_job_do_not_meet_the_controller_and_those_of_its_group_do(
    parts: Heard, api_server: ApiServer, backend: KubernetesCluster, space: str
) -> None:
    def apply(text: str, *more: str) -> Any:
        return api_server.kubectl("apply", "--server-side", "-f", "-", *more, text=text)

    assert apply(manifest("train", space)).returncode == 0
    eventually(lambda: runs(backend, space, "train"))
    again = apply(manifest("train", space, minAvailable=2))
    assert (again.returncode, again.stderr) == (0, "")
    found = backend.get(POD_GROUP, f"train-{backend.get(JOB, 'train', space)['metadata']['uid']}", space)
    group = {
        "apiVersion": found["apiVersion"],
        "kind": "PodGroup",
        "metadata": {"name": found["metadata"]["name"], "namespace": space},
        "spec": {"minMember": 1},
    }
    refused = apply(yaml.safe_dump(group))
    assert refused.returncode == 1
    assert "basalt-controller" in refused.stderr
    assert ".spec.minMember" in refused.stderr
    assert apply(yaml.safe_dump(group), "--force-conflicts").returncode == 0
    eventually(lambda: backend.list(POD_GROUP, space).items[0]["spec"]["minMember"] == 2)  # it follows the job
    assert runs(backend, space, "train")
