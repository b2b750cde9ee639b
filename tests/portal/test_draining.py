"""Closing a queue, emptying it and deleting it, step by step, on its page."""

from __future__ import annotations

import pytest

from cluster import runtime
from cluster.kinds import JOB, POD_GROUP, QUEUE
from cluster.projection import Batch
from jobs import writes
from jobs.models import Job
from jobs.projection import project_jobs, project_pod_groups
from queues.models import QueueChange
from queues.projection import project
from tests import fleet_rows
from tests.jobs.world import job as job_manifest
from tests.portal.pages import text

pytestmark = pytest.mark.django_db(databases=["default", "cluster"])


@pytest.fixture
def fleet():
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    yield cluster
    runtime.use(None)


@pytest.fixture
def team(fleet):
    """A queue with a waiting, a running and an ended job; `side` is open beside it."""
    for name in ("team", "side"):
        fleet.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1, "parent": "root"}})
    for name, phase in (("waits", "Pending"), ("runs", "Running"), ("done", "Completed")):
        obj = job_manifest(name, queue="team")
        obj["metadata"]["annotations"] = {"basalt.dev/owner": "mia"}
        fleet.create(JOB, obj)
        fleet.patch_status(JOB, name, "default", {"state": {"phase": phase}})
    _show(fleet)
    return fleet


def _show(cluster):
    project(Batch(cluster.list(QUEUE).items))
    project_jobs(Batch(cluster.list(JOB).items))
    project_pod_groups(Batch(cluster.list(POD_GROUP).items))


def test_the_page_says_what_is_inside_and_what_is_left_to_do(staff, team):
    found = staff.get("/queues/team/close/").context["found"]
    assert (found.waiting, found.going, found.own.ended, found.own.unended) == (1, 1, 1, 2)
    assert not found.can_go
    assert "side" in found.targets
    assert {"team", "root", "research"}.isdisjoint(found.targets)
    below = staff.get("/queues/research/close/").context["found"].below
    assert [each.branch.queue.name for each in below] == ["nlp", "speech", "vision"]


def test_deleting_is_refused_on_the_page_and_in_rest_while_a_job_waits(staff, team):
    page = staff.post("/queues/team/delete/")
    assert page.status_code == 403
    assert "2 jobs that have not ended (default/runs, default/waits)" in text(page)
    assert staff.delete("/api/v1/queues/team").status_code == 403
    assert team.get(QUEUE, "team")


def test_waiting_jobs_move_as_copies_with_their_owner_and_the_rest_stays(staff, team):
    page = staff.post("/queues/team/move/", {"queue": "side"})
    moved = page.context["moved"]
    assert [(row.job.name, row.new.name, row.new.queue, row.new.owner) for row in moved] == [("waits", "waits-2", "side", "mia")]
    assert {job["metadata"]["name"] for job in team.list(JOB).items} == {"waits-2", "runs", "done"}
    assert Job.objects.get(name="waits-2").cloned_from == moved[0].job.uid
    assert staff.post("/queues/team/move/", {"queue": "research"}).status_code == 302


def test_a_job_that_began_to_run_meanwhile_is_left_alone(staff, team):
    team.patch_status(JOB, "waits", "default", {"state": {"phase": "Running"}})
    moved = staff.post("/queues/team/move/", {"queue": "side"}).context["moved"]
    assert "does not wait any more" in moved[0].why
    assert {job["metadata"]["name"] for job in team.list(JOB).items} == {"waits", "runs", "done"}


@pytest.mark.parametrize(("phase", "left"), [("Running", {"waits", "runs", "done"}), ("Pending", {"waits-2", "runs", "done"})])
def test_a_job_that_is_written_while_its_copy_is_made_is_deleted_only_if_it_still_waits(staff, team, monkeypatch, phase, left):
    submit = writes.submit

    def meanwhile(*args):
        made = submit(*args)
        team.patch_status(JOB, "waits", "default", {"state": {"phase": phase}, "pending": 1})
        return made

    monkeypatch.setattr(writes, "submit", meanwhile)
    moved = staff.post("/queues/team/move/", {"queue": "side"}).context["moved"]
    assert {job["metadata"]["name"] for job in team.list(JOB).items} == left
    assert ("does not wait any more" in moved[0].why) == (phase == "Running")
    assert (moved[0].new is None) == (phase == "Running")


def test_a_job_of_a_flow_is_not_moved(staff, team):
    Job.objects.filter(name="waits").update(made_by="uid-of-flow")
    assert "flow or a cron job" in staff.post("/queues/team/move/", {"queue": "side"}).context["moved"][0].why


def test_an_empty_queue_is_deleted_and_its_history_stays(staff, team):
    for name in ("waits", "runs"):
        team.patch_status(JOB, name, "default", {"state": {"phase": "Terminated"}})
    _show(team)
    assert staff.get("/queues/team/close/").context["found"].can_go
    staff.post("/queues/team/delete/")
    assert "team" not in [queue["metadata"]["name"] for queue in team.list(QUEUE).items]
    assert QueueChange.objects.get(name="team", verb="deleted").user == "root-of-all"


def test_members_close_and_move_nothing(member, team):
    assert member.get("/queues/team/close/").status_code == 403
    assert member.post("/queues/team/move/", {"queue": "side"}).status_code == 403
