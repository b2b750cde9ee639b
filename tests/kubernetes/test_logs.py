"""Logs of pods over a real API server, which asks the kubelet: a double of its endpoint answers."""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from collections.abc import Iterator

import pytest

from cluster.embedded.machines import make_node
from cluster.kinds import JOB, NODE, POD, SECRET
from cluster.kubernetes import KubernetesCluster
from cluster.objects import owner_reference
from cluster.port import Binding
from testbed.printing import LogEndpoint
from testbed.server import ApiServer
from testbed.stack import Stack, eventually

KEY = "default/talks-worker-0/main"
SECRET_VALUE = "correct horse battery staple"


@pytest.fixture(scope="module")
def printer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogEndpoint]:
    found = LogEndpoint(tmp_path_factory.mktemp("kubelet"))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def talking(
    api_server: ApiServer, backend: KubernetesCluster, printer: LogEndpoint, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Mirror and pages; a job whose pod runs on a node, is given a Secret, and was begun anew once."""
    stack = Stack(api_server, tmp_path_factory.mktemp("logs"))
    stack.prepare()
    backend.create(NODE, make_node("prints", capacity={"cpu": "8"}, allocatable={"cpu": "8"}, labels={}, annotations={}))
    where = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": printer.port}},
    }
    backend.patch_status(NODE, "prints", "", where)
    backend.create(SECRET, {"metadata": {"name": "key"}, "data": {"value": b64encode(SECRET_VALUE.encode()).decode()}})
    container = {
        "name": "main",
        "image": "i",
        "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "value"}}}],
    }
    template = {"spec": {"containers": [container], "restartPolicy": "OnFailure"}}
    spec = {"minAvailable": 1, "queue": "default", "tasks": [{"name": "worker", "replicas": 1, "template": template}]}
    job = backend.create(JOB, {"metadata": {"name": "talks", "namespace": "default"}, "spec": spec})
    notes = {"volcano.sh/job-name": "talks", "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "0"}
    meta = {"name": "talks-worker-0", "annotations": notes, "ownerReferences": [owner_reference(job)]}
    pod = backend.create(POD, {"metadata": meta, "spec": template["spec"]})
    backend.bind(Binding("default", "talks-worker-0", pod["metadata"]["uid"], "prints"))
    state = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}
    told = {"name": "main", "restartCount": 1, "state": state, "ready": True, "image": "i", "imageID": ""}
    backend.patch_status(POD, "talks-worker-0", "default", {"phase": "Running", "containerStatuses": [told]})
    stack.start("mirror", "--no-leader-election")
    stack.wait_ready("mirror")
    stack.serve()
    eventually(lambda: stack.rest("GET", "pods?name=talks-worker-0").json()["results"])
    yield stack
    stack.stop()
    for kind, name in ((POD, "talks-worker-0"), (JOB, "talks"), (SECRET, "key")):
        backend.delete(kind, name, "default", grace_seconds=0 if kind == POD else None)
    backend.delete(NODE, "prints")


def test_what_a_container_printed_is_read_through_the_api_server(talking: Stack, printer: LogEndpoint) -> None:
    printer.print(f"{KEY}/previous", "crashed", 1_000_000_000.0)
    printer.print(KEY, "begin", 1_000_000_001.25)
    printer.print(KEY, f"the key is {SECRET_VALUE}", 1_000_000_002.5)
    said = talking.rest("GET", "pods/default/talks-worker-0/log?timestamps=true")
    assert (said.status_code, said.text.splitlines()) == (
        200,
        ["2001-09-09T01:46:41.250000000Z begin", "2001-09-09T01:46:42.500000000Z the key is ******"],
    )
    assert talking.rest("GET", "jobs/default/talks/logs?tailLines=1").text == "[talks-worker-0 main] the key is ******\n"
    assert talking.rest("GET", "jobs/default/talks/logs?previous=true").text == "[talks-worker-0 main] crashed\n"
    assert printer.asked[-1] == (f"{KEY}/previous", {"previous": "true", "timestamps": "true"})


def test_what_comes_is_followed_until_the_container_has_ended(
    talking: Stack, backend: KubernetesCluster, printer: LogEndpoint
) -> None:
    def go_on() -> None:
        for number in range(3):
            time.sleep(0.3)
            printer.print(KEY, f"step {number} {SECRET_VALUE}")
        ended = {"exitCode": 0, "startedAt": "2030-01-01T00:00:00Z", "finishedAt": "2030-01-01T00:00:09Z", "reason": "Completed"}
        told = {"name": "main", "restartCount": 1, "state": {"terminated": ended}, "ready": False, "image": "i", "imageID": ""}
        backend.patch_status(POD, "talks-worker-0", "default", {"phase": "Succeeded", "containerStatuses": [told]})
        printer.print(KEY, "last")
        time.sleep(0.3)
        printer.end(KEY)

    before = printer.count(KEY)
    threading.Thread(target=go_on, daemon=True).start()
    said = talking.rest("GET", "pods/default/talks-worker-0/log?follow=true&tailLines=1", timeout=60)
    assert before == 2
    assert said.text.splitlines() == ["the key is ******", *[f"step {n} ******" for n in range(3)], "last"]


def test_a_kubelet_that_is_away_is_told_of_once_in_the_logs_place(
    talking: Stack, printer: LogEndpoint, backend: KubernetesCluster
) -> None:
    printer.stop()
    said = talking.rest("GET", "jobs/default/talks/logs", timeout=60)
    assert said.status_code == 200
    assert said.text.startswith("[talks-worker-0 main] No log on node ")
    assert said.text.count(" can be read now: ") == len({pod["spec"]["nodeName"] for pod in backend.list(POD, "default").items})
