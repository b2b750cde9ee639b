"""Blueprints through every door: filled out, held to, seen by those alone whom they are for."""

import json

import pytest
import yaml

from cluster.kinds import JOB
from jobs.blueprints import operations
from jobs.blueprints.models import Blueprint, BlueprintUse
from jobs.models import Job
from tests.portal.blueprints.world import API, PAGE, order, source

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])


def test_a_blueprint_is_made_filled_out_and_submitted_on_pages(as_, fleet):
    lena = as_("lena")
    assert lena.get("/blueprints/").status_code == 200
    text = lena.get("/blueprints/new/").context["source"]
    answer = lena.post("/blueprints/new/", {"source": text.replace("pytorch-nodes", "train"), "do": "keep", "note": "first"})
    assert answer["Location"] == PAGE
    page = as_("omar").get(PAGE)
    assert page.status_code == 200
    assert b'name="p.workers" value="2"' in page.content
    done = as_("omar").post(PAGE, {"p.workers": "3", "p.gpus": "2", "name": "mine-1", "queue": "prod", "do": "submit"})
    job = fleet.get(JOB, "mine-1", "default")
    assert done["Location"] == f"/jobs/{job['metadata']['uid']}/"
    assert job["spec"]["minAvailable"] == 4
    assert job["spec"]["queue"] == "prod"
    assert job["spec"]["tasks"][1]["replicas"] == 3
    assert job["metadata"]["annotations"]["basalt.dev/blueprint"] == "train@1"
    assert json.loads(job["metadata"]["annotations"]["basalt.dev/blueprint-parameters"])["workers"] == 3
    assert BlueprintUse.objects.get().job_uid == job["metadata"]["uid"]
    assert "PyTorch, several nodes" in as_("omar").get(done["Location"]).content.decode()


def test_values_that_break_the_schema_stand_at_their_input_and_nothing_is_created(as_, fleet, train):
    answer = as_("omar").post(PAGE, {"p.workers": "17", "p.gpus": "3", "p.image": "", "do": "submit"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "must be 16 or less, not 17" in page
    assert "must be one of 1, 2, 4, 8" in page
    assert fleet.list(JOB).items == []


def test_the_preview_answers_with_parts_and_writes_nothing(as_, fleet, train):
    page = as_("omar").post(f"{PAGE}preview/", {"p.workers": "5"}).content.decode()
    assert ">5<" in page
    assert 'id="yaml-side" hx-swap-oob' in page
    assert fleet.list(JOB).items == []
    assert as_("omar").post("/submit/dry-run/", {"blueprint": "train", "p.workers": "5"}).status_code == 200


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda job: job["spec"]["policies"].clear(), "/spec/policies"),
        (lambda job: job["spec"]["plugins"]["pytorch"].append("--port=1"), "/spec/plugins"),
        (
            lambda job: job["spec"]["tasks"][1]["template"]["spec"].update(restartPolicy="Always"),
            "/spec/tasks/1/template/spec/restartPolicy",
        ),
    ],
)
@pytest.mark.parametrize("door", ["submit", "jobs", "page", "apply"])
def test_locked_fields_hold_through_every_door(as_, fleet, train, change, where, door):
    omar = as_("omar")
    written = yaml.safe_load(operations.fill_out(None, operations.current(train), operations.Wish({})).text)
    change(written)
    text = yaml.safe_dump(written)
    if door == "submit":
        answer = omar.post(f"{API}/train/submit", json.dumps({"manifest": written}), content_type="application/json")
    elif door == "jobs":
        answer = omar.post("/api/v1/jobs", text, content_type="application/yaml")
    elif door == "apply":
        answer = omar.post("/api/v1/apply", text, content_type="application/yaml")
    else:
        answer = omar.post("/submit/", {"yaml": text, "do": "submit"})
    assert answer.status_code == 422
    assert where in answer.content.decode()
    assert fleet.list(JOB).items == []


def test_what_is_not_locked_may_be_edited_and_still_counts_as_made_from_it(as_, fleet, train):
    omar = as_("omar")
    written = operations.fill_out(None, operations.current(train), operations.Wish({})).manifest
    written["spec"]["tasks"][1]["replicas"] = 5
    written["metadata"]["name"] = "edited"
    made = order(omar, manifest=written)
    assert made["blueprint"] == {"name": "train", "version": 1}
    assert BlueprintUse.objects.get().job_uid == made["uid"]
    clone = omar.get("/submit/", {"from": made["uid"]}).context["check"].text
    assert omar.post("/submit/", {"yaml": clone, "do": "submit"}).status_code == 302
    written["metadata"]["name"] = "applied"
    assert omar.post("/api/v1/apply", yaml.safe_dump(written), content_type="application/yaml").status_code == 200
    assert BlueprintUse.objects.count() == 3


def test_an_annotation_by_itself_makes_no_job_of_a_blueprint(as_, fleet, train, people):
    text = yaml.safe_dump(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "x", "annotations": {"basalt.dev/blueprint": "train@1"}},
            "spec": {},
        }
    )
    assert as_("omar").post("/api/v1/jobs", text, content_type="application/yaml").status_code == 422
    for said in ("train@2", "train", "other@1", "train@0", "../x@1"):
        bad = operations.fill_out(people["omar"], operations.current(train), operations.Wish({})).manifest
        bad["metadata"]["annotations"]["basalt.dev/blueprint"] = said
        answer = as_("omar").post("/api/v1/jobs", json.dumps(bad), content_type="application/json")
        assert answer.status_code == 422
        assert "no such blueprint" in answer.content.decode()


HIDDEN = [("groups: []", "groups: [vision]")]


def test_whoever_is_not_meant_sees_it_through_no_door(as_, people, train):
    job = order(as_("lena"))
    operations.change(people["lena"], train, source(swap=HIDDEN), base=1)
    doors = [
        PAGE,
        f"{PAGE}versions/",
        f"{PAGE}export/",
        f"{PAGE}edit/",
        f"{API}/train",
        f"{API}/train/versions",
        f"{API}/train/versions/1",
    ]
    for name, status in (("omar", 404), ("mei", 200), ("boss", 200), ("lena", 200)):
        client = as_(name)
        found = {door: client.get(door).status_code for door in doors}
        edit = found.pop(f"{PAGE}edit/")
        assert set(found.values()) == {status}, (name, found)
        assert edit == (status if name != "mei" else 403)
        assert ("several nodes" in client.get("/blueprints/").content.decode()) == (status == 200)
        assert bool(client.get(API).json()["results"]) == (status == 200)
        assert ("several nodes" in client.get(f"/jobs/{job['uid']}/").content.decode()) == (status == 200)
    omar = as_("omar")
    for door in (
        f"{PAGE}preview/",
        f"{PAGE}actions/archive/",
        f"{PAGE}edit/",
        f"{API}/train/submit",
        f"{API}/train/actions/archive",
    ):
        assert omar.post(door, "{}", content_type="application/json").status_code == 404
    assert omar.post("/submit/dry-run/", {"blueprint": "train"}).status_code == 404
    assert omar.put(f"{API}/train?version=2", source(), content_type="application/yaml").status_code == 404
    clone = omar.get("/submit/", {"from": job["uid"]}).context["check"].text
    assert omar.post("/submit/", {"yaml": clone, "do": "submit"}).status_code == 422
    assert not Blueprint.objects.get().is_archived


def test_queues_and_namespaces_say_where_its_jobs_may_go(as_, people, fleet):
    operations.create(
        people["lena"],
        source(
            swap=[
                ("queues: []", "queues: [prod]"),
                ("namespaces: []", "namespaces: [default, lab]"),
                ("queue: default", "queue: prod"),
            ]
        ),
    )
    omar = as_("omar")
    order(omar, queue="default", expect=422)
    order(omar, namespace="other", expect=422)
    assert order(omar, namespace="lab", queue="prod")["queue"] == "prod"


def test_usage_is_counted(as_, train):
    assert as_("omar").get(f"{API}/train").json()["uses"] == 0
    order(as_("omar"))
    order(as_("mei"))
    body = as_("omar").get(f"{API}/train").json()
    assert body["uses"] == 2
    assert body["used_at"]
    assert Job.objects.count() == 2


def test_a_form_that_nobody_touched_blames_nobody(as_):
    text = source(swap=[("        default: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n", "")])
    assert as_("lena").post(API, text, content_type="application/yaml").status_code == 201
    page = as_("omar").get(PAGE).content.decode()
    assert "Fill out what is marked with a star." in page
    assert 'id="e-p-image" hidden' in page
    assert "is required" in as_("omar").post(PAGE, {"do": "submit"}).content.decode()


@pytest.mark.parametrize("notes", ["[" * 100_000, '{"workers": 1e999}', '{"workers": %s}' % ("9" * 5000), "NaN", "1"])
def test_annotations_that_are_no_values_are_refused(as_, train, notes):
    job = order(as_("omar"), query="?dryRun=All", expect=200)["manifest"]
    job["metadata"]["annotations"]["basalt.dev/blueprint-parameters"] = notes
    order(as_("omar"), manifest=job, expect=422)


def test_jobs_that_nobody_named_find_other_names_when_others_take_theirs(as_, train, monkeypatch):
    submit, tried = operations.submit, []

    def overtaken(user, made, manifest):
        tried.append(manifest["metadata"]["name"])
        if len(tried) == 1:
            order(as_("mei"), name="train", manifest=manifest | {"metadata": {**manifest["metadata"]}})
        return submit(user, made, manifest)

    monkeypatch.setattr(operations, "submit", overtaken)
    assert order(as_("omar"))["name"] == "train-2"
    assert tried == ["train-1", "train-1", "train-2"]
