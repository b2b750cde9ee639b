"""The seed flow on a real API server: kubectl submits, our processes do the rest, kubectl and REST see it, kubectl deletes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from cluster.kinds import CONFIG_MAP, EVENT, JOB, NETWORK_POLICY, POD, POD_GROUP, SERVICE
from cluster.kubernetes import KubernetesCluster
from testbed.kubelet import FakeKubelet
from testbed.server import ApiServer
from testbed.stack import Stack, eventually


@pytest.fixture(scope="module")
def basalt(stack: Stack, kubelet: FakeKubelet) -> Iterator[Stack]:
    """Every process of ours, at work."""
    for part in ("scheduler", "controller", "mirror"):
        stack.start(part)
    stack.serve()
    stack.wait_ready("scheduler", "controller", "mirror")
    yield stack
    assert [stack.end(part) for part in ("scheduler", "controller", "mirror")] == [0, 0, 0]


def manifest(name: str, *, replicas: int = 3, cpu: str = "1", lasts: str | None = "2s", **spec: Any) -> str:
    """A gang as Volcano's own examples have it: nothing that admission would fill in is there."""
    notes = {"annotations": {"sim.basalt.dev/duration": lasts}} if lasts else {}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template = {"metadata": notes, "spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "tasks": [{"name": "worker", "replicas": replicas, "template": template}], **spec},
    }
    return yaml.safe_dump(job)


def phase(server: ApiServer, name: str) -> str:
    return server.kubectl("get", "vcjob", name, "-o", "jsonpath={.status.state.phase}").stdout


def test_a_gang_from_kubectl_create_to_completed(
    basalt: Stack, api_server: ApiServer, backend: KubernetesCluster, kubelet: FakeKubelet
) -> None:
    text = manifest("seed", minAvailable=3, lasts="4s", plugins={"svc": [], "env": []})
    created = api_server.kubectl("create", "-f", "-", text=text)
    assert created.stdout == "job.batch.volcano.sh/seed created\n"
    eventually(lambda: phase(api_server, "seed") == "Running", why=lambda: basalt.log("controller")[-2000:])

    header, row = (line.split() for line in api_server.kubectl("get", "vcjob", "seed").stdout.splitlines())
    assert header == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert row[:4] == ["seed", "Running", "3", "3"]
    job = backend.get(JOB, "seed", "default")
    uid = job["metadata"]["uid"]
    group = eventually(
        lambda: next((g for g in backend.list(POD_GROUP).items if (g.get("status") or {}).get("running") == 3), None)
    )
    assert group["metadata"]["name"] == f"seed-{uid}"
    assert (group["spec"]["minMember"], group["spec"]["queue"], group["spec"]["minTaskMember"]) == (3, "default", {"worker": 3})
    assert group["status"]["phase"] == "Running"
    assert [c["type"] for c in group["status"]["conditions"] if c["status"] == "True"] == ["Scheduled"]
    pods = backend.list(POD, "default").items
    assert [pod["metadata"]["name"] for pod in pods] == ["seed-worker-0", "seed-worker-1", "seed-worker-2"]
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {f"seed-{uid}"}
    assert all(pod["spec"]["nodeName"].startswith("node-") for pod in pods)
    known = {e["name"]: e.get("value") for e in pods[1]["spec"]["containers"][0]["env"]}
    assert known["VC_TASK_INDEX"] == "1"
    assert {"VC_WORKER_HOSTS", "VC_WORKER_NUM"} <= known.keys()
    assert backend.get(SERVICE, "seed", "default")["spec"]["clusterIP"] == "None"
    hosts = backend.get(CONFIG_MAP, "seed-svc", "default")["data"]["worker.host"]
    assert hosts.split("\n") == ["seed-worker-0.seed", "seed-worker-1.seed", "seed-worker-2.seed"]

    shown = eventually(lambda: _shown(basalt, "seed", "Running"))
    assert (shown["uid"], shown["running"], shown["min_available"]) == (uid, 3, 3)

    eventually(lambda: phase(api_server, "seed") == "Completed")
    status = backend.get(JOB, "seed", "default")["status"]
    assert [c["status"] for c in status["conditions"]] == ["Pending", "Running", "Completed"]
    assert (status["succeeded"], status["running"], status["failed"]) == (3, 0, 0)
    eventually(lambda: _shown(basalt, "seed", "Completed"))
    told = {(e["involvedObject"]["kind"], e["reason"]) for e in backend.list(EVENT, "default").items}
    assert ("PodGroup", "Scheduled") in told
    starts = [line for line in kubelet.log if line.startswith("start default/seed-")]
    assert len(starts) == 3

    assert api_server.kubectl("delete", "vcjob", "seed").stdout == 'job.batch.volcano.sh "seed" deleted\n'
    for kind in (POD_GROUP, POD, NETWORK_POLICY):
        eventually(lambda kind=kind: not backend.list(kind, "default").items)
    eventually(lambda: not [s for s in backend.list(SERVICE, "default").items if s["metadata"]["name"] == "seed"])
    eventually(lambda: basalt.rest("GET", "jobs?name=seed").json()["results"] == [])


def test_a_gang_that_does_not_fit_waits_whole_and_says_why(
    basalt: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    api_server.kubectl("create", "-f", "-", text=manifest("large", replicas=6, cpu="5"), check=True)
    group = eventually(lambda: next((g for g in backend.list(POD_GROUP).items if _waits(g)), None))
    assert group["status"]["phase"] == "Inqueue" or group["status"]["phase"] == "Pending"
    shown = eventually(lambda: (found := _shown(basalt, "large", "Pending")) and found["verdict"] and found)
    assert shown["verdict"]["needed"] == 6
    assert not [pod for pod in backend.list(POD, "default").items if pod["spec"].get("nodeName")]
    events = api_server.kubectl("get", "events", "-o", "json")
    assert "Unschedulable" in {e["reason"] for e in json.loads(events.stdout)["items"]}
    api_server.kubectl("delete", "vcjob", "large", check=True)


def test_rest_submits_to_the_server_and_refuses_what_admission_refuses(
    basalt: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    heads = {"Content-Type": "application/yaml"}
    refused = basalt.rest("POST", "jobs", data=manifest("wrong", minAvailable=9), headers=heads)
    assert (refused.status_code, [each["pointer"] for each in refused.json()["errors"]]) == (422, ["/spec/minAvailable"])
    assert "NotFound" in api_server.kubectl("get", "vcjob", "wrong").stderr
    made = basalt.rest("POST", "jobs", data=manifest("right"), headers=heads)
    assert (made.status_code, made.json()["owner"]) == (201, "admin")
    kept = backend.get(JOB, "right", "default")["spec"]
    assert (kept["queue"], kept["minAvailable"], kept["maxRetry"]) == ("default", 3, 3)
    eventually(lambda: phase(api_server, "right") == "Completed")
    again = basalt.rest("POST", "apply", data=manifest("applied"), headers=heads).json()["results"]
    assert [each["status"] for each in again] == ["created"]
    assert [
        each["status"] for each in basalt.rest("POST", "apply", data=manifest("applied"), headers=heads).json()["results"]
    ] == ["unchanged"]
    for name in ("right", "applied"):
        api_server.kubectl("delete", "vcjob", name, check=True)


def test_a_suspended_job_gives_its_room_back_and_resumes(
    basalt: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    api_server.kubectl("create", "-f", "-", text=manifest("paused", lasts=None), check=True)
    eventually(lambda: phase(api_server, "paused") == "Running")
    eventually(lambda: _shown(basalt, "paused", "Running"))
    assert basalt.rest("POST", "jobs/default/paused/actions/suspend").ok
    eventually(lambda: phase(api_server, "paused") == "Aborted")
    eventually(lambda: not backend.list(POD, "default").items)
    eventually(lambda: _shown(basalt, "paused", "Aborted"))
    assert basalt.rest("POST", "jobs/default/paused/actions/resume").ok
    eventually(lambda: phase(api_server, "paused") == "Running")
    api_server.kubectl("delete", "vcjob", "paused", check=True)
    eventually(lambda: not backend.list(POD, "default").items)


def test_every_process_tells_its_health_and_measures(basalt: Stack) -> None:
    assert basalt.metric("scheduler", "basalt_leads") == 1
    assert basalt.metric("scheduler", "basalt_pods_bound_total") >= 3
    assert basalt.metric("scheduler", 'volcano_queue_share{queue_name="default"}') >= 0
    assert basalt.metric("controller", 'basalt_api_requests_total{code="201",method="POST"}') > 0
    assert basalt.metric("mirror", 'basalt_api_requests_total{code="200",method="GET"}') > 0


def _shown(basalt: Stack, name: str, wanted: str) -> Any:
    answer = basalt.rest("GET", f"jobs/default/{name}")
    found = answer.json() if answer.ok else {}
    return found if found.get("phase") == wanted else None


def _waits(group: Any) -> bool:
    conditions = (group.get("status") or {}).get("conditions") or ()
    return any((c["type"], c["status"], c["reason"]) == ("Unschedulable", "True", "NotEnoughResources") for c in conditions)
