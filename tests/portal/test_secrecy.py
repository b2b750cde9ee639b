"""No private key leaves the cluster: not by a page, the API, an export, the admin, a live message, a log or a table of rows."""

import base64
import json

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core import serializers
from django.test import Client
from django.urls import get_resolver, reverse

from cluster import runtime
from cluster.disclosure import HIDDEN, LAST_APPLIED, shown
from cluster.kinds import CRON_JOB, EVENT, JOB, JOB_FLOW, JOB_TEMPLATE, POD, SECRET
from cluster.models import StoredObject
from cluster.projection import Batch
from jobs.keys import OWNER
from jobs.models import Job, Pod
from jobs.plugins.ssh import new_keys
from portal.live import topics
from portal.mirror import PROJECTIONS
from tests.jobs.world import World, job, task
from tests.portal.site import address, named
from tests.portal.test_access import TABLE

PRIVATE, PUBLIC = new_keys()
GIVEN = PRIVATE.splitlines()[5]  # a line of the key in the manifest


def _user(name):
    return get_user_model().objects.get(username=name)


def _signed_in(user):
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def root(make_user):
    user = make_user("root", staff=True)
    user.is_superuser = True
    user.save()
    return user


@pytest.fixture
def world(db, make_user):
    """Two jobs with keys, one given and one made, run by the real controllers and projected."""
    world = World()
    runtime.use(world.cluster)
    client = _signed_in(make_user("owner"))
    arguments = ["--ssh-private-key", PRIVATE, f"--ssh-public-key={PUBLIC}"]
    given = job("train", task("w", 1), plugins={"ssh": arguments, "svc": []})
    given["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(given)}
    headers = {"Idempotency-Key": "one"}
    for _ in range(2):  # the second answer comes from the table of answers
        answer = client.post("/api/v1/jobs", json.dumps(given), content_type="application/json", headers=headers)
        assert answer.status_code == 201, answer.content
        assert GIVEN not in answer.content.decode()
    again = client.post(
        "/api/v1/jobs?dryRun=All", json.dumps(given | {"metadata": {"name": "b"}}), content_type="application/json"
    )
    assert again.status_code == 200
    assert GIVEN not in again.content.decode()
    world.cluster.create(JOB, job("made", task("w", 1), plugins={"ssh": []}))
    world.turn()
    for kind, projection in PROJECTIONS.items():
        projection.project(Batch(world.cluster.list(kind).items))
    yield world
    runtime.use(None)


@pytest.fixture
def needles(world):
    """Pieces of both keys, as text and as base64."""
    made = base64.b64decode(world.cluster.get(SECRET, "made-ssh", "default")["data"]["id_rsa"]).decode()
    assert made.startswith("-----BEGIN RSA PRIVATE KEY-----")
    pieces = [GIVEN, made.splitlines()[5]]
    encoded = [world.cluster.get(SECRET, f"{name}-ssh", "default")["data"]["id_rsa"][200:240] for name in ("train", "made")]
    return [*pieces, *encoded]


def assert_clean(where, text, needles):
    assert not [needle for needle in needles if needle in text], f"a private key in {where}"


def test_no_route_shows_a_key(world, needles, root, caplog):
    """Every address that can be read, by name and by uid, as its owner and as an administrator."""
    _leave_one_of_each(world)
    known = dict(named(get_resolver()))
    names = [entry.removeprefix("GET:") for text in TABLE.values() for entry in text.split()]
    read = 0
    for name in [name for name in names if name in known]:
        for user in (root, _user("owner")):
            answer = _signed_in(user).get(address(name))
            assert_clean(name, _content(answer), needles)
            read += answer.status_code == 200
    assert read > 20
    assert_clean("the log", caplog.text, needles)


def _leave_one_of_each(world):
    """`address` speaks of the only job, pod, template, flow and cron job there is, named `train`."""
    Job.objects.exclude(name="train").delete()
    Pod.objects.exclude(name="train-w-0").delete()
    owned = {"namespace": "default", "annotations": {OWNER: "owner"}}
    given = job(plugins={"ssh": [f"--ssh-private-key={PRIVATE}"]})["spec"]
    cron = {"schedule": "0 0 * * *", "jobTemplate": {"spec": given}}
    flow = {"flows": [{"name": "train"}]}
    for kind, spec in ((JOB_TEMPLATE, given), (CRON_JOB, cron), (JOB_FLOW, flow)):
        world.cluster.create(kind, {"metadata": {"name": "train", **owned}, "spec": spec})
        PROJECTIONS[kind].project(Batch(world.cluster.list(kind).items))


def _content(answer):
    if not answer.streaming:
        return answer.content.decode(errors="replace")
    if answer.is_async:
        return async_to_sync(_joined)(answer)
    return b"".join(answer.streaming_content).decode()


async def _joined(answer):
    return "".join([part if isinstance(part, str) else part.decode() async for part in answer.streaming_content])


def test_the_owner_reads_that_something_is_hidden(world):
    client = _signed_in(_user("owner"))
    manifest = client.get("/api/v1/jobs/default/train").json()["manifest"]
    assert manifest["spec"]["plugins"]["ssh"] == ["--ssh-private-key", HIDDEN, f"--ssh-public-key={PUBLIC}"]
    draft = client.get(reverse("jobs:submit"), {"from": Job.objects.get(name="train").uid}).content.decode()
    assert HIDDEN in draft
    assert GIVEN not in draft


def test_a_hidden_key_cannot_be_submitted_again(world):
    client = _signed_in(_user("owner"))
    manifest = job("copy", task("w", 1), plugins={"ssh": [f"--ssh-private-key={HIDDEN}"]})
    answer = client.post("/api/v1/jobs", json.dumps(manifest), content_type="application/json")
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/spec/plugins/ssh"]


def test_the_admin_shows_no_key(world, needles, root):
    client = _signed_in(root)
    for row in Job.objects.all():
        page = client.get(reverse("admin:jobs_job_change", args=[row.pk]), follow=True)
        assert_clean("the admin", page.content.decode(), needles)


def test_no_table_but_the_clusters_own_holds_a_key(world, needles):
    for model in apps.get_models():
        if model is not StoredObject:
            assert_clean(model._meta.label, serializers.serialize("json", model._default_manager.all()), needles)


def test_no_event_tells_a_key(world, needles):
    for kind in (EVENT, POD):
        assert_clean(str(kind), json.dumps(world.cluster.list(kind).items), needles)


def test_no_live_message_carries_a_key(world, needles, root):
    topics_of = ["jobs", "queues", "topology", "scheduler", "overview", *(f"job:{row.uid}" for row in Job.objects.all())]
    for name in topics_of:
        assert_clean(name, repr(topics.make(name).load(root, None)), needles)


SPEC = {"plugins": {"ssh": ["-ssh-private-key=k", "--ssh-port", "22"], "svc": []}, "tasks": []}
SAFE = {"plugins": {"ssh": [f"-ssh-private-key={HIDDEN}", "--ssh-port", "22"], "svc": []}, "tasks": []}


@pytest.mark.parametrize(
    ("kind", "spec", "safe"),
    [
        (JOB, SPEC, SAFE),
        (JOB_TEMPLATE, SPEC, SAFE),
        (CRON_JOB, {"jobTemplate": {"spec": SPEC}}, {"jobTemplate": {"spec": SAFE}}),
        (
            JOB_FLOW,
            {"flows": [{"name": "a", "patch": {"jobSpec": SPEC}}]},
            {"flows": [{"name": "a", "patch": {"jobSpec": SAFE}}]},
        ),
    ],
    ids=str,
)
def test_whatever_jobs_are_made_from_is_shown_without_keys(kind, spec, safe):
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a", "annotations": {LAST_APPLIED: "k"}}}
    assert shown(obj | {"spec": spec}) == {**obj, "metadata": {"name": "a", "annotations": {}}, "spec": safe}
    harmless = obj | {"spec": {"plugins": {"ssh": []}}}
    assert shown(harmless) is harmless


def test_of_a_secret_only_the_keys_are_shown():
    meta = {"name": "a", "annotations": {LAST_APPLIED: "k"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"x": "aw=="}, "stringData": {"y": "k"}}
    assert shown(secret) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "annotations": {}},
        "data": {"x": HIDDEN},
        "stringData": {"y": HIDDEN},
    }
