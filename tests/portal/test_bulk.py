"""Actions on many jobs: preview, bulk writes, an outcome for each job, going on after a crash, rights."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import BadRequest, Unavailable
from cluster.kinds import COMMAND, JOB, QUEUE
from cluster.projection import Batch
from jobs.bulk import worker as at_work
from jobs.bulk.asking import make, preview
from jobs.bulk.control import change
from jobs.bulk.models import BulkItem, BulkOperation, BulkState, Outcome
from jobs.bulk.worker import Worker
from jobs.models import Job
from jobs.projection import project_jobs

pytestmark = pytest.mark.django_db(databases="__all__")


class Counting(EmbeddedCluster):
    """A cluster that counts bulk writes, and can break off in the middle of one."""

    def __init__(self, **options):
        super().__init__(**options)
        self.writes: list[tuple[str, int]] = []
        self.breaks = ""

    def create_many(self, kind, objects, *, field_manager=""):
        found = super().create_many(kind, objects, field_manager=field_manager)
        self.writes.append((kind.kind, len(objects)))
        if self.breaks:
            raise KeyboardInterrupt(self.breaks)
        return found

    def delete_many(self, kind, victims):
        self.writes.append((kind.kind, len(victims)))
        return super().delete_many(kind, victims)


@pytest.fixture
def cluster():
    made = Counting()
    runtime.use(made)
    made.create(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    yield made
    runtime.use(None)


def submit(cluster, count: int, owner: str = "ada", phase: str = "Running", prefix: str = "job") -> list[str]:
    """Jobs in the cluster and as rows, quickly; their uids."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    objects = [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": f"{prefix}-{n}", "namespace": "default", "annotations": {"basalt.dev/owner": owner}},
            "spec": {"queue": "default", "minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": template}]},
        }
        for n in range(count)
    ]
    made = [outcome.object for outcome in EmbeddedCluster.create_many(cluster, JOB, objects)]
    project_jobs(Batch([{**obj, "status": {"state": {"phase": phase}}} for obj in made]))
    return [obj["metadata"]["uid"] for obj in made]


def outcomes(operation: BulkOperation) -> dict[str, int]:
    found: dict[str, int] = {}
    for outcome in BulkItem.objects.filter(operation=operation).values_list("outcome", flat=True):
        found[outcome] = found.get(outcome, 0) + 1
    return found


def run(operation: BulkOperation, worker: Worker | None = None) -> None:
    change(operation, "start")
    worker = worker or Worker("one")
    while taken := worker.take():
        while worker.step(taken):
            pass


def test_the_preview_says_what_would_be_done_and_why_not(cluster, make_user):
    ada = make_user("ada")
    submit(cluster, 3, prefix="run")
    submit(cluster, 2, phase="Completed", prefix="done")
    submit(cluster, 1, phase="Terminated", prefix="ended")
    submit(cluster, 4, owner="bo", prefix="other")
    gone = submit(cluster, 1, prefix="gone")
    operation = make(ada, "terminate", query="")
    Job.objects.filter(uid__in=gone).update(deleted_at=timezone.now())
    told = preview(ada, operation)
    assert (told.acts, told.same, told.refused) == (3, 1, 7)
    assert {(each.code, each.phase): each.jobs for each in told.refusals} == {
        ("rights", ""): 4,
        ("phase", "Completed"): 2,
        ("gone", ""): 1,
    }
    assert cluster.writes == []
    boss = preview(make_user("boss", staff=True), operation)
    assert (boss.acts, boss.refused) == (7, 3)


def test_each_job_gets_its_outcome(cluster, make_user):
    ada = make_user("ada")
    uids = (
        submit(cluster, 2, prefix="run")
        + submit(cluster, 1, phase="Failed", prefix="failed")
        + submit(cluster, 1, "bo", prefix="bo")
    )
    operation = make(ada, "suspend", uids=uids)
    run(operation)
    rows = {item.job.name: (item.outcome, item.reason) for item in operation.items.select_related("job")}
    assert rows == {
        "run-0": (Outcome.DONE, ""),
        "run-1": (Outcome.DONE, ""),
        "failed-0": (Outcome.REFUSED, "phase"),
        "bo-0": (Outcome.REFUSED, "rights"),
    }
    asked = cluster.list(COMMAND).items
    assert sorted((each["action"], each["target"]["name"], each["message"]) for each in asked) == [
        ("AbortJob", "run-0", "asked by ada"),
        ("AbortJob", "run-1", "asked by ada"),
    ]
    assert BulkOperation.objects.get().state == BulkState.DONE


def test_partial_failure_is_told_job_by_job(cluster, make_user):
    uids = submit(cluster, 3)
    cluster.delete(JOB, "job-1", "default")  # behind the rows' back
    operation = make(make_user("ada"), "delete", uids=uids)
    run(operation)
    told = dict(operation.items.order_by("job__name").values_list("job__name", "outcome"))
    assert told == {"job-0": Outcome.DONE, "job-1": Outcome.FAILED, "job-2": Outcome.DONE}
    assert "job-1" in operation.items.get(outcome=Outcome.FAILED).message


def test_five_thousand_jobs_are_cancelled_in_a_handful_of_bulk_statements(cluster, make_user):
    ada = make_user("ada")
    submit(cluster, 5_000)
    with CaptureQueriesContext(connection) as captured:
        operation = make(ada, "terminate", query="state=running")
    asking = [query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert len(asking) == 3
    with CaptureQueriesContext(connection) as captured:
        run(operation)
    doing = [query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert cluster.writes == [("Command", 2_500), ("Command", 2_500)]
    assert len(doing) <= 17, doing
    assert outcomes(operation) == {Outcome.DONE: 5_000}
    assert len(cluster.list(COMMAND).items) == 5_000


def test_what_a_crash_interrupted_is_gone_on_with_and_asked_once(cluster, make_user, monkeypatch):
    monkeypatch.setattr(at_work, "CHUNK", 4)
    submit(cluster, 10)
    operation = make(make_user("ada"), "terminate", query="")
    change(operation, "start")
    dying = Worker("dying")
    taken = dying.take()
    assert dying.step(taken)
    cluster.breaks = "power cut"
    with pytest.raises(KeyboardInterrupt):
        dying.step(taken)
    cluster.breaks = ""
    assert outcomes(operation) == {Outcome.DONE: 4, Outcome.ASKED: 4, Outcome.WAITING: 2}
    assert Worker("next").take() is None  # the lease still runs
    BulkOperation.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run(operation, Worker("next"))
    assert outcomes(operation) == {Outcome.DONE: 10}
    assert sorted(each["target"]["name"] for each in cluster.list(COMMAND).items) == [f"job-{n}" for n in range(10)]


def test_a_restart_that_may_have_been_done_is_not_done_twice(cluster, make_user):
    uids = submit(cluster, 2)
    operation = make(make_user("ada"), "restart", uids=uids)
    change(operation, "start")
    cluster.breaks = "power cut"
    dying = Worker("dying")
    with pytest.raises(KeyboardInterrupt):
        dying.step(dying.take())
    cluster.breaks = ""
    first = cluster.list(COMMAND).items[0]
    cluster.delete(COMMAND, first["metadata"]["name"], "default")  # its controller has carried it out
    BulkOperation.objects.update(lease_until=None, worker="")
    run(operation)
    told = dict(operation.items.values_list("job__name", "outcome"))
    assert told[first["target"]["name"]] == Outcome.FAILED
    assert sorted(told.values()) == [Outcome.DONE, Outcome.FAILED]
    assert len(cluster.list(COMMAND).items) == 1


def test_two_workers_share_no_job(cluster, make_user, monkeypatch):
    monkeypatch.setattr(at_work, "CHUNK", 3)
    submit(cluster, 6)
    operation = make(make_user("ada"), "suspend", query="")
    change(operation, "start")
    first, second = Worker("first"), Worker("second")
    taken = first.take()
    assert second.take() is None
    BulkOperation.objects.update(lease_until=timezone.now() - timedelta(seconds=1))  # the first was frozen for long
    stolen = second.take()
    assert stolen is not None
    assert not first.step(taken)  # it notices after its chunk that it holds nothing any more
    while second.step(stolen):
        pass
    assert outcomes(operation) == {Outcome.DONE: 6}
    assert len(cluster.list(COMMAND).items) == 6


def test_one_that_is_stopped_leaves_the_rest_alone_and_can_go_on(cluster, make_user, monkeypatch):
    monkeypatch.setattr(at_work, "CHUNK", 2)
    submit(cluster, 6)
    operation = make(make_user("ada"), "suspend", query="")
    change(operation, "start")
    worker = Worker("one")
    taken = worker.take()
    assert worker.step(taken)
    assert change(operation, "stop")
    assert not worker.step(taken)
    assert worker.take() is None
    assert outcomes(operation)[Outcome.WAITING] == 2
    run(BulkOperation.objects.get())
    assert outcomes(operation) == {Outcome.DONE: 6}


def test_who_has_lost_the_right_meanwhile_changes_nothing(cluster, make_user):
    ada = make_user("ada")
    uids = submit(cluster, 2)
    operation = make(ada, "delete", uids=uids)
    ada.is_active = False
    ada.save()
    run(operation)
    assert outcomes(operation) == {Outcome.REFUSED: 2}
    assert len(cluster.list(JOB).items) == 2


def test_what_cannot_be_understood_makes_no_operation(cluster, make_user):
    ada = make_user("ada")
    submit(cluster, 1)
    for wrong in (
        {"action": "explode", "query": ""},
        {"action": "delete", "query": "state=happy"},
        {"action": "delete", "uids": ["x"]},
    ):
        with pytest.raises(BadRequest):
            make(ada, wrong.pop("action"), **wrong)
    assert not BulkOperation.objects.exists()


def test_a_cluster_that_is_away_makes_the_worker_pause_and_try_again(cluster, make_user, monkeypatch):
    import threading

    uids = submit(cluster, 2)
    operation = make(make_user("ada"), "suspend", uids=uids)
    change(operation, "start")
    stop, tries = threading.Event(), []

    def away(*_args, **_more):
        tries.append(1)
        if len(tries) == 2:
            stop.set()
        raise Unavailable("away")

    monkeypatch.setattr(at_work, "PAUSE", 0.01)
    monkeypatch.setattr(cluster, "create_many", away)
    Worker("one").run(stop)
    assert len(tries) == 2
    assert outcomes(operation) == {Outcome.ASKED: 2}


def test_what_was_done_before_a_crash_counts_as_done(cluster, make_user):
    uids = submit(cluster, 3)
    operation = make(make_user("ada"), "delete", uids=uids)
    change(operation, "start")
    gone = operation.items.filter(job_id__in=uids[:2])
    Job.objects.filter(uid__in=uids[:2]).update(deleted_at=timezone.now())
    gone.filter(job_id=uids[0]).update(outcome=Outcome.ASKED)
    run(operation, Worker("next"))
    told = dict(operation.items.values_list("job_id", "outcome"))
    assert told == {uids[0]: Outcome.DONE, uids[1]: Outcome.SAME, uids[2]: Outcome.DONE}


def sign(client: Client, user) -> Client:
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def test_pages_lead_from_the_list_to_the_outcomes_without_a_script(cluster, make_user, client: Client):
    sign(client, make_user("ada"))
    uids = submit(cluster, 3) + submit(cluster, 1, phase="Completed", prefix="done")
    html = client.get("/jobs/").content.decode()
    assert html.count('form="bulk" name="uid"') == 4
    asked = client.post(reverse("jobs:bulk"), {"scope": "selection", "uid": uids[1:], "action": "terminate", "query": ""})
    address = asked["Location"]
    shown = client.get(address).content.decode()
    assert "Terminate 2 jobs" in shown
    assert shown.count("its state is Completed, in which Terminate is not possible") == 2  # in sum, and beside the job
    client.post(address, {"do": "start"})
    run(BulkOperation.objects.get())
    shown = client.get(address).content.decode()
    assert re.search(r"3 of 3 jobs", shown)
    assert client.get(address + "?outcome=refused").content.decode().count("done-0") == 1
    assert "Terminate" in client.get(reverse("jobs:bulk")).content.decode()


def test_the_whole_filter_is_taken_not_the_page(cluster, make_user, client: Client):
    sign(client, make_user("ada"))
    submit(cluster, 60)
    submit(cluster, 1, phase="Completed", prefix="done")
    answer = client.post(reverse("jobs:bulk"), {"scope": "filter", "action": "suspend", "query": "state=running"})
    assert BulkOperation.objects.get().total == 60
    client.post(answer["Location"], {"do": "drop"})
    assert not BulkItem.objects.exists()


def test_nothing_chosen_leads_back_with_a_word(cluster, make_user, client: Client):
    sign(client, make_user("ada"))
    answer = client.post(reverse("jobs:bulk"), {"scope": "selection", "action": "suspend", "query": "q=a"}, follow=True)
    assert answer.redirect_chain[-1][0] == "/jobs/?q=a"
    assert "No job was chosen." in answer.content.decode()


def test_others_operations_are_not_shown(cluster, make_user, client: Client):
    operation = make(make_user("ada"), "suspend", uids=submit(cluster, 1))
    address = reverse("jobs:bulk_detail", args=[operation.pk])
    assert sign(client, make_user("bo")).get(address).status_code == 404
    assert client.post(address, {"do": "start"}).status_code == 404
    assert sign(Client(), make_user("boss", staff=True)).get(address).status_code == 200


def test_rest_makes_begins_and_follows_one(cluster, make_user, client: Client):
    sign(client, make_user("ada"))
    submit(cluster, 2)
    submit(cluster, 1, phase="Failed", prefix="failed")
    body = {"action": "terminate", "query": ""}
    made = client.post("/api/v1/bulk-operations", body, "application/json", headers={"Idempotency-Key": "k"})
    again = client.post("/api/v1/bulk-operations", body, "application/json", headers={"Idempotency-Key": "k"})
    assert made.status_code == 201
    assert made.json()["id"] == again.json()["id"]
    assert made.json()["preview"] == {
        "acts": 2, "same": 0, "refused": 1, "refusals": [{"code": "phase", "phase": "Failed", "jobs": 1}],
    }  # fmt: skip
    assert client.post(f"{made['Location']}/start").status_code == 202
    run(BulkOperation.objects.get())
    told = client.get(made["Location"]).json()
    assert (told["state"], told["outcomes"]) == ("done", {"done": 2, "refused": 1})
    page = client.get(f"{made['Location']}/items?limit=2").json()
    assert len(page["results"]) == 2
    assert len(client.get(page["next"]).json()["results"]) == 1
    refused = client.get(f"{made['Location']}/items?outcome=refused").json()["results"]
    assert [(row["name"], row["reason"]) for row in refused] == [("failed-0", "phase")]
    assert client.post(f"{made['Location']}/stop").status_code == 409
    for wrong in ({"action": "terminate"}, {"action": "x", "query": ""}, {"action": "terminate", "query": "", "uids": []}):
        assert client.post("/api/v1/bulk-operations", wrong, "application/json").status_code == 400
