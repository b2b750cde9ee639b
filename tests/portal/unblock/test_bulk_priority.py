"""Another priority for many waiting jobs: whom it costs is told before it is set, and only waiting jobs of one's own get it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from cluster.kinds import JOB
from jobs.bulk.asking import make, preview
from jobs.bulk.control import change
from jobs.bulk.models import BulkItem, BulkOperation
from jobs.bulk.worker import Worker
from jobs.models import Job
from jobs.submit import preview as classes
from tests.portal.unblock.test_doors import as_owner, as_staff, checksum, project, stage, uid  # noqa: F401 - fixtures
from tests.portal.unblock.world import manifest

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def line(stage):  # noqa: F811
    """`big`, `later` and `small` wait for three machines each, in this order."""
    stage.submit(manifest("small", 3, cpu=4, gpu=8))
    stage.rest()
    project(stage)
    classes._classes = (0.0, None, [])
    return stage


def run(operation: BulkOperation) -> dict[str, str]:
    change(operation, "start")
    worker = Worker("one")
    while taken := worker.take():
        while worker.step(taken):
            pass
    return {item.job.name: item.outcome for item in BulkItem.objects.select_related("job")}


def test_the_preview_names_who_is_delayed_and_writes_nothing(line, as_staff):  # noqa: F811
    before = checksum(line)[0]
    uids = [uid("later"), uid("first")]
    answer = as_staff.post(reverse("jobs:bulk"), {"scope": "selection", "uid": uids, "action": "priority:high"})
    page = as_staff.get(answer["Location"])
    told = page.context["impact"]
    assert told.tried == 1  # `first` runs
    assert [each["job"] for each in told.overtaken] == ["default/big"]
    alone = as_staff.get(f"/api/v1/jobs/{uid('later')}/priority?class=high").json()
    assert (told.overtaken, told.evicted, told.delayed) == (alone["overtakes"], alone["evicted"], alone["delayed"])
    assert "Priority high" in page.content.decode()
    assert "default/big" in page.content.decode()
    assert checksum(line)[0] == before


def test_it_is_set_for_jobs_that_wait_and_told_job_by_job(line, make_user):
    boss = make_user("boss", staff=True)
    operation = make(boss, "priority", argument="high", query="")
    told = preview(boss, operation)
    assert (told.acts, told.refused) == (3, 1)
    assert run(operation) == {"big": "done", "later": "done", "small": "done", "first": "refused"}
    assert line.job("later")["spec"]["priorityClassName"] == "high"
    assert "priorityClassName" not in line.job("first")["spec"]
    assert Job.objects.get(name="later").priority_class == "high"
    again = preview(boss, make(boss, "priority", argument="high", query=""))
    assert (again.acts, again.same) == (0, 3)


def test_who_may_not_act_on_a_job_does_not_move_it(line, make_user):
    bo = make_user("bo")
    assert set(run(make(bo, "priority", argument="high", query="")).values()) == {"refused"}
    assert "priorityClassName" not in line.job("later")["spec"]


def test_what_was_written_meanwhile_is_read_again_and_what_runs_is_left_alone(line, make_user):
    boss = make_user("boss", staff=True)
    operation = make(boss, "priority", argument="high", uids=[uid("later"), uid("first")])
    line.cluster.patch(JOB, "later", "default", {"metadata": {"labels": {"a": "b"}}})
    Job.objects.filter(name="first").update(phase="Pending", resource_version=1)  # a row that is behind
    assert run(operation) == {"later": "done", "first": "failed"}
    assert line.job("later")["spec"]["priorityClassName"] == "high"
    assert "does not wait any more" in BulkItem.objects.get(job_id=uid("first")).message


@pytest.mark.parametrize("name", ["", "nothing", "system-node-critical"])
def test_a_class_that_is_not_for_people_makes_no_operation(line, as_staff, name):  # noqa: F811
    body = {"action": "priority", "argument": name, "query": ""}
    assert as_staff.post("/api/v1/bulk-operations", body, "application/json").status_code == 400
    assert not BulkOperation.objects.exists()


def test_rest_tells_the_same_as_the_page(line, as_staff):  # noqa: F811
    body = {"action": "priority", "argument": "high", "uids": [uid("later")]}
    answer = as_staff.post("/api/v1/bulk-operations", body, "application/json").json()
    assert answer["argument"] == "high"
    assert answer["preview"]["impact"]["overtaken_total"] == 1
    assert [each["job"] for each in answer["preview"]["impact"]["overtaken"]] == ["default/big"]


def test_the_list_offers_the_classes(line, as_owner):  # noqa: F811
    assert 'value="priority:high"' in as_owner.get("/jobs/").content.decode()
