"""Finding by typing: what fits, in which order, how much, and for whom."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.utils import translation

from cluster.models import Node
from jobs.choices import JobPhase
from portal import find
from queues.models import Queue
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def reader(make_user):
    return make_user("reader")


def titles(groups):
    return {str(group.title): [thing.name for thing in group.things] for group in groups}


def test_each_kind_answers_and_kinds_with_nothing_are_left_out(reader):
    make.save([make.job("train-a", queue="vision"), make.job("other", queue="vision", owner="sam")])
    Queue.objects.create(uid="q", name="training", resource_version=1, created_at=make.now())
    Node.objects.create(uid="n", name="strainer-1", resource_version=1, created_at=make.now())
    assert titles(find.groups(reader, "train", 6)) == {"Jobs": ["train-a"], "Queues": ["training"], "Nodes": ["strainer-1"]}
    assert titles(find.groups(reader, "sam", 6)) == {"Jobs": ["other"]}
    assert find.groups(reader, "nowhere", 6) == []


def test_a_job_is_found_by_namespace_and_name_and_by_uid(reader):
    jobs = [make.job("train", namespace="a"), make.job("train", namespace="b")]
    make.save(jobs)
    (group,) = find.groups(reader, "b/tra", 6)
    assert [thing.url for thing in group.things] == [f"/jobs/{jobs[1].uid}/"]
    assert titles(find.groups(reader, jobs[0].uid, 6)) == {"Jobs": ["train"]}


def test_without_a_text_there_are_all_pages_and_the_readers_own_jobs(reader):
    make.save([make.job("mine", owner="reader"), make.job("theirs", owner="sam")])
    found = titles(find.groups(reader, "", 6))
    assert found["Your jobs"] == ["mine"]
    assert found["Pages"][:4] == ["Overview", "Jobs", "Submit job", "Queues"]
    assert "New queue" not in found["Pages"]


def test_pages_are_found_by_their_name_in_the_readers_language(reader):
    with translation.override("zh-hans"):
        assert [thing.url for thing in find.pages(reader, "队列").things] == ["/queues/"]
        assert find.pages(reader, "Queues").things == []


def test_names_that_begin_with_the_text_come_first(reader):
    for name in ("a-gpu", "gpu-2", "gpu-1"):
        Node.objects.create(uid=name, name=name, resource_version=1, created_at=make.now())
    assert titles(find.groups(reader, "gpu", 2))["Nodes"] == ["gpu-1", "gpu-2"]


def test_more_jobs_than_are_shown_lead_to_the_list(reader):
    make.save([make.job(f"train-{number}") for number in range(8)])
    (group,) = find.groups(reader, "default/train", 6)
    assert len(group.things) == 6
    assert group.more == "/jobs/?q=train"


def test_who_may_see_nothing_finds_nothing_but_pages():
    make.save([make.job("train", phase=JobPhase.RUNNING)])
    assert find.groups(AnonymousUser(), "train", 6) == []


def test_the_number_of_statements_does_not_grow(reader, django_assert_num_queries):
    make.save([make.job(f"train-{number}") for number in range(40)])
    with django_assert_num_queries(5):
        find.groups(reader, "train", 6)


@pytest.mark.parametrize("text", ["", "<b>", "a\x00b", "x" * 5000, "ns/", "/", "%_"])
def test_any_text_gets_an_answer_as_page_and_part(reader, text):
    client = Client()
    client.force_login(reader, "django.contrib.auth.backends.ModelBackend")
    page = client.get("/find/", {"q": text})
    part = client.get("/find/", {"q": text}, headers={"HX-Request": "true"})
    assert (page.status_code, part.status_code) == (200, 200)
    assert "<html" in page.text
    assert "<html" not in part.text
    assert "<b>" + "”" not in part.text
