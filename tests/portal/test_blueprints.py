"""Blueprints through every door: made, versioned, filled out, held to, seen by those alone whom they are for."""

import json
import threading

import pytest
import yaml
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from cluster import runtime
from cluster.errors import Conflict
from cluster.kinds import JOB
from jobs.blueprints import definition, operations
from jobs.blueprints.models import Blueprint, BlueprintUse, BlueprintVersion
from jobs.models import Job
from tests import fleet_rows

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])
PAGE = "/blueprints/train/"
API = "/api/v1/blueprints"


@pytest.fixture
def fleet(db):
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    yield cluster
    runtime.use(None)


@pytest.fixture
def people(fleet, make_user):
    made = {name: make_user(name) for name in ("lena", "omar", "mei")}
    made["boss"] = make_user("boss", staff=True)
    group = Group.objects.create(name="vision")
    made["mei"].groups.add(group)
    return made


@pytest.fixture
def as_(people):
    def client(name):
        made = Client()
        made.force_login(people[name], "django.contrib.auth.backends.ModelBackend")
        return made

    return client


def source(name="train", **changes):
    text = definition.example(name)
    for old, new in changes.pop("swap", ()):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def train(people):
    return operations.create(people["lena"], source())


def order(client, name="train", expect=201, query="", **body):
    answer = client.post(f"{API}/{name}/submit{query}", json.dumps(body), content_type="application/json")
    assert answer.status_code == expect, answer.content
    return answer.json()


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


def test_versions_never_change_and_old_jobs_keep_theirs(as_, people, train):
    old = order(as_("omar"), name="train")
    changed = source(swap=[("maximum: 16", "maximum: 4")])
    operations.change(people["lena"], train, changed, base=1, note="less")
    assert [each["version"] for each in as_("omar").get(f"{API}/train/versions").json()["results"]] == [2, 1]
    assert BlueprintUse.objects.get(job_uid=old["uid"]).version.number == 1
    assert "v1" in as_("omar").get(f"/jobs/{old['uid']}/").content.decode()
    order(as_("omar"), parameters={"workers": 10}, version=1)
    order(as_("omar"), parameters={"workers": 10}, expect=422)
    made = BlueprintVersion.objects.get(number=1)
    made.note = "rewritten"
    with pytest.raises(TypeError):
        made.save()
    page = as_("omar").get(f"{PAGE}versions/", {"left": 1, "right": 2}).content.decode()
    assert "maximum: 16" in page
    assert "maximum: 4" in page


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


def test_only_its_owner_and_administrators_change_it(as_, people, train):
    for name, status in (("omar", 403), ("lena", 200), ("boss", 200)):
        base = Blueprint.objects.get().current
        new = source(swap=[("maximum: 16", f"maximum: {9 + base}")])
        answer = as_(name).put(f"{API}/train?version={base}", new, content_type="application/yaml")
        assert answer.status_code == status
    assert Blueprint.objects.get().current == 3
    assert as_("omar").post(f"{PAGE}actions/archive/").status_code == 403
    assert as_("lena").post(f"{PAGE}actions/archive/").status_code == 302
    assert Blueprint.objects.get().is_archived
    order(as_("omar"), expect=409)
    assert b'value="submit"' not in as_("omar").get(PAGE).content
    assert as_("omar").get(API).json()["results"] == []
    as_("boss").post(f"{PAGE}actions/restore/")
    order(as_("omar"))


def test_two_editors_get_a_conflict_that_shows_what_the_other_did_and_keeps_both_texts(as_, train):
    lena, boss = as_("lena"), as_("boss")
    base = lena.get(f"{PAGE}edit/").context["base"]
    assert (
        boss.post(
            f"{PAGE}edit/", {"source": source(swap=[("maximum: 16", "maximum: 4")]), "base": base, "do": "keep"}
        ).status_code
        == 302
    )
    mine = source(swap=[("minimum: 1", "minimum: 2")])
    answer = lena.post(f"{PAGE}edit/", {"source": mine, "base": base, "do": "keep"})
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "boss wrote version 2 while you edited version 1" in page
    assert "maximum: 4" in page
    assert answer.context["source"] == mine
    assert lena.post(f"{PAGE}edit/", {"source": mine, "base": 2, "do": "keep"}).status_code == 302
    assert operations.current(Blueprint.objects.get()).source == mine


def test_the_same_text_again_is_no_new_version(people, train):
    assert operations.change(people["lena"], train, source(), base=1).current == 1


def test_export_is_what_was_written_and_can_be_imported_under_another_name(as_, train):
    text = as_("omar").get(f"{PAGE}export/").content.decode()
    assert text == source()
    answer = as_("omar").post(API, definition.renamed(text, "copy"), content_type="application/yaml")
    assert answer.status_code == 201
    assert operations.current(Blueprint.objects.get(name="copy")).source == definition.renamed(text, "copy")
    assert as_("omar").post(API, text, content_type="application/yaml").status_code == 409


def test_one_begins_from_a_job_that_ran(as_, fleet, train):
    job = order(as_("omar"), name="train")
    page = as_("omar").get("/blueprints/new/", {"from": job["uid"]})
    text = page.context["source"]
    found = definition.read(text)
    assert found.tree["spec"]["minAvailable"] == 3
    assert "basalt.dev" not in text.replace("basalt.dev/v1", "")
    assert (
        as_("omar").post("/blueprints/new/", {"source": text.replace("name: train", "name: again", 1), "do": "keep"}).status_code
        == 302
    )


@pytest.mark.parametrize(
    "text", ["", "a: [", "kind: Blueprint", "- 1", "apiVersion: basalt.dev/v1\nkind: Blueprint\nmetadata: {name: x}\nspec: 3"]
)
def test_what_is_no_definition_is_refused_in_the_editor_and_by_rest(as_, text):
    assert as_("lena").post("/blueprints/new/", {"source": text, "do": "keep"}).status_code in (400, 422)
    assert as_("lena").post(API, text, content_type="application/yaml").status_code in (400, 422)
    assert not Blueprint.objects.exists()


def test_a_job_that_the_cluster_would_refuse_is_told_before_it_is_kept(as_):
    broken = source(swap=[("          replicas: 1\n", "          replicas: -1\n")])
    answer = as_("lena").post(API, broken, content_type="application/yaml")
    assert answer.status_code == 422
    assert "/spec/job/spec/tasks/0/replicas" in answer.content.decode()


def test_usage_is_counted(as_, train):
    assert as_("omar").get(f"{API}/train").json()["uses"] == 0
    order(as_("omar"))
    order(as_("mei"))
    body = as_("omar").get(f"{API}/train").json()
    assert body["uses"] == 2
    assert body["used_at"]
    assert Job.objects.count() == 2


@pytest.mark.services
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a database in memory is no place for threads: set DATABASE_URL")
@pytest.mark.django_db(transaction=True, databases="__all__")
def test_of_editors_at_once_one_wins_and_the_others_are_told(people, train):
    results = []

    def edit(number):
        try:
            operations.change(people["lena"], train, source(swap=[("maximum: 16", f"maximum: {number}")]), base=1)
            results.append("kept")
        except Conflict:
            results.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=edit, args=(number,)) for number in (5, 6, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["conflict", "conflict", "kept"]
    assert Blueprint.objects.get().current == 2


def test_a_form_that_nobody_touched_blames_nobody(as_):
    text = source(swap=[("        default: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\n", "")])
    assert as_("lena").post(API, text, content_type="application/yaml").status_code == 201
    page = as_("omar").get(PAGE).content.decode()
    assert "Fill out what is marked with a star." in page
    assert 'id="e-p-image" hidden' in page
    assert "is required" in as_("omar").post(PAGE, {"do": "submit"}).content.decode()


@pytest.mark.parametrize(
    "door", ["versions/?right=9", "versions/?right=x&left=7", "export/?version=9", "edit/?version=9", "?version=9"]
)
def test_a_version_that_is_not_there_is_not_found_or_the_newest(as_, train, door):
    assert as_("lena").get(f"{PAGE}{door}").status_code in (200, 404)


def test_a_definition_is_taken_from_a_signed_in_browser_with_its_comments(people):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people["lena"], "django.contrib.auth.backends.ModelBackend")
    browser.get("/blueprints/new/")
    token = {"X-CSRFToken": browser.cookies["csrftoken"].value}
    assert browser.post(API, source(), content_type="application/yaml").status_code == 403
    assert browser.post(API, source(), content_type="application/yaml", headers=token).status_code == 201
    new = source() + "# kept"
    assert browser.put(f"{API}/train?version=1", new, content_type="application/yaml", headers=token).status_code == 200
    assert BlueprintVersion.objects.get(number=2).source == new


@pytest.mark.parametrize("notes", ["[" * 100_000, '{"workers": 1e999}', '{"workers": %s}' % ("9" * 5000), "NaN", "1"])
def test_annotations_that_are_no_values_are_refused(as_, train, notes):
    job = order(as_("omar"), query="?dryRun=All", expect=200)["manifest"]
    job["metadata"]["annotations"]["basalt.dev/blueprint-parameters"] = notes
    order(as_("omar"), manifest=job, expect=422)


@pytest.mark.parametrize("version", ["²", "٣", "9" * 5000, "-1"])
def test_a_version_that_is_no_number_is_told(as_, train, version):
    assert as_("lena").put(f"{API}/train?version={version}", source(), content_type="application/yaml").status_code in (400, 409)
    assert as_("lena").get(f"{PAGE}?version={version}").status_code in (200, 404)
    assert as_("lena").post(f"{PAGE}edit/", {"source": source() + "#", "base": version, "do": "keep"}).status_code == 409


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
