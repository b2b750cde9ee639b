"""Blueprints written: by whom, version after version, and what is refused as a definition."""

import threading

import pytest
from django.db import connection
from django.test import Client

from cluster.errors import Conflict
from jobs.blueprints import definition, operations
from jobs.blueprints.models import Blueprint, BlueprintUse, BlueprintVersion
from tests.portal.blueprints.world import API, PAGE, order, source

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])


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
    copied = text.replace("name: train", "name: copy", 1)
    answer = as_("omar").post(API, copied, content_type="application/yaml")
    assert answer.status_code == 201
    assert operations.current(Blueprint.objects.get(name="copy")).source == copied
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
    ("text", "status"),
    [
        ("", 400),
        ("a: [", 400),
        ("kind: Blueprint", 422),
        ("- 1", 400),
        ("apiVersion: basalt.dev/v1\nkind: Blueprint\nmetadata: {name: x}\nspec: 3", 422),
    ],
)
def test_what_is_no_definition_is_refused_in_the_editor_and_by_rest(as_, text, status):
    assert as_("lena").post("/blueprints/new/", {"source": text, "do": "keep"}).status_code == status
    assert as_("lena").post(API, text, content_type="application/yaml").status_code == status
    assert not Blueprint.objects.exists()


def test_a_job_that_the_cluster_would_refuse_is_told_before_it_is_kept(as_):
    broken = source(swap=[("          replicas: 1\n", "          replicas: -1\n")])
    answer = as_("lena").post(API, broken, content_type="application/yaml")
    assert answer.status_code == 422
    assert "/spec/job/spec/tasks/0/replicas" in answer.content.decode()


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


@pytest.mark.parametrize("version", ["²", "٣", "9" * 5000, "-1"])
def test_a_version_that_is_no_number_is_told(as_, train, version):
    assert as_("lena").put(f"{API}/train?version={version}", source(), content_type="application/yaml").status_code in (400, 409)
    assert as_("lena").get(f"{PAGE}?version={version}").status_code in (200, 404)
    assert as_("lena").post(f"{PAGE}edit/", {"source": source() + "#", "base": version, "do": "keep"}).status_code == 409
