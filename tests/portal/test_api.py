"""REST as a program meets it: the way in, lists, one job's life, and every refusal in one shape."""

import base64
import json

import pytest
import yaml
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import COMMAND, JOB, QUEUE
from cluster.models import IdempotentRequest
from cluster.projection import Batch
from jobs.models import Job
from jobs.projection import project_jobs, project_pods
from queues.models import Queue
from queues.projection import project as project_queues
from tests.portal import objects as make
from tests.portal.conftest import PASSWORD
from tests.portal.rest import Api, manifest, problem

pytestmark = [pytest.mark.django_db(databases="__all__")]


@pytest.fixture(autouse=True)
def cluster():
    found = EmbeddedCluster()
    runtime.use(found)
    for name in ("root", "default"):
        found.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    project_queues(Batch(found.list(QUEUE).items))
    yield found
    runtime.use(None)


@pytest.fixture
def ada(make_user):
    return Api(make_user("ada"))


@pytest.fixture
def root(make_user):
    return Api(make_user("root", staff=True))


# --- the way in ---


def test_a_token_comes_for_a_password_and_goes_at_sign_out(make_user):
    api = Api(make_user("ada"))
    assert api.get("jobs").status_code == 200
    assert api.post("auth/logout").status_code == 204
    problem(api.get("jobs"), 401)


def test_basic_credentials_give_a_token_too(make_user):
    make_user("ada")
    encoded = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
    assert Api().post("auth/login", Authorization=f"Basic {encoded}").json()["token"]


def test_wrong_passwords_are_refused_and_then_throttled(make_user):
    make_user("ada")
    for _ in range(4):
        problem(Api().post("auth/login", {"username": "ada", "password": "x"}), 401)
    statuses = [Api().post("auth/login", {"username": "ada", "password": PASSWORD}).status_code for _ in range(1)]
    assert statuses == [200]
    for _ in range(6):
        last = Api().post("auth/login", {"username": "ada", "password": "x"})
    assert problem(last, 429)


def test_a_session_needs_its_csrf_token(make_user):
    api = Api()
    api.client.force_login(make_user("ada"), "django.contrib.auth.backends.ModelBackend")
    assert api.get("jobs").status_code == 200
    problem(api.post("jobs", manifest()), 403)


def test_nobody_signed_in_sees_nothing(make_user):
    for path in ("jobs", "queues", "nodes", "pods", "podgroups", "events", "openapi.json"):
        problem(Api().get(path), 401)


# --- jobs ---


def test_a_job_from_submit_to_delete(ada, cluster):
    answer = ada.post("jobs", manifest())
    assert answer.status_code == 201, answer.content
    job = answer.json()
    assert answer.headers["Location"] == "/api/v1/jobs/default/train"
    assert (job["phase"], job["owner"], job["replicas"], job["gpus"]) == ("Pending", "ada", 3, 3)
    assert job["manifest"]["spec"]["tasks"][1]["minAvailable"] == 2
    assert ada.get("jobs/default/train").json()["uid"] == job["uid"]
    assert ada.get(f"jobs/{job['uid']}").json()["tasks"][0]["name"] == "ps"
    assert ada.post("jobs/default/train/actions/suspend").status_code == 202
    assert cluster.list(COMMAND).items[0]["action"] == "AbortJob"
    body = problem(ada.post("jobs/default/train/actions/resume"), 409)
    assert "suspend" in body["detail"]
    problem(ada.post("jobs/default/train/actions/explode"), 400)
    assert ada.delete("jobs/default/train").status_code == 202
    problem(ada.delete("jobs/default/train"), 404)
    assert ada.get("jobs").json()["results"] == []
    assert ada.get("jobs/default/train").json()["deleted_at"] is not None


def test_a_body_of_no_known_kind_is_told_what_would_be(ada):
    refused = ada.post("apply", "kind: Job", "application/x-www-form-urlencoded")
    assert refused.status_code == 415
    assert "Say by a Content-Type what the body is: application/json, application/yaml" in refused.json()["detail"]


def test_a_job_of_very_many_pods_comes_with_the_first_and_says_where_the_others_are(ada, monkeypatch):
    monkeypatch.setattr("jobs.api.FIRST_PODS", 2)
    uid = ada.post("jobs", manifest()).json()["uid"]
    project_pods(Batch([make.pod(f"w-{i}", owner=uid) for i in range(5)]))
    job = ada.get("jobs/default/train").json()
    assert ([pod["task"] for pod in job["pods"]], job["pods_total"]) == (["worker", "worker"], 5)
    assert job["tasks"][1]["counts"] == {"Pending": 5}
    path = job["pods_url"].removeprefix("/api/v1/")
    page = ada.get(f"{path}&limit=3").json()
    assert (len(page["results"]), bool(page["next"])) == (3, True)
    other = ada.get("pods?job=uid-of-another").json()
    assert other["results"] == []


def test_a_database_that_takes_nothing_is_a_503_and_nothing_is_kept(ada, cluster, monkeypatch):
    def full(_batch):
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as failing:
        failing.setattr("jobs.writes.project_jobs", full)
        body = problem(ada.post("jobs", manifest()), 503)
    assert "nothing was changed" in body["detail"]
    assert cluster.list(JOB).items == []
    assert ada.post("jobs", manifest()).status_code == 201


def test_yaml_and_json_give_the_same_job(ada):
    for name, kind in (("a", "application/yaml"), ("b", "application/x-yaml"), ("c", "text/yaml")):
        assert ada.post("jobs", yaml.safe_dump(manifest(name)), kind).status_code == 201
    assert Job.objects.count() == 3


def test_two_submissions_of_one_name(ada):
    assert ada.post("jobs", manifest()).status_code == 201
    assert "exists" in problem(ada.post("jobs", manifest()), 409)["detail"]


def test_an_owner_is_who_asks_whatever_the_manifest_says(ada):
    body = manifest()
    body["metadata"]["annotations"] = {"basalt.dev/owner": "root"}
    assert ada.post("jobs", body).json()["owner"] == "ada"


def test_only_its_owner_and_staff_act_on_a_job(ada, root, make_user):
    ada.post("jobs", manifest())
    bob = Api(make_user("bob"))
    assert bob.get("jobs/default/train").status_code == 200
    problem(bob.delete("jobs/default/train"), 403)
    problem(bob.post("jobs/default/train/actions/suspend"), 403)
    assert root.post("jobs/default/train/actions/suspend").status_code == 202


def test_a_dry_run_creates_nothing(ada, cluster):
    answer = ada.post("jobs?dryRun=All", manifest())
    assert (answer.status_code, answer.json()["dryRun"]) == (200, True)
    assert (cluster.list(JOB).items, Job.objects.count()) == ([], 0)
    problem(ada.post("jobs?dryRun=yes", manifest()), 400)


# --- bad input ---


def test_every_fault_is_told_at_once_with_pointer_and_line(ada):
    text = yaml.safe_dump(manifest("Bad_Name", minAvailable=9), sort_keys=False).replace("name: worker", "name: ps")
    body = problem(ada.post("jobs", text, "application/yaml"), 422)
    places = {error["pointer"]: error for error in body["errors"]}
    assert {"/metadata/name", "/spec/tasks/1/name", "/spec/minAvailable"} <= set(places)
    assert text.splitlines()[places["/spec/minAvailable"]["line"] - 1].strip() == "minAvailable: 9"
    assert not Job.objects.exists()


BOMB = "a: &a [1,2,3,4,5,6,7,8,9,0]\n" + "\n".join(
    f"{b}: &{b} [{','.join(['*' + a] * 10)}]" for a, b in zip("abcdefg", "bcdefgh")
)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("{", "application/json", 400),
        ("a: b: c", "application/yaml", 400),
        ("", "application/yaml", 400),
        ("[1, 2]", "application/json", 400),
        ("a: 1\n---\nb: 2\n", "application/yaml", 400),
        (BOMB, "application/yaml", 400),
        (b"\xff\xfe\x00", "application/yaml", 400),
        ("a" * (5 * 2**20), "application/yaml", 413),
        ("a=1", "application/x-www-form-urlencoded", 415),
        ('{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}', "application/json", 400),
        ('{"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": "a"}}', "application/json", 422),
        ('{"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": [], "spec": 5}', "application/json", 400),
    ],
)
def test_a_body_that_is_no_job_is_refused(ada, body, kind, status):
    assert problem(ada.post("jobs", body, kind), status)["detail"]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"queue": "nowhere"}, "/spec/queue"),
        ({"queue": "closed"}, "/spec/queue"),
        ({"minAvailable": "two"}, "/spec/minAvailable"),
        ({"tasks": []}, "/spec/tasks"),
        ({"tasks": "none"}, "/spec/tasks"),
    ],
)
def test_a_wrong_field_is_named(ada, cluster, spec, pointer):
    closed = cluster.create(QUEUE, {"metadata": {"name": "closed"}, "spec": {"weight": 1}})
    cluster.patch_status(QUEUE, closed["metadata"]["name"], "", {"state": "Closed"})
    body = problem(ada.post("jobs", manifest(**spec)), 422)
    assert pointer in [error["pointer"] for error in body["errors"]]


@pytest.mark.parametrize("quantity", ["2cpus", "Infinity", "1_000", "٣", "-1"])
def test_a_quantity_that_is_none_is_refused(ada, quantity):
    body = manifest()
    body["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = quantity
    errors = problem(ada.post("jobs", body), 422)["errors"]
    assert "/spec/tasks/0/template/spec/containers/0/resources/limits/cpu" in [error["pointer"] for error in errors]


def test_addresses_and_methods_that_do_not_exist(ada):
    problem(ada.get("nothing"), 404)
    problem(ada.get("jobs/default/nothing"), 404)
    problem(ada.get("queues/nothing"), 404)
    problem(ada.client.put("/api/v1/jobs", "{}", "application/json", headers=ada.headers), 405)


@pytest.mark.parametrize(
    "query",
    [
        {"colour": "red"},
        {"phase": "Sleeping"},
        {"limit": "0"},
        {"limit": "9999"},
        {"limit": "x"},
        {"cursor": "x"},
        {"ordering": "verdict"},
    ],
)
def test_a_query_that_is_wrong_is_refused_with_its_parameter(ada, query):
    (name,) = query
    assert problem(ada.get("jobs", **query), 400)["errors"][0]["pointer"] == f"/{name}"


def _cursor(*place):
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


@pytest.mark.parametrize(
    ("ordering", "value", "pk"),
    [
        ("created_at", "0001-01-01T00:00:00+23:00", "a"),
        ("created_at", "9999-12-31T23:59:59-23:00", "a"),
        ("created_at", "yesterday", "a"),
        ("created_at", 7, "a"),
        ("name", "\ud800", "a"),
        ("name", "a", "\ud800"),
        ("name", "a\0", "a"),
        ("name", ["a"], "a"),
        ("name", "a", None),
        ("gpus", 10**30, "a"),
        ("gpus", "3", "a"),
        ("queue", "a", "a"),
    ],
)
def test_a_cursor_that_was_made_up_is_refused(ada, ordering, value, pk):
    named = "name" if ordering == "queue" else ordering  # a cursor of another ordering
    body = problem(ada.get("jobs", ordering=ordering, cursor=_cursor(named, value, pk)), 400)
    assert body["errors"][0]["pointer"] == "/cursor"


def test_nothing_to_apply_is_refused(ada):
    problem(ada.client.post("/api/v1/apply", b"", "application/yaml", headers=ada.headers), 400)


# --- lists ---


def test_pages_follow_each_other_without_gaps_or_doubles(ada):
    project_jobs(Batch([make.job(f"j{i:02d}") for i in range(25)]))
    for ordering in ("-created_at", "name", "-gpus", "phase"):
        names, page = [], ada.get("jobs", limit=4, ordering=ordering).json()
        while True:
            names += [row["name"] for row in page["results"]]
            if page["next"] is None:
                break
            page = ada.get(page["next"].removeprefix("http://testserver")).json()
        assert sorted(names) == [f"j{i:02d}" for i in range(25)], ordering


def test_filters_narrow(ada):
    project_jobs(Batch([make.job("a", phase="Running"), make.job("b"), make.job("bee", phase="Failed")]))
    assert {row["name"] for row in ada.get("jobs", name="b").json()["results"]} == {"b", "bee"}
    assert {
        row["name"] for row in ada.client.get("/api/v1/jobs?phase=Running&phase=Failed", headers=ada.headers).json()["results"]
    } == {
        "a",
        "bee",
    }
    assert ada.get("jobs", queue="other").json()["results"] == []


# --- queues ---


def test_staff_change_queues_and_others_do_not(ada, root, cluster):
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 2}}
    problem(ada.post("queues", queue), 403)
    assert root.post("queues", queue).status_code == 201
    assert Queue.objects.get(name="q").weight == 2
    stale = root.get("queues/q").json()["resource_version"]
    assert root.patch("queues/q", {"spec": {"weight": 5}}).json()["weight"] == 5
    problem(root.patch("queues/q", {"metadata": {"resourceVersion": stale}, "spec": {"weight": 6}}), 409)
    problem(root.patch("queues/q", {"spec": {"capability": {"cpu": "2cpus"}}}), 422)
    assert problem(root.patch("queues/q", {"metadata": "q", "spec": {}}), 422)["errors"][0]["pointer"] == "/metadata"
    problem(ada.post("queues/q/actions/close"), 403)
    assert root.post("queues/q/actions/close").status_code == 202
    problem(root.post("queues/root/actions/close"), 409)
    assert root.delete("queues/q").status_code == 204
    problem(root.delete("queues/default"), 403)


# --- sending again ---


def test_a_create_that_is_sent_again_is_answered_and_not_done_again(ada, make_user):
    body = manifest()
    body["metadata"] = {"generateName": "run-"}
    first = ada.post("jobs", body, **{"Idempotency-Key": "k1"})
    again = ada.post("jobs", body, **{"Idempotency-Key": "k1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["uid"] == again.json()["uid"]
    assert (again.headers["Idempotency-Replayed"], again.headers["Location"]) == ("true", first.headers["Location"])
    assert ada.post("jobs", body, **{"Idempotency-Key": "k2"}).json()["uid"] != first.json()["uid"]
    assert Api(make_user("bob")).post("jobs", body, **{"Idempotency-Key": "k1"}).json()["uid"] != first.json()["uid"]
    problem(ada.post("jobs", manifest("other"), **{"Idempotency-Key": "k1"}), 422)


def test_a_refused_create_may_be_mended_and_sent_again_with_its_key(ada):
    problem(ada.post("jobs", manifest(queue="nowhere"), **{"Idempotency-Key": "k"}), 422)
    assert not IdempotentRequest.objects.exists()
    assert ada.post("jobs", manifest(), **{"Idempotency-Key": "k"}).status_code == 201


# --- apply, and the document ---


def test_apply_takes_many_documents_and_answers_for_each(root):
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 1}}
    text = yaml.safe_dump_all([manifest(queue="q"), queue])
    answer = root.post("apply", text, "application/yaml")
    assert [(r["kind"], r["name"], r["status"]) for r in answer.json()["results"]] == [
        ("Job", "train", "created"),
        ("Queue", "q", "created"),
    ]
    assert [r["status"] for r in root.post("apply?dryRun=All", text, "application/yaml").json()["results"]] == ["unchanged"] * 2


def test_apply_refuses_with_the_document_of_each_fault(ada):
    text = yaml.safe_dump_all([manifest("good"), manifest("bad", minAvailable=9)])
    body = problem(ada.post("apply", text, "application/yaml"), 422)
    assert {error["document"] for error in body["errors"]} == {1}
    assert not Job.objects.exists()


def test_the_document_and_its_page_are_served_to_the_signed_in(ada, make_user):
    document = ada.get("openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {"/api/v1/jobs", "/api/v1/apply", "/api/v1/queues/{name}"} <= set(document["paths"])
    client = Client()
    client.force_login(make_user("bob"), "django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("api:docs"))
    assert page.status_code == 200
    assert b"cdn" not in page.content
