"""Each process works under exactly the rights that the manifests give it: none is forbidden, and none is granted in vain."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from cluster import hypernodes
from cluster.errors import NotFound
from cluster.kinds import (
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    SECRET,
    SERVICE,
    STORAGE_CLASS,
    VOLUME,
)  # fmt: skip
from cluster.kubernetes import KubernetesCluster, connect
from testbed.collector import Collector
from testbed.kubelet import FakeKubelet
from testbed.server import TOKEN
from testbed.stack import eventually as within
from tests.deploy.rendered import Obj, of_kind, with_components
from tests.deploy.strict import PATIENCE, Asked, Deployed, StrictServer, granted
from tests.deploy.unseen import NOT_HERE, NOT_READ, SOMETIMES, WEB

pytestmark = pytest.mark.services
eventually = partial(within, seconds=PATIENCE)

RUNNING = ("scheduler", "controller", "mirror", "worker", "web", "webhook")

CONFIGURATION = "basalt-system/basalt-scheduler-conf"


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> tuple[Obj, ...]:
    return with_components(tmp_path_factory.mktemp("rendered"), "webhooks")


@pytest.fixture(scope="module")
def server(
    api_server_binaries: None, objects: tuple[Obj, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StrictServer]:
    """A server with everything of the manifests but what makes pods, and webhooks that would be asked at a Service."""
    if not os.environ.get("DATABASE_URL") or not os.environ.get("REDIS_URL"):
        pytest.skip("needs PostgreSQL and Redis: set DATABASE_URL and REDIS_URL")
    server = StrictServer(tmp_path_factory.mktemp("strict"))
    server.start()
    left_out = ("Deployment", "Job", "CronJob", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    for kinds in (("Namespace", "CustomResourceDefinition"), {obj["kind"] for obj in objects} - {*left_out}):
        text = yaml.safe_dump_all(of_kind(objects, *kinds))
        server.kubectl("apply", "--server-side", "-f", "-", text=text, check=True)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def backend(server: StrictServer) -> Iterator[KubernetesCluster]:
    """The tests' own client, which may do anything."""
    cluster = connect(server.url, TOKEN, str(server.authority))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def basalt(
    server: StrictServer, backend: KubernetesCluster, objects: tuple[Obj, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployed]:
    """Everything runs, webhooks included, over four nodes."""
    secrets = {name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL")} | {"BASALT_SECRET_KEY": "a1B2c3D4e5" * 6}
    deployed = Deployed(server, tmp_path_factory.mktemp("deployed"), objects, secrets)
    collector = Collector(backend, (JOB, POD_GROUP, POD, SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, JOB_FLOW, CRON_JOB))
    kubelet = FakeKubelet(backend)
    kubelet.add_nodes([f"node-{number}" for number in range(4)])
    for number in range(4):
        backend.patch(NODE, f"node-{number}", "", {"metadata": {"labels": {"rack": f"r{number // 2}"}}})
    try:
        deployed.once("Job basalt-migrate")
        deployed.begin("Deployment basalt-webhook")
        deployed.manage("install-webhooks", "--url", f"https://127.0.0.1:{deployed.ports['webhook-tls']}")
        deployed.once("Job basalt-webhook-certificates", "--host", "127.0.0.1", "--to", str(deployed.folder / "certificates"))
        deployed.wait_ready("webhook")
        for name in RUNNING[:-1]:
            deployed.begin(f"Deployment basalt-{name}")
        deployed.wait_ready("scheduler", "controller", "mirror", "web", "worker")
        deployed.sign_in()
        eventually(lambda: any(queue["metadata"]["name"] == "default" for queue in backend.list(QUEUE).items))
        collector.start()
        kubelet.start()
        yield deployed
        kubelet.stop()
        collector.stop()
    finally:
        deployed.stop()


def job(name: str, *, replicas: int = 2, cpu: str = "1", lasts: str | None = "1s", pod: Obj | None = None, **spec: Any) -> Obj:
    notes = {"annotations": {"sim.basalt.dev/duration": lasts}} if lasts else {}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template = {"metadata": notes, "spec": {"restartPolicy": "Never", "containers": [container], **(pod or {})}}
    tasks = [{"name": "worker", "replicas": replicas, "template": template}]
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": {"tasks": tasks, **spec}}


def phase(cluster: KubernetesCluster, name: str) -> str:
    with contextlib.suppress(NotFound):
        return str(((cluster.get(JOB, name, "default").get("status") or {}).get("state") or {}).get("phase"))
    return "gone"


def reaches(basalt: Deployed, cluster: KubernetesCluster, name: str, wanted: str) -> None:
    eventually(lambda: phase(cluster, name) == wanted, why=lambda: f"{phase(cluster, name)}\n{basalt.log('worker')[-1500:]}")


def test_the_seed_flow_with_every_plugin_that_makes_something(
    basalt: Deployed, server: StrictServer, backend: KubernetesCluster
) -> None:
    plugins: Obj = {"svc": [], "ssh": [], "env": []}
    volumes = [
        {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    ]
    created = server.kubectl("create", "-f", "-", text=yaml.safe_dump(job("seed", plugins=plugins, minAvailable=2, lasts="5s")))
    assert created.stdout == "job.batch.volcano.sh/seed created\n"
    eventually(lambda: any(obj["metadata"]["name"] == "seed-ssh" for obj in backend.list(SECRET, "default").items))
    reaches(basalt, backend, "seed", "Completed")
    eventually(lambda: basalt.rest("GET", "jobs/default/seed").json().get("phase") == "Completed")
    assert basalt.page("/sign-in/").status_code == 200
    server.kubectl("delete", "vcjob", "seed", check=True)
    backend.create(JOB, job("stored", volumes=volumes))
    eventually(lambda: backend.list(CLAIM, "default").items)
    server.kubectl("delete", "vcjob", "stored", check=True)


def test_people_act_through_pages_and_rest(basalt: Deployed, backend: KubernetesCluster) -> None:
    backend.create(PRIORITY_CLASS, {"metadata": {"name": "usual"}, "value": 1})
    made = basalt.rest("POST", "jobs", json=job("theirs", lasts=None, priorityClassName="usual", plugins={"svc": [], "ssh": []}))
    assert made.status_code == 201, made.text
    reaches(basalt, backend, "theirs", "Running")
    eventually(lambda: basalt.rest("GET", "jobs/default/theirs").json().get("phase") == "Running")
    eventually(lambda: basalt.rest("GET", "pods/default/theirs-worker-0").ok)
    basalt.rest("GET", "pods/default/theirs-worker-0/log")
    groups = basalt.rest("GET", "podgroups").json()["results"]
    assert basalt.rest("GET", f"podgroups/default/{groups[0]['name']}").ok
    assert basalt.rest("DELETE", "pods/default/theirs-worker-1").ok
    assert basalt.rest("POST", "jobs/default/theirs/actions/suspend").ok
    reaches(basalt, backend, "theirs", "Aborted")
    eventually(lambda: basalt.rest("GET", "jobs/default/theirs").json().get("phase") == "Aborted")
    assert basalt.rest("POST", "jobs/default/theirs/actions/resume").ok
    reaches(basalt, backend, "theirs", "Running")
    wanted = job("theirs", lasts=None, priorityClassName="usual", plugins={"svc": [], "ssh": []}, minAvailable=1)
    applied = basalt.rest("POST", "apply", data=yaml.safe_dump(wanted), headers={"Content-Type": "application/yaml"})
    assert applied.ok, applied.text
    eventually(lambda: any(group["spec"].get("minMember") == 1 for group in backend.list(POD_GROUP, "default").items))
    assert basalt.rest("DELETE", "jobs/default/theirs").ok
    reaches(basalt, backend, "theirs", "gone")
    tried = basalt.rest("POST", "jobs/dry-run", json=job("maybe"))
    assert tried.ok, tried.text
    for action in ("cordon", "uncordon"):
        assert basalt.rest("POST", f"nodes/node-3/actions/{action}").ok, action
    drained(basalt, backend)
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}, "spec": {"weight": 2}}
    assert basalt.rest("POST", "queues", json=queue).status_code == 201
    eventually(lambda: basalt.rest("GET", "queues/team").ok)
    assert basalt.rest("PATCH", "queues/team", json={"spec": {"weight": 3}}).ok
    eventually(lambda: (backend.get(QUEUE, "team").get("status") or {}).get("state") == "Open")
    assert basalt.rest("POST", "queues/team/actions/close").ok
    eventually(lambda: backend.get(QUEUE, "team")["status"]["state"] == "Closed")
    assert basalt.rest("DELETE", "queues/team").ok


def test_administrators_change_what_the_scheduler_runs_by_and_no_other_config_map(
    basalt: Deployed, server: StrictServer, backend: KubernetesCluster
) -> None:
    def told() -> Obj:
        answer = basalt.rest("GET", "scheduler/configuration")
        return answer.json() if answer.ok else {}

    first = eventually(told)
    place = f"{CONFIGURATION}:volcano-scheduler.conf"
    assert (first["source"], first["writable"], first["why_not"]) == (place, True, "")
    text = f"# changed\n{first['text']}"
    saved = basalt.rest("PUT", "scheduler/configuration", json={"text": text, "version": first["version"]})
    assert saved.ok, saved.text
    found = eventually(lambda: (now := told())["text"] == text and now)
    assert found["in_force"] == found["version"] == saved.json()["version"]
    namespace, _, name = CONFIGURATION.partition("/")
    assert backend.get(CONFIG_MAP, name, namespace)["data"] == {"volcano-scheduler.conf": text}
    who = f"--as=system:serviceaccount:{namespace}:{WEB}"
    may = {each: server.kubectl("auth", "can-i", "patch", f"configmap/{each}", "-n", namespace, who) for each in (name, "other")}
    assert {each: answer.stdout.strip() for each, answer in may.items()} == {name: "yes", "other": "no"}


def drained(basalt: Deployed, backend: KubernetesCluster) -> None:
    """A node is emptied, of a pod that only the drain would move, and takes pods again."""
    backend.create(
        POD, {"metadata": {"name": "alone"}, "spec": {"nodeName": "node-3", "containers": [{"name": "main", "image": "b"}]}}
    )
    eventually(lambda: basalt.rest("GET", "drains/preview?node=node-3").json()["pods"]["bare"] == 1)
    wanted = {"nodes": ["node-3"], "reason": "a fan", "bare": True}
    made = basalt.rest("POST", "drains", json=wanted)
    assert made.status_code == 201, made.text
    eventually(lambda: basalt.rest("GET", f"drains/{made.json()['id']}").json()["state"] == "done")
    assert basalt.rest("POST", "nodes/node-3/actions/uncordon").ok


def test_flows_and_cron_jobs_run(basalt: Deployed, backend: KubernetesCluster) -> None:
    spec = job("x")["spec"]
    template = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": "step", "namespace": "default"},
        "spec": spec,
    }
    flow = {
        "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "chain", "namespace": "default"},
        "spec": {"jobRetainPolicy": "delete", "flows": [{"name": "step"}]},
    }  # fmt: skip
    assert basalt.rest("POST", "jobtemplates", json=template).status_code == 201
    assert basalt.rest("POST", "jobflows", json=flow).status_code == 201
    template["metadata"]["labels"] = {"team": "a"}
    assert basalt.rest("POST", "apply", json=template).ok
    eventually(
        lambda: ((backend.get(JOB_FLOW, "chain", "default").get("status") or {}).get("state") or {}).get("phase") == "Succeed"
    )
    eventually(lambda: basalt.rest("GET", "jobflows/default/chain").ok)
    assert basalt.rest("PATCH", "jobflows/default/chain", json={"metadata": {"labels": {"a": "b"}}}).status_code in (200, 422)
    cron = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "default"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": spec}, "successfulJobsHistoryLimit": 0},
    }  # fmt: skip
    assert basalt.rest("POST", "cronjobs", json=cron).status_code == 201
    eventually(lambda: basalt.rest("GET", "cronjobs/default/nightly").ok)
    ran = basalt.rest("POST", "cronjobs/default/nightly/actions/trigger")
    assert ran.ok, ran.text
    for action in ("suspend", "resume"):
        assert basalt.rest("POST", f"cronjobs/default/nightly/actions/{action}").ok
    backend.patch(CRON_JOB, "nightly", "default", {"spec": {"schedule": "* * * * *"}})
    eventually(lambda: (backend.get(CRON_JOB, "nightly", "default").get("status") or {}).get("lastSuccessfulTime"))
    for kind, name in (("cronjobs", "nightly"), ("jobflows", "chain"), ("jobtemplates", "step")):
        assert basalt.rest("DELETE", f"{kind}/default/{name}").ok, name


def test_plain_pods_and_discovered_domains(basalt: Deployed, backend: KubernetesCluster) -> None:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    backend.create(POD, {"metadata": {"name": "bare"}, "spec": {"schedulerName": "volcano", "containers": [container]}})
    eventually(lambda: backend.get(POD, "bare", "default")["spec"].get("nodeName"))
    backend.delete(POD, "bare", "default", grace_seconds=0)
    eventually(lambda: basalt.rest("GET", "podgroups").ok)
    config = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks:
      - nodeLabel: rack
      - nodeLabel: kubernetes.io/hostname
"""
    backend.create(NAMESPACE, {"metadata": {"name": hypernodes.CONFIG_NAMESPACE}})
    meta = {"name": hypernodes.CONFIG_NAME, "namespace": hypernodes.CONFIG_NAMESPACE}
    backend.create(CONFIG_MAP, {"metadata": meta, "data": {hypernodes.CONFIG_KEY: config}})
    eventually(lambda: len(backend.list(HYPER_NODE).items) >= 2)
    backend.patch(NODE, "node-3", "", {"metadata": {"labels": {"rack": "r0"}}})
    backend.patch(NODE, "node-2", "", {"metadata": {"labels": {"rack": "r0"}}})
    eventually(lambda: len(backend.list(HYPER_NODE).items) < 3)


def test_who_is_more_important_evicts(basalt: Deployed, backend: KubernetesCluster) -> None:
    backend.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 1000})
    backend.create(JOB, job("humble", replicas=4, cpu="7", lasts=None, minAvailable=1))
    reaches(basalt, backend, "humble", "Running")
    eventually(lambda: sum(bool(pod["spec"].get("nodeName")) for pod in backend.list(POD, "default").items) >= 4)
    before = {pod["metadata"]["uid"] for pod in backend.list(POD, "default").items}
    backend.create(JOB, job("urgent", replicas=1, cpu="7", priorityClassName="urgent"))
    reaches(basalt, backend, "urgent", "Completed")
    assert before - {pod["metadata"]["uid"] for pod in backend.list(POD, "default").items}, "nobody made way"
    for name in ("humble", "urgent"):
        backend.delete(JOB, name, "default")


def test_a_volume_that_waits_for_its_pod_is_bound(basalt: Deployed, backend: KubernetesCluster) -> None:
    late = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    backend.create(STORAGE_CLASS, {"metadata": {"name": "late"}, **late})
    space: Obj = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    local = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Retain"}
    backend.create(VOLUME, {"metadata": {"name": "disk"}, "spec": {**space, **local}})
    backend.patch_status(VOLUME, "disk", "", {"phase": "Available"})  # what the volume controller says
    backend.create(CLAIM, {"metadata": {"name": "mine"}, "spec": {**space, "resources": {"requests": {"storage": "1Gi"}}}})
    uses = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "mine"}}]}
    backend.create(JOB, job("keeper", replicas=1, pod=uses))
    eventually(lambda: (backend.get(VOLUME, "disk")["spec"].get("claimRef") or {}).get("name") == "mine")
    backend.delete(JOB, "keeper", "default")


def test_a_volume_that_is_made_for_its_pod_is_asked_for(basalt: Deployed, backend: KubernetesCluster) -> None:
    made = {"provisioner": "disks.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    backend.create(STORAGE_CLASS, {"metadata": {"name": "made"}, **made})
    space: Obj = {"accessModes": ["ReadWriteOnce"], "storageClassName": "made", "resources": {"requests": {"storage": "1Gi"}}}
    backend.create(CLAIM, {"metadata": {"name": "new"}, "spec": space})
    uses = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "new"}}]}
    backend.create(JOB, job("asker", replicas=1, pod=uses))
    chosen = "volume.kubernetes.io/selected-node"
    eventually(lambda: (backend.get(CLAIM, "new", "default")["metadata"].get("annotations") or {}).get(chosen))
    backend.delete(JOB, "asker", "default")


def test_webhooks_look_further_than_their_copy(basalt: Deployed, server: StrictServer, backend: KubernetesCluster) -> None:
    refused = server.kubectl("create", "-f", "-", text=yaml.safe_dump(job("lost", queue="nowhere", priorityClassName="none")))
    assert "nowhere" in refused.stderr
    container = {"name": "main", "image": "busybox"}
    notes = {"labels": {"basalt.dev/admission": "review"}, "annotations": {"scheduling.k8s.io/group-name": "none-such"}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    backend.create(POD, {"metadata": {"name": "odd", "namespace": "default", **notes}, "spec": spec})
    assert "it was asked for" in basalt.once("Job basalt-webhook-certificates", "--host", "127.0.0.1", "--renew")


def test_all_that_rest_lists_is_read(basalt: Deployed) -> None:
    paths = basalt.rest("GET", "openapi.json").json()["paths"]
    lists = [path.removeprefix("/api/v1/") for path, verbs in paths.items() if "get" in verbs and "{" not in path]
    assert len(lists) > 20
    failed = {path: status for path in lists if (status := basalt.rest("GET", path).status_code) >= 500}
    assert failed == {}
    assert basalt.rest("GET", "scheduler/health").json()["leader"], "who leads is not known"


def test_web_processes_measure_themselves_where_strangers_do_not_reach(basalt: Deployed) -> None:
    sample = 'basalt_http_requests_total{code="200",method="GET",view="api:queues"}'
    assert basalt.metric("web-metrics", sample) >= 1
    assert basalt.metric("web-metrics", "basalt_cluster_answers") == 1
    assert basalt.page("/metrics").status_code in (302, 404)
    assert requests.get(basalt.url("web-metrics", "/readyz"), timeout=5).json() == {"status": "ok"}
    told = {name: requests.get(basalt.url(name, "/metrics"), timeout=5).text for name in ("worker", "webhook", "web-metrics")}
    assert [name for name, text in told.items() if "basalt_leads " in text] == [], (
        "who has no lease is an alarm that nobody leads"
    )
    assert basalt.metric("controller", "basalt_leads") == basalt.metric("scheduler", "basalt_leads") == 1
    assert "basalt_mirror_lag_seconds 0" in requests.get(basalt.url("mirror", "/metrics"), timeout=5).text


def test_nothing_was_forbidden(basalt: Deployed, server: StrictServer) -> None:
    assert server.audited().forbidden <= NOT_READ


def test_every_right_is_used(basalt: Deployed, server: StrictServer, objects: tuple[Obj, ...]) -> None:
    def unused() -> list[Asked]:
        return sorted(granted(objects) - server.audited().asked - NOT_HERE - SOMETIMES)

    eventually(lambda: not unused(), why=lambda: f"nobody uses {unused()}")  # what the last test began may go on
    assert sorted(NOT_HERE & server.audited().asked) == [], "these are used after all"


def test_without_celery_the_controller_has_the_rights_of_workers(
    basalt: Deployed, server: StrictServer, backend: KubernetesCluster, tmp_path: Path
) -> None:
    objects = with_components(tmp_path, "threads")
    rights = of_kind(objects, "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    for name in ("controller", "worker"):  # before their rights go: their watches would be refused
        basalt.end(name)
    server.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(rights), check=True)
    alone = Deployed(server, tmp_path, objects, {"REDIS_URL": os.environ["REDIS_URL"]})
    try:
        alone.begin("Deployment basalt-controller")
        alone.wait_ready("controller")
        backend.create(JOB, job("threaded", plugins={"svc": [], "ssh": []}))
        eventually(lambda: phase(backend, "threaded") == "Completed", why=lambda: alone.log("controller")[-2000:])
        backend.delete(JOB, "threaded", "default")
        assert alone.end("controller") == 0
    finally:
        alone.stop()
    assert server.audited().forbidden <= NOT_READ
    assert Asked("basalt-controller", "update", "coordination.k8s.io", "leases") in server.audited().asked
