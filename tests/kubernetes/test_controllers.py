"""Two controllers over one API server, of which one loses its lease while it is held up."""

from __future__ import annotations

import contextlib

import yaml

from cluster.errors import NotFound
from cluster.kinds import JOB, LEASE, POD
from cluster.kubernetes import KubernetesCluster
from testbed.kubelet import FakeKubelet
from testbed.server import ApiServer
from testbed.stack import Stack, eventually

MADE = 'basalt_api_requests_total{code="201",method="POST"}'


def manifest(name: str, replicas: int) -> str:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"schedulerName": "volcano", "tasks": [{"name": "w", "replicas": replicas, "template": template}]}
    return yaml.safe_dump({"apiVersion": JOB.api_version, "kind": "Job", "metadata": {"name": name}, "spec": spec})


def test_a_controller_that_lost_its_lease_writes_nothing_when_it_wakes(
    stack: Stack, kubelet: FakeKubelet, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    with contextlib.suppress(NotFound):
        backend.delete(LEASE, "basalt-controller", "default")
    stack.start("one", part="controller")
    stack.wait_ready("one")
    eventually(lambda: stack.metric("one", "basalt_leads") == 1)
    stack.start("two", part="controller")
    stack.start("scheduler", "--no-decisions")
    stack.wait_ready("two", "scheduler")
    api_server.kubectl("create", "-f", "-", text=manifest("before", 2), check=True)
    eventually(lambda: len(backend.list(POD, "default").items) == 2)
    made = stack.metric("one", MADE)
    stack.hold("one")
    api_server.kubectl("create", "-f", "-", text=manifest("train", 3), check=True)
    eventually(lambda: stack.metric("two", "basalt_leads") == 1)
    eventually(lambda: len(backend.list(POD, "default").items) == 5)
    uids = {pod["metadata"]["uid"] for pod in backend.list(POD, "default").items}
    stack.release("one")
    eventually(lambda: stack.metric("one", "basalt_leads") == 0)
    scale = '[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 5}]'
    api_server.kubectl("patch", "vcjob", "train", "--type=json", "-p", scale, check=True)
    eventually(lambda: len(backend.list(POD, "default").items) == 7)
    assert uids < {pod["metadata"]["uid"] for pod in backend.list(POD, "default").items}
    assert stack.metric("one", MADE) == made
    for part in ("one", "two", "scheduler"):
        assert stack.end(part) == 0
