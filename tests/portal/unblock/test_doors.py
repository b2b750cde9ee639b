"""Questions through REST and the pages: what they answer, whom they refuse, and that asking writes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.apps import apps
from django.test import Client

from cluster import runtime
from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from cluster.projection import Batch
from jobs.models import Job
from portal.mirror import PROJECTIONS
from portal.unblock import copy
from scheduler import conf
from tests.portal.unblock.test_trial import DEPLOYED
from tests.portal.unblock.world import Stage, manifest

pytestmark = pytest.mark.django_db(databases="__all__")
KINDS = (QUEUE, NODE, JOB, POD_GROUP, POD)


@pytest.fixture
def stage(monkeypatch):
    made = Stage(
        nodes=[{"name": f"n{i}", "cpu": 64, "memory": "256Gi", "gpu": 8} for i in range(3)],
        queues=[{"name": "a"}],
        setup=DEPLOYED,
    )
    runtime.use(made.cluster)
    loaded = conf.load(_text())
    monkeypatch.setattr(copy, "conf_in_force", lambda: loaded)
    made.class_("high", 1000)
    first = manifest("first", 1, cpu=4, gpu=8)
    made.submit(first)
    made.rest()
    for name in ("big", "later"):
        made.submit(manifest(name, 3, cpu=4, gpu=8))
        made.rest()
    project(made)
    yield made
    runtime.use(None)


def _text() -> str:
    from portal.scenario import objects as make

    return make.configuration(DEPLOYED)


def project(made: Stage) -> None:
    """What the mirror and the sink of decisions would write."""
    for kind in KINDS:
        PROJECTIONS[kind].project(Batch(made.cluster.list(kind).items))
    for job in Job.objects.all():
        verdict = made.world.verdict(job.name)
        job.verdict, job.verdict_stage = (verdict.as_dict(), verdict.stage) if verdict else (None, "")
        job.owner = "ada"
        job.save()


@pytest.fixture
def as_owner(make_user):
    client = Client()
    client.force_login(make_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def as_staff(make_user):
    client = Client()
    client.force_login(make_user("root", staff=True), "django.contrib.auth.backends.ModelBackend")
    return client


def checksum(made: Stage) -> Any:
    """Everything in the store and in every table that questions could touch."""
    store = {str(kind): [obj["metadata"]["resourceVersion"] for obj in made.cluster.list(kind).items] for kind in KINDS}
    tables = {
        model._meta.label: sorted(map(str, model._default_manager.values_list()))
        for model in apps.get_models()
        if model._meta.app_label in ("jobs", "queues", "cluster", "portal") and "StoredObject" not in model.__name__
    }
    return store, tables


def uid(name: str) -> str:
    return Job.objects.get(name=name).uid


def test_why_a_job_waits_and_what_would_unblock_it(stage, as_owner):
    before = checksum(stage)
    found = as_owner.get(f"/api/v1/jobs/{uid('big')}/explain?wait=10").json()
    assert checksum(stage) == before
    assert (found["waits"], found["verdict"]["code"], found["unblock"]["state"]) == (True, "overcommit", "done")
    assert found["statement"]["en"].startswith("The job asks 24 GPUs")
    assert found["statement"]["zh-hans"] != found["statement"]["en"]
    assert [each["key"] for each in found["numbers"]] == ["asked", "free", "short"]
    assert found["position"] == {"queue": {"rank": 1, "of": 2}, "all": {"rank": 1, "of": 2}}
    ways = {each["code"]: each for each in found["unblock"]["ways"]}
    assert ways["minimum"]["patch"] == {"spec": {"minAvailable": 2}}
    assert ways["minimum"]["text"]["en"] == "Lower the gang's minimum from 3 to 2"
    assert [(each["node"], each["gpus"]) for each in ways["minimum"]["places"]] == [("n1", [*range(8)]), ("n2", [*range(8)])]
    assert ways["wait"]["values"]["job"] == "first"
    assert ways["wait"]["patch"] is None
    assert ways["wait"]["effect"] == {"en": "It holds 8 GPUs. Nothing to change.", "zh-hans": "它占用 8 张 GPU。无需更改。"}
    assert ways["minimum"]["effect"]["en"].endswith(", within 2 cycles")
    assert ways["minimum"]["effect"]["zh-hans"].endswith("，在 2 个调度周期内")


def test_the_same_by_name_and_of_a_job_that_runs(stage, as_owner):
    found = as_owner.get("/api/v1/jobs/default/first/explain").json()
    assert (found["waits"], found["verdict"], found["position"]) == (False, None, None)
    assert found["unblock"] == {"state": "none", "milliseconds": 0.0, "tried": 0, "ways": []}
    assert as_owner.get("/api/v1/jobs/nobody/explain").status_code == 404


@pytest.mark.parametrize("wait", ["-1", "11", "soon", "nan"])
def test_a_strange_wait_is_refused(stage, as_owner, wait):
    answer = as_owner.get(f"/api/v1/jobs/{uid('big')}/explain?wait={wait}")
    assert answer.status_code == 400
    assert "wait is a number of seconds from 0 to 10" in answer.content.decode()


def test_a_dry_run_says_where_each_pod_goes_and_writes_nothing(stage, as_owner):
    before = checksum(stage)
    found = as_owner.post("/api/v1/jobs/dry-run", manifest("new", 2, cpu=1, gpu=4), content_type="application/json").json()
    assert checksum(stage) == before
    assert (found["starts"], [each["pod"] for each in found["places"]]) == (True, ["new-w-0", "new-w-1"])
    waits = as_owner.post("/api/v1/jobs/dry-run", manifest("new", 3, cpu=1, gpu=8), content_type="application/json").json()
    assert (waits["starts"], waits["verdict"]["code"], waits["waiting"]) == (False, "overcommit", 3)
    assert waits["why"]["en"].startswith("Admission: asks 24 GPUs")
    bad = as_owner.post("/api/v1/jobs/dry-run", manifest("new", 2, queue="nowhere", cpu=1), content_type="application/json")
    assert bad.status_code == 422
    assert "/spec/queue" in bad.content.decode()


def test_a_queues_preview_is_for_those_who_may_change_it(stage, as_owner, as_staff):
    body = {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "a"}, "spec": {"weight": 5}}
    assert as_owner.post("/api/v1/queues/a/preview", body, content_type="application/json").status_code == 403
    before = checksum(stage)
    found = as_staff.post("/api/v1/queues/a/preview", body, content_type="application/json")
    assert found.status_code == 200, found.content
    assert checksum(stage) == before
    assert {"starts", "waits", "admitted", "evicted", "reclaimed", "queues"} <= found.json().keys()
    body["spec"] = {"weight": -1}
    assert as_staff.post("/api/v1/queues/a/preview", body, content_type="application/json").status_code == 422


def test_a_priority_is_looked_at_and_then_set(stage, as_owner):
    address = f"/api/v1/jobs/{uid('later')}/priority"
    before = checksum(stage)
    found = as_owner.get(f"{address}?class=high").json()
    assert checksum(stage) == before
    assert (found["from"], found["to"], found["place"]) == (0, 1000, {"from": 2, "to": 1, "of": 2})
    assert [each["job"] for each in found["overtakes"]] == ["default/big"]
    assert as_owner.get(f"{address}?class=nothing").status_code == 400
    assert as_owner.patch(address, {"class": "system-node-critical"}, content_type="application/json").status_code == 400
    assert as_owner.patch(address, {"class": "high"}, content_type="application/json").status_code == 200
    assert stage.job("later")["spec"]["priorityClassName"] == "high"
    assert as_owner.get(f"/api/v1/jobs/{uid('first')}/priority?class=high").status_code == 409


def test_the_pages_work_without_script(stage, as_owner):
    job = uid("big")
    part = as_owner.get(f"/jobs/{job}/unblock/").content.decode()
    assert "Lower the gang&#x27;s minimum from 3 to 2" in part
    assert "Place 1 of 2 in default." in part
    page = as_owner.get(f"/jobs/{job}/").content.decode()
    assert "Lower the gang&#x27;s minimum from 3 to 2" in page
    way = as_owner.get(f"/jobs/{job}/unblock/0/").content.decode()
    assert "n1" in way
    assert as_owner.post(f"/jobs/{job}/unblock/0/", {"patch": '{"spec": {"minAvailable": 2}}'}).status_code == 302
    assert stage.job("big")["spec"]["minAvailable"] == 2


def test_a_changed_copy_is_a_draft(stage, as_owner):
    job = uid("big")
    found = as_owner.get(f"/api/v1/jobs/{job}/explain?wait=10").json()["unblock"]["ways"]
    place = next(place for place, way in enumerate(found) if way["code"] == "per_pod")
    page = as_owner.get(f"/jobs/{job}/unblock/{place}/", follow=True).content.decode()
    assert "big-2" in page
    assert "nvidia.com/gpu: &#x27;4&#x27;" in page


def test_a_patch_of_more_than_may_change_is_refused(stage, as_owner):
    job = uid("big")
    assert as_owner.post(f"/jobs/{job}/unblock/0/", {"patch": "nonsense"}).status_code == 400
    as_owner.post(f"/jobs/{job}/unblock/0/", {"patch": '{"spec": {"queue": "a"}}'})
    assert stage.job("big")["spec"]["queue"] == "default"


def test_nodes_are_listed_by_cause(stage, as_owner):
    stage.submit(manifest("picky", 1, cpu=1, pod={"nodeSelector": {"zone": "z9"}}))
    stage.rest()
    project(stage)
    page = as_owner.get(f"/nodes/?job={uid('picky')}&cause=selector").content.decode()
    assert "3 nodes refuse picky: Labels do not match the selector." in page
    assert "0 of 3 nodes match" in as_owner.get(f"/nodes/?job={uid('picky')}&cause=taint").content.decode()


def test_a_draft_and_a_queues_change_are_tried_without_script(stage, as_owner, as_staff):
    text = yaml.safe_dump(manifest("new", 2, cpu=1, gpu=4))
    page = as_owner.post("/submit/dry-run/", {"yaml": text}).content.decode()
    assert "<h1>Dry run</h1>" in page
    assert "2 of 2 pods would start now" in page
    assert "new-w-1" in page
    part = as_owner.post("/submit/dry-run/", {"yaml": text}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "2 of 2 pods would start now" in part
    late = as_owner.post("/submit/dry-run/", {"yaml": yaml.safe_dump(manifest("new", 9, cpu=1, gpu=8))}).content.decode()
    assert "It would wait" in late
    assert as_owner.post("/submit/dry-run/", {"yaml": "kind: ["}).status_code == 400
    change = {"weight": "5", "was-weight": "1", "parent": "root", "was-parent": "root"}
    assert as_owner.post("/queues/a/impact/", change).status_code == 403
    page = as_staff.post("/queues/a/impact/", change).content.decode()
    assert "Nothing would move" in page or "No job would start" in page
    assert as_staff.post("/queues/a/impact/", change | {"weight": "none"}).status_code == 422
