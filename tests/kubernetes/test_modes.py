"""Beside Volcano: Basalt as the portal over its scheduler and controllers, and our scheduler next to its, by name.

Volcano itself is played by the tests: they write what it writes.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.errors import AlreadyExists, NotFound
from cluster.kinds import COMMAND, JOB, NODE, POD, POD_GROUP, QUEUE
from cluster.kubernetes import KubernetesCluster
from cluster.objects import name, namespace, now_stamp, owner_reference
from cluster.port import Binding
from testbed.kubelet import FakeKubelet
from testbed.server import ApiServer
from testbed.stack import ROOT, Stack, eventually

GROUP = "scheduling.k8s.io/group-name"
TASK = {
    "name": "worker",
    "replicas": 2,
    "template": {"spec": {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}},
}


class Volcano:
    """What its scheduler and controllers write, on request."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    def queue(self, name: str, allocated: dict[str, str], **counts: int) -> dict[str, Any]:
        spec = {"weight": 1, "deserved": {"cpu": "8"}}
        try:
            self._cluster.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
        except AlreadyExists:
            self._cluster.patch(QUEUE, name, "", {"spec": spec})
        status = {"state": "Open", "allocated": allocated, "reservation": {}, **counts}
        return self._cluster.patch_status(QUEUE, name, "", status)

    def adopt(self, job: dict[str, Any], phase: str = "Pending") -> dict[str, Any]:
        """The controller sees a job: PodGroup, status."""
        meta = job["metadata"]
        reference = owner_reference(job)
        body = {
            "metadata": {"name": f"{meta['name']}-{meta['uid']}", "namespace": "default", "ownerReferences": [reference]},
            "spec": {"minMember": 2, "queue": "default"},
            "status": {"phase": "Pending"},
        }
        group = self._cluster.create(POD_GROUP, body)
        self.job(meta["name"], phase)
        return group

    def job(self, name: str, phase: str, **counts: int) -> dict[str, Any]:
        state = {"phase": phase, "lastTransitionTime": now_stamp(self._cluster.clock)}
        return self._cluster.patch_status(JOB, name, "default", {"state": state, "minAvailable": 2, **counts})

    def group(self, name: str, phase: str, *conditions: tuple[str, str, str]) -> dict[str, Any]:
        """Conditions by type, instant and message. PodGroups have no status subresource: a PUT of the whole object."""
        group = self._cluster.get(POD_GROUP, name, "default")
        told = [
            {"type": kind, "status": "True", "reason": "NotEnoughResources", "lastTransitionTime": at, "message": text}
            for kind, at, text in conditions
        ]
        return self._cluster.replace(POD_GROUP, {**group, "status": {"phase": phase, "conditions": told}})


@pytest.fixture(scope="module")
def volcano(api_server: ApiServer, backend: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Volcano]:
    """A cluster in which Volcano's definitions are, and nobody collects what has no owner."""
    Stack(api_server, tmp_path_factory.mktemp("volcano")).manage("install-crds")
    yield Volcano(backend)
    for kind in (JOB, POD_GROUP, POD, QUEUE, NODE):
        for obj in backend.list(kind).items:
            with contextlib.suppress(NotFound):
                backend.delete(kind, name(obj), namespace(obj), grace_seconds=0 if kind == POD else None)


@pytest.fixture(scope="module")
def portal(api_server: ApiServer, volcano: Volcano, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The portal and its mirror, nothing else of Basalt."""
    volcano.queue("root", {"cpu": "2", "memory": "2Gi", "pods": "2"}, running=1)
    volcano.queue("default", {"cpu": "2", "memory": "2Gi", "pods": "2"}, running=1)
    found = Stack(api_server, tmp_path_factory.mktemp("portal"), BASALT_SCHEDULER="off", BASALT_CONTROLLER="off")
    found.prepare()
    found.start("mirror", "--no-leader-election")
    found.wait_ready("mirror")
    found.serve()
    yield found
    found.stop()


def submitted(portal: Stack, backend: KubernetesCluster, name: str, **spec: Any) -> dict[str, Any]:
    body = {"apiVersion": JOB.api_version, "kind": "Job", "metadata": {"name": name}, "spec": {"tasks": [TASK], **spec}}
    made = portal.rest("POST", "jobs", json=body)
    assert made.status_code == 201, made.text
    return backend.get(JOB, name, "default")


def row(portal: Stack, name: str) -> dict[str, Any]:
    found = portal.rest("GET", f"jobs?name={name}").json()["results"]
    return found[0] if found else {}


@pytest.mark.parametrize("part", ["scheduler", "controller"])
def test_a_part_that_another_does_is_not_begun(portal: Stack, part: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", part], cwd=ROOT, env=portal.environment, text=True, capture_output=True, timeout=60
    )
    assert (done.returncode, f"BASALT_{part.upper()}=off: this cluster has another {part}" in done.stderr) == (1, True)


def test_the_portal_submits_and_shows_why_volcanos_scheduler_lets_a_job_wait(
    portal: Stack, backend: KubernetesCluster, volcano: Volcano
) -> None:
    job = submitted(portal, backend, "theirs")
    assert "status" not in job
    assert (job["spec"]["queue"], job["spec"]["schedulerName"], job["spec"]["minAvailable"]) == ("default", "volcano", 2)
    group = volcano.adopt(job)["metadata"]["name"]
    eventually(lambda: row(portal, "theirs").get("group_phase") == "Pending")
    message = "2/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable"
    volcano.group(group, "Inqueue", ("Unschedulable", "2030-01-01T00:00:01Z", message))
    shown = eventually(lambda: (found := row(portal, "theirs"))["verdict"] and found)
    assert (shown["verdict"]["code"], shown["verdict"]["said"], shown["mark"]) == ("scheduler.said", message, "inqueue")
    assert shown["why"]["en"] == f"Scheduler: {message}"
    told = ("Unschedulable", "2030-01-01T00:00:01Z", message), ("Scheduled", "2030-01-01T00:00:02Z", "")
    last = volcano.group(group, "Running", *told)
    status = volcano.job("theirs", "Running", running=2)
    shown = eventually(lambda: (found := row(portal, "theirs"))["phase"] == "Running" and found["verdict"] is None and found)
    assert shown["running"] == 2
    time.sleep(1.5)  # long enough for whoever would write
    assert backend.get(POD_GROUP, group, "default")["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]
    assert backend.get(JOB, "theirs", "default")["metadata"]["resourceVersion"] == status["metadata"]["resourceVersion"]


def test_actions_are_commands_for_volcanos_controller(portal: Stack, backend: KubernetesCluster, volcano: Volcano) -> None:
    job = submitted(portal, backend, "steered")
    volcano.adopt(job, "Running")
    eventually(lambda: row(portal, "steered").get("phase") == "Running")
    assert portal.rest("POST", "jobs/default/steered/actions/suspend").status_code in (200, 202)
    (command,) = (c for c in backend.list(COMMAND, "default").items if c["target"]["name"] == "steered")
    assert (command["action"], command["target"]["kind"], command["target"]["uid"]) == ("AbortJob", "Job", job["metadata"]["uid"])
    assert command["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    backend.delete(COMMAND, command["metadata"]["name"], "default")  # as its controller does, before it acts
    volcano.job("steered", "Aborted")
    eventually(lambda: row(portal, "steered")["phase"] == "Aborted")
    assert portal.rest("POST", "queues/default/actions/close").status_code in (200, 202)
    asked = eventually(lambda: [c for c in backend.list(COMMAND, "default").items if c["target"]["kind"] == "Queue"])
    assert (asked[0]["action"], asked[0]["target"]["name"]) == ("CloseQueue", "default")
    assert (backend.get(QUEUE, "default")["status"])["state"] == "Open"
    backend.delete(COMMAND, asked[0]["metadata"]["name"], "default")


def test_queues_are_shown_as_volcano_writes_them(portal: Stack, backend: KubernetesCluster, volcano: Volcano) -> None:
    def shown() -> dict[str, Any]:
        return portal.rest("GET", "queues/default").json()

    eventually(lambda: shown()["allocated"] == {"cpu": 2000, "memory": 2**31, "pods": 2})
    assert (shown()["share"], shown()["request"], shown()["inqueue"]) == (0.25, None, None)
    last = volcano.queue("default", {"cpu": "4", "memory": "2Gi", "pods": "4"}, running=2)
    eventually(lambda: shown()["allocated"]["cpu"] == 4000)
    assert shown()["share"] == 0.5
    time.sleep(1.5)
    assert backend.get(QUEUE, "default")["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]


def test_an_open_page_hears_what_another_process_saw(portal: Stack, backend: KubernetesCluster, volcano: Volcano) -> None:
    with portal.page() as page:
        page.send(json.dumps({"op": "subscribe", "topic": "jobs", "uids": []}))
        first = json.loads(page.recv(timeout=10))
        assert (first["topic"], first["type"]) == ("jobs", "snapshot")
        body = {"metadata": {"name": "heard", "namespace": "default"}, "spec": {"tasks": [TASK]}}
        uid = backend.create(JOB, body)["metadata"]["uid"]  # by kubectl, say: this process learns of it from the mirror
        end = time.monotonic() + 10
        while time.monotonic() < end:
            told = json.loads(page.recv(timeout=10))
            if uid in [row["uid"] for row in told.get("changed", ())]:
                break
        else:
            pytest.fail("the page was not told")


@pytest.fixture(scope="module")
def beside(
    api_server: ApiServer, volcano: Volcano, kubelet: FakeKubelet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Our scheduler alone, under a name of its own, beside Volcano's scheduler and controllers."""
    volcano.queue("root", {})
    volcano.queue("default", {})
    settings = {"BASALT_SCHEDULER_NAMES": "basalt", "BASALT_CONTROLLER": "off"}
    found = Stack(api_server, tmp_path_factory.mktemp("beside"), **settings)
    found.start("scheduler", "--no-decisions", "--no-leader-election")
    found.wait_ready("scheduler")
    yield found
    found.stop()


def pod(backend: KubernetesCluster, name: str, scheduler: str, group: str = "", cpu: str = "1", **meta: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}]
    notes = {GROUP: group} if group else {}
    body = {"metadata": {"name": name, "namespace": "default", "annotations": notes, **meta}}
    return backend.create(POD, {**body, "spec": {"schedulerName": scheduler, "containers": containers}})


def node_of(backend: KubernetesCluster, name: str) -> str:
    return backend.get(POD, name, "default")["spec"].get("nodeName") or ""


def gang(backend: KubernetesCluster, name: str, size: int, **meta: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name, "namespace": "default", **meta}, "spec": {"minMember": size, "queue": "default"}}
    return backend.create(POD_GROUP, body)


def test_gangs_of_other_schedulers_are_not_touched(
    beside: Stack, backend: KubernetesCluster, volcano: Volcano, kubelet: FakeKubelet
) -> None:
    volcano.queue("default", {})
    body = {"metadata": {"name": "volcanos", "namespace": "default"}, "spec": {"schedulerName": "volcano", "tasks": [TASK]}}
    group = volcano.adopt(backend.create(JOB, body))
    lone = pod(backend, "their-pod", "volcano", "their-gang")
    theirs = gang(backend, "their-gang", 1)
    ours = gang(backend, "our-gang", 2)
    for number in range(2):
        pod(backend, f"ours-{number}", "basalt", "our-gang")
    eventually(lambda: all(node_of(backend, f"ours-{number}") for number in range(2)))
    assert eventually(lambda: backend.get(POD_GROUP, "our-gang", "default")["status"]["phase"] == "Running")
    assert ours["metadata"]["resourceVersion"] != backend.get(POD_GROUP, "our-gang", "default")["metadata"]["resourceVersion"]
    time.sleep(1.0)
    for before in (group, theirs):
        meta = before["metadata"]
        now = backend.get(POD_GROUP, meta["name"], "default")
        assert now["metadata"]["resourceVersion"] == meta["resourceVersion"], now.get("status")
    assert not backend.get(POD, "their-pod", "default")["spec"].get("nodeName")
    assert backend.get(POD, "their-pod", "default")["metadata"]["resourceVersion"] == lone["metadata"]["resourceVersion"]


def test_pods_of_other_schedulers_count_as_usage(beside: Stack, backend: KubernetesCluster, kubelet: FakeKubelet) -> None:
    for node in backend.list(NODE).items:  # fill all nodes, by hand, as another scheduler would
        made = pod(backend, f"fills-{name(node)}", "default-scheduler", cpu="6")
        bind(backend, made, name(node))
    gang(backend, "wide", 1)
    pod(backend, "wide-0", "basalt", "wide", cpu="5")
    waits = eventually(lambda: waiting(backend, "wide"))
    assert "cpu" in waits["message"]
    some = name(backend.list(NODE).items[0])
    backend.delete(POD, f"fills-{some}", "default", grace_seconds=0)
    assert eventually(lambda: node_of(backend, "wide-0")) == some
    left = {p["metadata"]["name"] for p in backend.list(POD, "default").items if p["metadata"]["name"].startswith("fills-")}
    assert len(left) == len(backend.list(NODE).items) - 1


def bind(backend: KubernetesCluster, pod: dict[str, Any], node: str) -> None:
    backend.bind(Binding("default", pod["metadata"]["name"], pod["metadata"]["uid"], node))


def waiting(backend: KubernetesCluster, name: str) -> dict[str, Any] | None:
    conditions = (backend.get(POD_GROUP, name, "default").get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == "Unschedulable" and c["status"] == "True"), None)


@pytest.mark.parametrize(
    ("operator", "api_version", "kind"),
    [
        ("spark", "sparkoperator.k8s.io/v1beta2", "SparkApplication"),
        ("kubeflow", "kubeflow.org/v1", "PyTorchJob"),
        ("kuberay", "ray.io/v1", "RayCluster"),
        ("argo", "argoproj.io/v1alpha1", "Workflow"),
    ],
)
def test_pods_of_other_operators_start_by_their_podgroup(
    beside: Stack, backend: KubernetesCluster, operator: str, api_version: str, kind: str
) -> None:
    owner = {"apiVersion": api_version, "kind": kind, "name": operator, "uid": f"00000000-0000-4000-8000-{len(operator):012}"}
    references = {"ownerReferences": [{**owner, "controller": True}]}
    gang(backend, operator, 2, **references)
    pod(backend, f"{operator}-0", "basalt", operator, **references)
    waits = eventually(lambda: waiting(backend, operator))
    assert "1" in waits["message"]
    assert node_of(backend, f"{operator}-0") == ""
    pod(backend, f"{operator}-1", "basalt", operator, **references)
    eventually(lambda: node_of(backend, f"{operator}-0") and node_of(backend, f"{operator}-1"))
    for number in range(2):
        with contextlib.suppress(NotFound):
            backend.delete(POD, f"{operator}-{number}", "default", grace_seconds=0)
