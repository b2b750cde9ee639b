"""Who may do what through the Kubernetes API of the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth import get_user_model
from knox.models import AuthToken

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import JOB, POD, QUEUE, SECRET
from portal.kubernetes import PREFIX, application
from portal.policy import StaffPolicy
from tests.jobs.world import job

pytestmark = pytest.mark.django_db(transaction=True)
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"


@pytest.fixture
def cluster():
    cluster = EmbeddedCluster()
    runtime.use(cluster)
    cluster.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    yield cluster
    runtime.use(None)


def token(name: str, **more: Any) -> str:
    user = get_user_model().objects.create_user(name, **more)
    return AuthToken.objects.create(user)[1]


def call(method: str, path: str, secret: str = "", body: Any = None, **scope: Any) -> tuple[int, Any]:
    """One request to the ASGI application: status and JSON."""

    async def ask() -> tuple[int, Any]:
        headers = [(b"content-type", b"application/merge-patch+json")]
        if secret:
            headers.append((b"authorization", f"Bearer {secret}".encode()))
        asked = {"type": "http", "method": method, "path": PREFIX + path, "query_string": b"", "headers": headers, **scope}
        talk = ApplicationCommunicator(application, asked)
        await talk.send_input({"type": "http.request", "body": orjson.dumps(body) if body is not None else b""})
        start, answer = await talk.receive_output(5), await talk.receive_output(5)
        return start["status"], orjson.loads(answer["body"])

    return asyncio.run(ask())


def test_without_a_token_of_an_active_user_nobody_gets_in(cluster):
    retired = token("retired", is_active=False)
    for secret in ("", "bslt_guessed", retired):
        assert call("GET", JOBS, secret)[0] == 401
        assert call("GET", "/apis", secret)[0] == 401


def test_who_submits_owns_the_job_whatever_its_manifest_says(cluster):
    manifest = job()
    manifest["metadata"]["annotations"] = {"basalt.dev/owner": "somebody"}
    code, made = call("POST", JOBS, token("ada"), manifest)
    assert (code, made["metadata"]["annotations"]["basalt.dev/owner"]) == (201, "ada")


def test_people_delete_and_command_their_own_jobs_only(cluster):
    ada, bob = token("ada"), token("bob")
    call("POST", JOBS, ada, job())
    command = {"action": "AbortJob", "target": {"apiVersion": JOB.api_version, "kind": "Job", "name": "train"}}
    named = {**command, "metadata": {"name": "stop"}}
    assert call("POST", COMMANDS, bob, named)[0] == 403
    assert call("DELETE", f"{JOBS}/train", bob)[0] == 403
    assert call("POST", COMMANDS, ada, named)[0] == 201
    owned = {**command, "metadata": {"name": "odd", "finalizers": ["a/b"]}}
    assert call("POST", COMMANDS, ada, owned)[0] == 403
    assert call("DELETE", f"{JOBS}/train", ada)[0] == 200
    assert cluster.list(JOB).items == []


def test_what_controllers_set_is_not_for_people_to_write(cluster):
    ada, staff = token("ada"), token("root", is_staff=True)
    manifest = job()
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    assert call("POST", JOBS, ada, manifest)[0] == 403
    assert call("POST", "/api/v1/namespaces/default/pods", ada, {"metadata": {"name": "p"}})[0] == 403
    assert call("PATCH", "/apis/scheduling.volcano.sh/v1beta1/queues/default", ada, {"spec": {"weight": 9}})[0] == 403
    assert call("PATCH", "/apis/scheduling.volcano.sh/v1beta1/queues/default", staff, {"spec": {"weight": 9}})[0] == 200
    assert cluster.get(QUEUE, "default")["spec"]["weight"] == 9


def test_secrets_are_read_by_those_alone_who_may_write_everything(cluster):
    cluster.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}, "data": {}})
    ada, staff = token("ada"), token("root", is_staff=True)
    assert call("GET", "/api/v1/namespaces/default/secrets/s", ada)[0] == 403
    assert call("GET", "/api/v1/namespaces/default/secrets/s", staff)[0] == 200
    assert call("GET", "/api/v1/pods", ada)[0] == 200


class NoLogs(StaffPolicy):
    """Nobody reads logs."""

    def may(self, user: Any, action: str, obj: Any = None) -> bool:
        return action != "logs.view" and super().may(user, action, obj)


def test_logs_are_read_with_their_own_right_alone(cluster, settings):
    settings.BASALT_POLICY = "tests.portal.test_kubernetes.NoLogs"
    cluster.create(
        POD, {"metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    )
    mine = token("ada")
    assert call("GET", "/api/v1/namespaces/default/pods/a", mine)[0] == 200
    code, said = call("GET", "/api/v1/namespaces/default/pods/a/log", mine)
    assert (code, said["message"]) == (403, "ada may not read pods/log")


def test_a_key_in_a_manifest_is_shown_to_those_alone_who_may_write_everything(cluster):
    manifest = job(plugins={"ssh": ["--ssh-private-key=PRIVATE"]})
    staff, ada = token("root", is_staff=True), token("ada")
    assert call("POST", JOBS, staff, manifest)[0] == 201
    assert b"PRIVATE" in orjson.dumps(call("GET", f"{JOBS}/train", staff)[1])
    for path in (JOBS, f"{JOBS}/train"):
        code, found = call("GET", path, ada)
        assert code == 200
        assert b"PRIVATE" not in orjson.dumps(found)
        assert b"train" in orjson.dumps(found)


def test_a_token_in_the_address_counts_on_this_machine_alone(cluster):
    ada = token("ada")
    here, away = ("127.0.0.1", 5), ("192.0.2.7", 5)
    path = f"/with-token/{ada}/api/v1/pods"
    assert call("GET", path, client=here, server=here)[0] == 200
    assert call("GET", path, client=away, server=here)[0] == 401
    assert call("GET", path, client=here, server=away)[0] == 401
    assert call("GET", path)[0] == 401


def test_the_same_manifest_again_is_no_change(cluster):
    staff = token("root", is_staff=True)
    call("POST", JOBS, staff, job())
    before = cluster.get(JOB, "train", "default")
    code, after = call("PATCH", f"{JOBS}/train", staff, {"spec": job()["spec"]})
    assert (code, after["spec"]) == (200, before["spec"])
    code, refused = call("PATCH", f"{JOBS}/train", staff, {"spec": {"queue": "other"}})
    assert (code, refused["reason"]) == (422, "Invalid")
    assert refused["details"]["causes"][0]["field"] == "spec.queue"
    assert cluster.list(POD).items == []


def test_methods_and_patches_that_mean_nothing_are_refused_in_words(cluster):
    staff = token("root", is_staff=True)
    assert call("PUT", JOBS, staff, {})[0] == 405
    assert call("GET", "/apis/batch.volcano.sh/v9/jobs", staff)[0] == 404
    plain = {"headers": [(b"authorization", f"Bearer {staff}".encode()), (b"content-type", b"text/plain")]}
    assert call("PATCH", f"{JOBS}/train", staff, {}, **plain)[0] == 415
    assert call("POST", JOBS, staff, ["no", "object"])[0] == 400


class OwnRowsOnly(StaffPolicy):
    """Everybody but staff sees a part of the rows."""

    def rights(self, user: Any) -> str:
        return super().rights(user) if user.is_staff else f"own:{user.pk}"


def test_whom_the_policy_shows_a_part_only_reads_nothing_here(cluster, settings):
    settings.BASALT_POLICY = f"{__name__}.OwnRowsOnly"
    ada, staff = token("ada"), token("root", is_staff=True)
    assert call("POST", JOBS, ada, job())[0] == 201
    for path in (JOBS, f"{JOBS}/train", "/api/v1/pods", "/api/v1/namespaces/default/pods/p/log"):
        assert call("GET", path, ada)[0] == 403
    assert call("GET", f"{JOBS}/train", staff)[0] == 200
