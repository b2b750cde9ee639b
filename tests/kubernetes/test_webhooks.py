"""The admission webhooks as users meet them: kubectl, a real API server, the webhook process over TLS."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
import yaml

from cluster.errors import ApiError, NotFound
from cluster.kinds import JOB, JOB_FLOW, JOB_TEMPLATE, NAMESPACE, QUEUE, SECRET
from cluster.kubernetes import KubernetesCluster
from portal.webhooks import certificates
from portal.webhooks.certificates import Pair
from portal.webhooks.definitions import MUTATING, VALIDATING
from testbed.server import ApiServer, free_port
from testbed.stack import ROOT, Stack, eventually

JOB_TEXT = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
spec:
  {spec}
  tasks:
  - name: worker
    replicas: {replicas}
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          resources: {{requests: {{cpu: "1"}}}}
"""


def job(name: str, spec: str = "maxRetry: 0", replicas: int = 2) -> str:
    return JOB_TEXT.format(name=name, spec=spec, replicas=replicas)


def json_job(name: str) -> dict[str, object]:
    return yaml.safe_load(job(name))


def authority_of(secret: dict[str, object]) -> Pair:
    return Pair(b64decode(secret["data"]["tls.crt"]), b64decode(secret["data"]["tls.key"]))


def put(backend: KubernetesCluster, name: str, pair: Pair, former: bytes) -> None:
    """Put another authority into its Secret, and have the server trusted by it as if it had always been so."""
    data = {"tls.crt": pair.certificate, "tls.key": pair.key, "former.crt": former}
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    backend.patch(SECRET, name, "default", {"data": encoded})


@pytest.fixture(scope="module")
def hooked(stack: Stack, backend: KubernetesCluster) -> Iterator[Stack]:
    """The webhook process, installed and trusted; the built-in queues are there and open."""
    for name in ("root", "default"):
        backend.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
        backend.patch_status(QUEUE, name, "", {"state": "Open", "allocated": {}})
    port = free_port()
    said = stack.manage("install-webhooks", "--url", f"https://127.0.0.1:{port}")
    assert said.count("created") == 4
    folder = stack.folder / "webhook"
    said = stack.manage("webhook-certificates", "--host", "127.0.0.1", "--to", str(folder))
    assert said.count("trusts it") == 4
    stack.tls = port
    stack.start("webhook", "--serve", f"127.0.0.1:{port}", "--certificates", str(folder))
    stack.wait_ready("webhook")
    yield stack
    stack.manage("install-webhooks", "--remove")
    stack.end("webhook")
    for kind in (JOB, JOB_FLOW, JOB_TEMPLATE, QUEUE):
        for obj in backend.list(kind).items:
            meta = obj["metadata"]
            backend.delete(kind, meta["name"], meta.get("namespace", ""))
    for name in ("basalt-webhook", "basalt-webhook-ca"):
        backend.delete(SECRET, name, "default")


def test_the_files_in_deploy_are_taken_by_a_server(stack: Stack, api_server: ApiServer) -> None:
    done = api_server.kubectl("create", "--dry-run=server", "-k", str(ROOT / "deploy" / "webhooks"))
    assert (done.returncode, done.stdout.count("basalt created (server dry run)")) == (0, 2), done.stderr


def test_defaults_are_written_into_the_object(hooked: Stack, api_server: ApiServer, backend: KubernetesCluster) -> None:
    done = api_server.kubectl("create", "-f", "-", text=job("plain", "plugins: {pytorch: []}"))
    assert done.returncode == 0, done.stderr
    spec = backend.get(JOB, "plain", "default")["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == ("default", "volcano", 3, 2)
    assert spec["plugins"] == {"pytorch": [], "svc": []}
    assert (spec["tasks"][0]["minAvailable"], spec["tasks"][0]["maxRetry"]) == (2, 3)


def test_what_is_only_tried_is_completed_and_not_kept(hooked: Stack, api_server: ApiServer, backend: KubernetesCluster) -> None:
    done = api_server.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", text=job("tried"))
    assert json.loads(done.stdout)["spec"]["minAvailable"] == 2
    with pytest.raises(NotFound):
        backend.get(JOB, "tried", "default")


def test_a_bad_job_is_refused_with_every_fault_at_its_field(hooked: Stack, api_server: ApiServer) -> None:
    done = api_server.kubectl("create", "-f", "-", text=job("bad", "plugins: {pytorhc: []}\n  queue: nowhere\n  minAvailable: 9"))
    assert done.returncode == 1
    assert 'The Job "bad" is invalid:' in done.stderr
    assert "* spec.plugins.pytorhc: " in done.stderr
    assert "* spec.queue: there is no queue 'nowhere'" in done.stderr
    assert "* spec.minAvailable: " in done.stderr


def test_what_may_change_in_a_job_changes_and_nothing_else(hooked: Stack, api_server: ApiServer) -> None:
    api_server.kubectl("create", "-f", "-", text=job("changing"), check=True)
    replicas = '[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]'
    done = api_server.kubectl("patch", "vcjob", "changing", "--type=json", "-p", replicas)
    assert done.returncode == 0, done.stderr
    image = '[{"op": "replace", "path": "/spec/tasks/0/template/spec/containers/0/image", "value": "other"}]'
    done = api_server.kubectl("patch", "vcjob", "changing", "--type=json", "-p", image)
    assert (done.returncode, "spec.tasks[0].template" in done.stderr) == (1, True), done.stderr
    again = api_server.kubectl("apply", "-f", "-", text=job("changing", replicas=3))
    assert again.returncode == 0, again.stderr


def test_a_job_older_than_the_webhooks_counts_as_what_it_means(
    hooked: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    backend.create(NAMESPACE, {"metadata": {"name": "old", "labels": {"basalt.dev/admission": "ignore"}}})
    done = api_server.kubectl("create", "-n", "old", "-f", "-", text=job("older"))
    assert done.returncode == 0, done.stderr
    assert "queue" not in backend.get(JOB, "older", "old")["spec"]
    api_server.kubectl("label", "namespace", "old", "basalt.dev/admission-", check=True)
    time.sleep(0.5)  # until the API server's own copy knows
    done = api_server.kubectl("annotate", "-n", "old", "vcjob", "older", "a=b")
    assert done.returncode == 0, done.stderr
    assert "queue" not in backend.get(JOB, "older", "old")["spec"]
    replicas = '[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]'
    assert api_server.kubectl("patch", "-n", "old", "vcjob", "older", "--type=json", "-p", replicas).returncode == 0
    image = '[{"op": "replace", "path": "/spec/tasks/0/template/spec/containers/0/image", "value": "other"}]'
    assert api_server.kubectl("patch", "-n", "old", "vcjob", "older", "--type=json", "-p", image).returncode == 1


def test_built_in_queues_and_templates_in_use_cannot_be_deleted(
    hooked: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    done = api_server.kubectl("delete", "queue.scheduling.volcano.sh", "default")
    assert (done.returncode, "default" in done.stderr, "denied" in done.stderr) == (1, True, True), done.stderr
    task = {"name": "a", "replicas": 1, "template": {"spec": {"containers": [{"name": "m", "image": "i"}]}}}
    backend.create(JOB_TEMPLATE, {"metadata": {"name": "step", "namespace": "default"}, "spec": {"tasks": [task]}})
    backend.create(JOB_FLOW, {"metadata": {"name": "flow", "namespace": "default"}, "spec": {"flows": [{"name": "step"}]}})
    assert backend.get(JOB_FLOW, "flow", "default")["spec"]["jobRetainPolicy"] == "retain"
    done = api_server.kubectl("delete", "jobtemplate.flow.volcano.sh", "step")
    assert (done.returncode, "used by flow flow" in done.stderr) == (1, True), done.stderr


def test_of_queues_that_come_at_once_no_more_are_let_in_than_fit_their_parent(hooked: Stack, backend: KubernetesCluster) -> None:
    backend.create(QUEUE, {"metadata": {"name": "lab"}, "spec": {"deserved": {"cpu": "10"}, "parent": "root"}})

    def create(number: int) -> str:
        body = {"metadata": {"name": f"team-{number}"}, "spec": {"deserved": {"cpu": "4"}, "parent": "lab"}}
        try:
            backend.create(QUEUE, body, dry_run=number < 3)
        except ApiError as error:
            return error.message
        return ""

    with ThreadPoolExecutor(12) as pool:
        said = list(pool.map(create, range(12)))
    assert said[:3] == ["", "", ""] or sum(not text for text in said[3:]) == 2
    kept = {q["metadata"]["name"] for q in backend.list(QUEUE).items if (q["spec"].get("parent")) == "lab"}
    assert len(kept) == 2, kept
    refused = [text for text in said[3:] if text]
    assert len(refused) == 7
    assert all("spec.deserved" in text or "/spec/deserved" in text for text in refused), refused[0]


POD_TEXT = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{{labels}}}, annotations: {{scheduling.volcano.sh/queue-name: shut}}}}
spec: {{schedulerName: {scheduler}, containers: [{{name: main, image: busybox}}]}}
"""


def test_a_pod_is_asked_about_only_where_it_wants_to_be(hooked: Stack, api_server: ApiServer, backend: KubernetesCluster) -> None:
    backend.create(QUEUE, {"metadata": {"name": "shut"}, "spec": {"parent": "root"}})
    backend.patch_status(QUEUE, "shut", "", {"state": "Closed", "allocated": {}})
    review = "basalt.dev/admission: review"
    done = api_server.kubectl("create", "-f", "-", text=POD_TEXT.format(name="bare", labels=review, scheduler="volcano"))
    assert (done.returncode, "is Closed" in done.stderr) == (1, True), done.stderr
    for name, labels, scheduler in (("theirs", review, "default-scheduler"), ("unlabelled", "", "volcano")):
        done = api_server.kubectl("create", "-f", "-", text=POD_TEXT.format(name=name, labels=labels, scheduler=scheduler))
        assert done.returncode == 0, done.stderr


def test_what_is_let_in_may_come_with_a_warning(hooked: Stack, api_server: ApiServer) -> None:
    spec = "schedulerName: someone-else\n  priorityClassName: none-such"
    done = api_server.kubectl("create", "-f", "-", text=job("doubtful", spec))
    assert done.returncode == 0, done.stderr
    assert "Warning: spec.schedulerName: " in done.stderr
    assert "Warning: spec.priorityClassName: there is no priority class 'none-such'" in done.stderr


def test_a_certificate_and_its_authority_are_renewed_while_they_are_in_use(
    hooked: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    folder = hooked.folder / "webhook"
    said, over = [], threading.Event()

    def write() -> None:
        while not over.is_set():
            try:
                backend.create(JOB, json_job(f"probe-{len(said)}"), dry_run=True)
                said.append("")
            except ApiError as error:
                said.append(error.message)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        before = (folder / "tls.crt").read_bytes()
        renew = ("webhook-certificates", "--host", "127.0.0.1", "--to", str(folder))
        assert "a certificate was made, it was asked for" in hooked.manage(*renew, "--renew")
        assert (folder / "tls.crt").read_bytes() != before
        eventually(lambda: hooked.log("webhook").count("a certificate is in force") == 2)
        old = backend.get(SECRET, "basalt-webhook-ca", "default")
        authority = authority_of(old)
        ending = certificates.new_authority(datetime.now(UTC), days=20)
        assert "Nothing to do" in hooked.manage(*renew)
        put(backend, "basalt-webhook-ca", ending, former=authority.certificate)
        told = hooked.manage(*renew)
        assert "an authority was made, its end is near" in told
        assert told.count("trusts it") == 4
        eventually(lambda: hooked.log("webhook").count("a certificate is in force") == 3)
        reached = len(said)
        eventually(lambda: len(said) > reached + 20)
    finally:
        over.set()
        writer.join()
    assert [text for text in said if text] == []
    assert backend.get(MUTATING, "basalt")["webhooks"][0]["clientConfig"]["caBundle"]


def test_while_nobody_reviews_jobs_are_not_written_and_pods_are(
    hooked: Stack, api_server: ApiServer, backend: KubernetesCluster
) -> None:
    hooked.end("webhook")
    done = api_server.kubectl("create", "-f", "-", text=job("unreviewed"))
    assert (done.returncode, 'failed calling webhook "jobs.mutate.basalt.dev"' in done.stderr) == (1, True), done.stderr
    labels = "basalt.dev/admission: review"
    done = api_server.kubectl("create", "-f", "-", text=POD_TEXT.format(name="meanwhile", labels=labels, scheduler="volcano"))
    assert done.returncode == 0, done.stderr
    backend.patch_status(JOB, "plain", "default", {"running": 1})  # what controllers report goes on
    url = backend.get(VALIDATING, "basalt")["webhooks"][0]["clientConfig"]["url"]
    port = url.rpartition(":")[2].partition("/")[0]
    hooked.start("webhook", "--serve", f"127.0.0.1:{port}", "--certificates", str(hooked.folder / "webhook"))
    hooked.wait_ready("webhook")
    assert api_server.kubectl("create", "-f", "-", text=job("unreviewed")).returncode == 0
