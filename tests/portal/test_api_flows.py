"""REST of flows, templates and cron jobs: made, changed, acted on, refused, all in the API's one style."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cluster import runtime
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import CRON_JOB, EVENT, JOB, JOB_FLOW, QUEUE
from cluster.projection import Batch
from jobs.controller import ControllerManager
from portal.mirror import PROJECTIONS, Mirror
from tests.jobs.cron.world import cron
from tests.jobs.flows.world import flow, template
from tests.portal.rest import Api

pytestmark = [pytest.mark.django_db(databases="__all__")]
NOON = 1_899_979_200.0  # 2030-03-17T12:00:00Z


@pytest.fixture(autouse=True)
def cluster():
    found = EmbeddedCluster(clock=ManualClock(NOON))
    runtime.use(found)
    for name in ("root", "default"):
        found.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    yield found
    runtime.use(None)


@pytest.fixture
def settle(cluster):
    manager, mirror = ControllerManager(cluster, cluster.clock), Mirror(cluster)

    def work() -> None:
        manager.settle()
        mirror.settle()

    yield work
    manager.close()
    mirror.close()


@pytest.fixture
def ada(make_user) -> Api:
    return Api(make_user("ada"))


@pytest.fixture
def bob(make_user) -> Api:
    return Api(make_user("bob"))


def test_a_flow_is_made_shown_and_deleted(ada: Api, settle: Any, cluster: Any):
    assert ada.post("jobtemplates", template("a")).status_code == 201
    made = ada.post("jobflows", flow("f", "a"))
    assert (made.status_code, made.headers["Location"]) == (201, "/api/v1/jobflows/default/f")
    assert (made.json()["owner"], made.json()["phase"], made.json()["parts"]) == ("ada", "Pending", 1)
    settle()
    shown = ada.get("jobflows/default/f").json()
    assert [job["name"] for job in shown["jobs"]] == ["f-a"]
    assert shown["jobs"][0]["owner"] == "ada"
    assert [event["reason"] for event in shown["events"]] == ["Created"]
    assert shown["manifest"]["status"]["pendingJobs"] == ["f-a"]
    assert ada.get("jobtemplates/default/a").json()["jobs"] == ["f-a"]
    assert ada.get(f"jobflows/{shown['uid']}").json()["name"] == "f"
    assert ada.delete("jobtemplates/default/a").status_code == 403
    assert ada.delete("jobflows/default/f").status_code == 202
    settle()
    assert (cluster.list(JOB).items, ada.get("jobflows").json()["results"]) == ([], [])
    assert ada.get("jobflows/default/f").json()["deleted_at"]
    assert ada.delete("jobflows/default/f").status_code == 404


def test_faults_are_problems_with_pointers_and_lines(ada: Api):
    refused = ada.post(
        "jobflows",
        "kind: JobFlow\napiVersion: flow.volcano.sh/v1alpha1\nmetadata: {name: f}\nspec:\n  flows:\n  - name: a\n",
        "application/yaml",
    )
    assert (refused.status_code, refused.headers["Content-Type"]) == (422, "application/problem+json")
    (fault,) = refused.json()["errors"]
    assert (fault["pointer"], fault["line"]) == ("/spec/flows/0/name", 6)
    wrong = ada.post("jobflows", template("a"))
    assert (wrong.status_code, {fault["pointer"] for fault in wrong.json()["errors"]}) == (400, {"/kind"})
    assert ada.post("cronjobs", "[]").status_code == 400


def test_a_create_that_is_sent_again_makes_nothing_twice(ada: Api, cluster: Any):
    first = ada.post("cronjobs", cron(), **{"Idempotency-Key": "k"})
    again = ada.post("cronjobs", cron(), **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["uid"] == again.json()["uid"]
    assert ada.post("cronjobs", cron()).status_code == 409


def test_a_dry_run_keeps_nothing(ada: Api, cluster: Any):
    tried = ada.post("cronjobs?dryRun=All", cron())
    assert (tried.status_code, tried.json()["manifest"]["spec"]["concurrencyPolicy"]) == (200, "Allow")
    assert cluster.list(CRON_JOB).items == []


def test_a_cron_job_says_when_it_runs_next_in_its_zone(ada: Api):
    made = ada.post("cronjobs", cron("30 21 * * *", timeZone="Asia/Shanghai")).json()
    assert made["next_at"] == "2030-03-17T21:30:00+08:00"
    assert made["upcoming"][:2] == ["2030-03-17T21:30:00+08:00", "2030-03-18T21:30:00+08:00"]
    assert (made["time_zone"], made["suspended"], made["active"]) == ("Asia/Shanghai", False, 0)


def test_suspend_resume_and_trigger(ada: Api, settle: Any, cluster: Any):
    ada.post("cronjobs", cron("0 0 1 1 *"))
    stopped = ada.post("cronjobs/default/c/actions/suspend")
    assert (stopped.status_code, stopped.json()["suspended"], stopped.json()["next_at"]) == (202, True, None)
    run = ada.post("cronjobs/default/c/actions/trigger")
    assert (run.status_code, run.json()["owner"]) == (202, "ada")
    assert ada.post("cronjobs/default/c/actions/trigger").json()["uid"] == run.json()["uid"]
    settle()
    assert ada.get("cronjobs/default/c").json()["active"] == 1
    assert ada.get(run.headers["Location"]).status_code == 200
    assert ada.post("cronjobs/default/c/actions/resume").json()["suspended"] is False
    assert ada.post("cronjobs/default/c/actions/jump").status_code == 400


def test_a_patch_changes_the_spec_and_guards_against_others(ada: Api):
    version = ada.post("cronjobs", cron()).json()["resource_version"]
    body = {"metadata": {"resourceVersion": version}, "spec": {"schedule": "@hourly"}}
    changed = ada.patch("cronjobs/default/c", body)
    assert (changed.status_code, changed.json()["schedule"]) == (200, "@hourly")
    assert ada.patch("cronjobs/default/c", body | {"spec": {"schedule": "@daily"}}).status_code == 409
    refused = ada.patch("cronjobs/default/c", {"spec": {"schedule": "often"}})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/spec/schedule")


@pytest.mark.parametrize(
    ("meta", "pointer"),
    [
        ({"annotations": {"basalt.dev/owner": "eve"}}, "/metadata/annotations/basalt.dev~1owner"),
        ({"finalizers": ["x"]}, "/metadata/finalizers"),
        ({"ownerReferences": []}, "/metadata/ownerReferences"),
    ],
)
def test_what_is_ours_to_say_cannot_be_patched(ada: Api, meta: Any, pointer: str):
    ada.post("cronjobs", cron())
    refused = ada.patch("cronjobs/default/c", {"metadata": meta})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, pointer)


def test_only_the_owner_and_staff_may_act(ada: Api, bob: Api, make_user: Any):
    ada.post("jobtemplates", template("a"))
    ada.post("jobflows", flow("f", "a"))
    ada.post("cronjobs", cron())
    assert bob.get("jobflows/default/f").status_code == 200
    for path in ("jobflows/default/f", "jobtemplates/default/a", "cronjobs/default/c"):
        assert bob.delete(path).status_code == 403
        assert bob.patch(path, {"metadata": {"labels": {"a": "b"}}}).status_code == 403
    assert bob.post("cronjobs/default/c/actions/trigger").status_code == 403
    applied = bob.post("apply", {**cron(), "spec": {**cron()["spec"], "schedule": "@hourly"}})
    assert applied.status_code == 403
    boss = Api(make_user("boss", staff=True))
    assert boss.post("cronjobs/default/c/actions/suspend").status_code == 202


def test_lists_are_filtered_and_paged(ada: Api):
    for number in range(3):
        ada.post("cronjobs", cron(title=f"c{number}", suspend=number == 1))
    page = ada.get("cronjobs", limit=2, ordering="name").json()
    assert [row["name"] for row in page["results"]] == ["c0", "c1"]
    assert [row["name"] for row in ada.get(page["next"].removeprefix("http://testserver")).json()["results"]] == ["c2"]
    assert [row["name"] for row in ada.get("cronjobs", suspended="true").json()["results"]] == ["c1"]
    assert ada.get("cronjobs", colour="red").status_code == 400


def test_apply_takes_a_bundle_in_any_order_and_into_a_namespace(ada: Api, cluster: Any):
    import json

    documents = [flow("f", "a"), template("a"), cron()]
    for document in documents:
        del document["metadata"]["namespace"]
    text = "\n---\n".join(json.dumps(document) for document in documents)
    answer = ada.post("apply?namespace=lab", text, "application/yaml")
    assert answer.status_code == 200, answer.content
    assert [result["status"] for result in answer.json()["results"]] == ["created"] * 3
    assert cluster.get(JOB_FLOW, "f", "lab")["metadata"]["annotations"]["basalt.dev/owner"] == "ada"
    again = ada.post("apply?namespace=lab", text, "application/yaml").json()["results"]
    assert [result["status"] for result in again] == ["unchanged"] * 3
    assert ada.post("apply?namespace=Bad!", text, "application/yaml").status_code == 422


def test_a_late_event_never_brings_a_row_back(cluster: Any):
    obj = cluster.create(CRON_JOB, copy.deepcopy(cron()))
    PROJECTIONS[CRON_JOB].project(Batch(upserts=[obj]))
    PROJECTIONS[CRON_JOB].project(Batch(deletes=[obj]))
    PROJECTIONS[CRON_JOB].project(Batch(upserts=[obj]))
    from jobs.models import CronJob

    assert CronJob.objects.get().deleted_at is not None
    assert cluster.list(EVENT).items == []
