"""What a drain would do, before it is done: gangs and their policies, budgets, where jobs start again, and who may see what."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import translation

from cluster import runtime
from cluster.kinds import DAEMON_SET, HYPER_NODE, NODE, REPLICA_SET
from cluster.models import Node
from cluster.objects import HOSTNAME_LABEL
from cluster.projection import Batch
from portal.maintenance import rights
from portal.maintenance.models import Drain
from portal.maintenance.preview import as_json, preview
from portal.mirror import PROJECTIONS
from portal.outlook import questions
from portal.unblock import copy
from tests.portal.maintenance.world import LOCAL
from tests.portal.pages import streamed
from tests.scheduler.topology.world import domain

pytestmark = pytest.mark.django_db(databases="__all__")


def policies(*entries):
    return {"spec": {"policies": [{"event": event, "action": action} for event, action in entries]}}


def told(user, *nodes):
    return as_json(preview(user, nodes))


def one(user, *nodes):
    (job,) = told(user, *nodes)["jobs"]
    return job


def test_a_gang_without_policies_falls_below_its_minimum_and_starts_elsewhere(site, boss):
    site.run("train", 2, gpu=8, cpu=1)
    site.cluster.create(NODE, {**site.node("n0"), "metadata": {"name": "n2", "labels": site.node("n0")["metadata"]["labels"]}})
    job = one(boss, "n0")
    assert (job["job"], job["owner"], job["evicted"], job["leaving"], job["placed_again"]) == ("default/train", "ada", 1, 1, 1)
    assert job["places"] == [{"node": "n2", "pods": 1}]
    gang = job["gang"]
    assert (gang["standing"], gang["left"], gang["minimum"], gang["below"]) == (2, 1, 2, True)
    assert (gang["action"], gang["made_again"], gang["fails"]) == ("SyncJob", True, False)
    assert gang["says"]["en"] == "1 of its 2 pods stay and it needs 2: the gang falls below its minimum."
    assert gang["then"]["en"] == "No policy answers to it: the 1 pod that is evicted is made again, the others go on."


def test_what_the_preview_says_comes_true(site, boss):
    site.run("train", 2, gpu=4, cpu=1)
    node = site.world.running("train")[0]["spec"]["nodeName"]
    places = {each["node"] for each in one(boss, node)["places"]}
    site.until_done(site.drain(boss, node))
    assert {pod["spec"]["nodeName"] for pod in site.world.running("train")} == places


def test_a_policy_that_restarts_the_job_takes_the_pods_on_other_nodes_along(site, boss):
    site.run("train", 2, gpu=8, cpu=1, **policies(("PodEvicted", "RestartJob")))
    job = one(boss, "n0")
    assert (job["evicted"], job["leaving"], job["placed_again"]) == (1, 2, 0)
    assert job["gang"]["action"] == "RestartJob"
    assert job["gang"]["then"]["en"] == "Its policy restarts the whole job: all its 2 pods leave, on other nodes too."
    assert job["waits"]["en"] != ""


def test_a_job_that_is_aborted_is_not_placed_again(site, boss):
    site.run("train", 2, gpu=4, cpu=1, node="n0", **policies(("PodEvicted", "AbortJob")))
    found = told(boss, "n0")
    (job,) = found["jobs"]
    assert (job["leaving"], job["placed_again"], job["places"], job["gang"]["made_again"]) == (2, 0, [], False)
    assert found["gangs_not_placed_at_once"] == 0
    assert job["waits"] == {"en": "", "zh-hans": ""}


def test_what_may_come_on_top_is_told(site, boss):
    site.run("train", 1, gpu=4, cpu=1, node="n0", **policies(("PodFailed", "RestartJob"), ("Unknown", "AbortJob")))
    assert [text["en"] for text in one(boss, "n0")["gang"]["maybe"]] == [
        "Should a program end with an error when it is told to stop: the whole job is restarted.",
        "Should the gang not come together again: the job is aborted.",
    ]


def test_a_job_without_a_retry_left_fails(site, boss):
    spec = policies(("PodEvicted", "RestartJob"))
    spec["spec"]["maxRetry"] = 1
    site.run("train", 1, gpu=4, cpu=1, node="n0", **spec)
    gang = one(boss, "n0")["gang"]
    assert gang["fails"] is True
    assert gang["then"]["en"].endswith("It has no retry left: the job fails instead.")
    site.until_done(site.drain(boss, "n0"))
    assert site.job("train")["status"]["state"]["phase"] == "Failed"


def test_budgets_bare_pods_local_data_and_who_stays(site, boss):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.put("b", "n1", by=REPLICA_SET, labels={"app": "db"})
    site.put("bare", "n0")
    site.put("scratch", "n0", by=REPLICA_SET, spec=LOCAL)
    site.put("agent", "n0", by=DAEMON_SET)
    site.put("old", "n0", by=REPLICA_SET, phase="Succeeded")
    site.budget("db", 2, app="db")
    found = told(boss, "n0")
    assert found["budgets"] == [{"budget": "default/db", "pods": 1, "allowed_now": 0, "blocks": True}]
    assert found["pods"] == {
        "go": 3, "bare": 1, "local_data": 1, "other_schedulers": 3, "stay": {"daemon": 1, "ended": 1}, "hidden": 0,
    }  # fmt: skip
    assert found["needs"] == ["bare", "local_data"]
    assert {each["name"]: (each["goes"], each["stays"]) for each in found["list"]} == {
        "a": (True, ""), "bare": (True, ""), "scratch": (True, ""), "agent": (False, "daemon"), "old": (False, "ended"),
    }  # fmt: skip


def test_a_pod_under_two_budgets_is_told(site, boss):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db", "tier": "data"})
    site.budget("db", 0, app="db")
    site.budget("data", 0, tier="data")
    assert told(boss, "n0")["under_several_budgets"] == 1


def test_asking_writes_nothing(site, boss):
    site.run("train", 2, gpu=4, cpu=1)
    before = [node["metadata"]["resourceVersion"] for node in site.cluster.list(NODE).items]
    told(boss, "n0", "n1")
    assert [node["metadata"]["resourceVersion"] for node in site.cluster.list(NODE).items] == before
    assert not Drain.objects.exists()


@override_settings(BASALT_POLICY="tests.portal.maintenance.policies.OwnJobs")
def test_what_a_viewer_may_not_see_is_counted_and_not_named(site, make_user, client: Client):
    site.run("secret-plan", 2, owner="ada", gpu=2, cpu=1, node="n0")
    site.run("mine", 1, owner="keeper", gpu=1, cpu=1, node="n0")
    user = make_user("keeper", staff=True)
    found = told(user, "n0")
    assert (found["pods"]["go"], found["pods"]["hidden"], found["gangs_below_minimum"]) == (3, 2, 2)
    assert [each["name"] for each in found["list"]] == ["mine-w-0"]
    assert "secret" not in str(found)
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    assert b"secret" not in client.get("/drains/new/?node=n0").content
    site.budget("all", 2, **{"volcano.sh/job-name": "secret-plan"})
    drain = site.drain(user, "n0")
    site.look(3)
    page, data = client.get(f"/drains/{drain.pk}/"), client.get(f"/api/v1/drains/{drain.pk}")
    assert b"secret" not in page.content + data.content
    assert data.json()["held"] == 2
    assert b"a pod that you may not see" in page.content


def tasks(**nodes):
    """A job of one pod a task, each on a node; all but the task `lead` need their pod."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    return {
        "minAvailable": 1,
        "tasks": [
            {
                "name": name, "replicas": 1, "minAvailable": int(name != "lead"),
                "template": {"spec": pod | {"nodeSelector": {HOSTNAME_LABEL: node}}},
            }
            for name, node in nodes.items()
        ],
    }  # fmt: skip


@override_settings(BASALT_POLICY="tests.portal.maintenance.policies.OwnJobs")
def test_tasks_of_hidden_jobs_are_not_named(site, make_user, client: Client):
    site.run("plan", 1, owner="ada", spec=tasks(lead="n1", confidential="n0"))
    site.run("mine", 1, owner="keeper", spec=tasks(lead="n1", work="n0"))
    user = make_user("keeper", staff=True)
    found = {each["job"]: each for each in told(user, "n0")["jobs"]}
    assert found["default/mine"]["gang"]["says"]["en"].startswith("work keeps 0 of the 1 pods that it needs")
    assert found[""]["gang"]["says"]["en"].startswith("Some of its tasks keep fewer pods")
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    assert b"confidential" not in client.get("/drains/new/?node=n0").content


@override_settings(BASALT_POLICY="tests.portal.maintenance.policies.OwnJobs")
def test_why_a_hidden_job_would_wait_is_not_told(site, make_user):
    site.run("train", 2, owner="ada", gpu=8, cpu=1, **policies(("PodEvicted", "RestartJob")))
    mine, others = (one(make_user(name, staff=True), "n0") for name in ("ada", "keeper"))
    assert (mine["leaving"], mine["placed_again"], mine["waits"]["en"] != "") == (2, 0, True)
    assert (others["leaving"], others["placed_again"], others["waits"]["en"]) == (2, 0, "")


@override_settings(BASALT_POLICY="tests.portal.maintenance.policies.OneNode")
def test_drains_of_nodes_that_one_may_not_see_stay_hidden_when_the_nodes_are_gone(site, boss, make_user, client: Client):
    seen, hidden = site.drain(boss, "n0"), site.drain(boss, "n1", reason="secret")
    site.cluster.delete(NODE, "n1")
    Node.objects.filter(name="n1").update(deleted_at=runtime.now())
    client.force_login(make_user("keeper"), "django.contrib.auth.backends.ModelBackend")
    assert [each["id"] for each in client.get("/api/v1/drains").json()["results"]] == [str(seen.pk)]
    assert client.get(f"/drains/{hidden.pk}/").status_code == 404
    assert b"secret" not in client.get("/drains/").content


def test_the_page_says_the_same_and_begins_it_without_a_script(site, boss, client: Client):
    site.run("train", 1, gpu=4, cpu=1, node="n0")
    site.put("bare", "n0")
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    text = client.get("/drains/new/?node=n0&node=n1").content.decode()
    assert "2 pods have to go. 1 job loses pods." in text
    assert "1 gang falls below its minimum." in text
    assert 'name="bare"' in text
    assert 'name="local_data"' not in text
    sent = {"node": ["n0", "n1"], "reason": "a fan", "mode": "evict"}
    refused = client.post("/drains/new/", sent)
    assert (refused.status_code, Drain.objects.count()) == (409, 0)
    assert "1 pods are made again by nobody" in refused.content.decode()
    begun = client.post("/drains/new/", sent | {"bare": "1", "in_turn": "1"})
    drain = Drain.objects.get()
    assert begun.headers["Location"] == f"/drains/{drain.pk}/"
    assert (drain.in_turn, drain.bare, [row.node for row in drain.nodes.all()]) == (True, True, ["n0", "n1"])
    site.until_done(drain)
    assert "Nobody is left who has to go." in client.get(begun.headers["Location"]).content.decode()
    assert client.get("/drains/").content.decode().count(f"/drains/{drain.pk}/") == 1


def test_all_nodes_that_the_list_matches_are_chosen(site, boss, client: Client):
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    assert "Drain n1" in client.get("/drains/new/?q=n1&all=1").content.decode()
    assert "Drain 2 nodes" in client.get("/drains/new/?q=n&all=1").content.decode()
    assert client.get("/drains/new/?unusable=1&all=1").status_code == 400  # what it matches is not known here
    assert client.get("/drains/new/?node=none").status_code == 404


def test_states_of_nodes_are_told_everywhere(site, boss, client: Client):
    site.run("train", 1, gpu=1, node="n0")
    site.budget("all", 1, **{"volcano.sh/job-name": "train"})
    site.drain(boss, "n0")
    site.look()
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    said = {
        "/nodes/": ("Draining", "draining"),
        "/nodes/n0/": ("Draining", "It is being drained"),
        "/gpus/?view=table": ("draining",),
    }
    for path, words in said.items():
        text = client.get(path).content.decode()
        assert [word for word in words if word not in text] == [], path
    with translation.override("zh-hans"):
        client.cookies["django_language"] = "zh-hans"
        assert "排空中" in client.get("/nodes/").content.decode()
    assert client.get("/api/v1/nodes?draining=true").json()["results"][0]["name"] == "n0"
    assert client.get("/api/v1/gpus?name=n0").json()["results"][0]["draining"] is True
    assert streamed(client.get("/nodes/export.csv?state=draining")).splitlines()[1].startswith("n0,draining")


def test_without_the_rights_the_page_offers_nothing(site, boss, client: Client, monkeypatch):
    monkeypatch.setattr(rights, "_known", None)
    monkeypatch.setattr(site.cluster, "may", lambda verb, kind, part: kind == NODE, raising=False)
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    text = client.get("/drains/new/?node=n0").content.decode()
    assert "lacks the right to create pods/eviction" in text
    assert 'name="reason"' not in text
    monkeypatch.setattr(rights, "_known", None)


@pytest.mark.parametrize(
    "body",
    [
        {}, [], {"nodes": []}, {"nodes": "n0", "reason": "x"}, {"nodes": ["n0"]}, {"nodes": [1], "reason": "x"},
        {"nodes": ["n0"], "reason": "x", "mode": "boil"}, {"nodes": ["n0"], "reason": "x", "bare": 1},
        {"nodes": ["n0"], "reason": "x", "deadline": "tomorrow"}, {"nodes": ["n0"], "reason": "x", "deadline_in": "-1h"},
        {"nodes": ["n0"], "reason": "x", "deadline_in": "9999999h"}, {"nodes": ["n0"], "reason": "x", "what": 1},
        {"nodes": ["n0"], "reason": "x", "deadline": "9999-12-31T23:59:59-14:00"}, {"nodes": ["n0"], "reason": "a\0"},
        {"nodes": ["n0"], "reason": "\ud800"}, {"nodes": ["\ud800"], "reason": "x"},
        {"nodes": ["n0"], "reason": "x", "\ud800": 1},
        {"nodes": ["n0"], "reason": "x", "deadline_in": "8785h"},
        {"nodes": ["n0"], "reason": "x" * 501}, {"nodes": ["n\u0000"], "reason": "x"}, {"nodes": ["n0"], "reason": 5},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_understood_is_refused_and_nothing_is_begun(site, boss, client: Client, body):
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    answer = client.post("/api/v1/drains", body, content_type="application/json")
    assert answer.status_code in (400, 404), answer.content
    assert answer.json()["detail"]
    assert not Drain.objects.exists()


def test_a_reason_with_a_nul_character_is_refused_by_the_form(site, boss, client: Client):
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    answer = client.post("/drains/new/", {"node": "n0", "reason": "a\0"})
    assert (answer.status_code, "NUL character" in answer.content.decode()) == (400, True)
    assert not Drain.objects.exists()


def test_when_a_job_that_is_not_placed_at_once_is_likely_to_start_is_foretold(site, boss):
    site.run("train", 2, gpu=8, cpu=1, **policies(("PodEvicted", "RestartJob")))
    found = copy.current()
    with found.pinned() as view:
        made = questions.drain(["n0"]).changes(view)
    assert [change.uid for change in made] == ["", next(iter(view.cache.jobs))]
    answer = questions.answer(found, questions.drain(["n0"]), futures=3, pause=0.0)
    (mine,) = answer.mine
    assert answer.state == "done"
    assert mine.uid == made[1].uid
    assert mine.after is not None
    assert mine.after.p50 > answer.at  # two nodes are needed, and one takes pods


def test_a_drain_is_cancelled_by_its_page(site, boss, make_user, client: Client):
    site.put("a", "n0", by=REPLICA_SET, labels={"app": "db"})
    site.budget("db", 1, app="db")
    drain = site.drain(boss, "n0")
    site.look()
    client.force_login(make_user("user"), "django.contrib.auth.backends.ModelBackend")
    assert b"Cancel, and let" not in client.get(f"/drains/{drain.pk}/").content
    assert client.post(f"/drains/{drain.pk}/", {"do": "uncordon"}).status_code == 403
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    assert b"Cancel, and let" in client.get(f"/drains/{drain.pk}/").content
    assert client.post(f"/drains/{drain.pk}/", {"do": "uncordon"}).status_code == 302
    site.look()
    drain.refresh_from_db()
    assert (drain.state, site.is_cordoned("n0")) == ("cancelled", False)


def test_what_is_left_to_do_after_a_drain_is_asked_of_the_nodes_as_they_are(site, boss, client: Client):
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    drain = site.until_done(site.drain(boss, "n0", "n1"))
    page = client.get(f"/drains/{drain.pk}/").content.decode()
    assert ("2 nodes are cordoned until" in page, page.count("Uncordon n")) == (True, 2)
    client.post("/nodes/n0/actions/uncordon/")
    other = site.drain(boss, "n1", mode="wait")
    site.put("busy", "n1", by=REPLICA_SET)
    site.look(3)
    page = client.get(f"/drains/{drain.pk}/").content.decode()
    assert ("Nobody is left who has to go.</p>" in page, "Uncordon n" in page) == (True, False)
    site.cancel(boss, other)
    site.look()
    page = client.get(f"/drains/{drain.pk}/").content.decode()
    assert ("1 node is cordoned until" in page, "Uncordon n1" in page, "Uncordon n0" in page) == (True, True, False)


def test_a_network_domain_is_drained_from_its_page(site, boss, make_user, client: Client):
    site.cluster.create(HYPER_NODE, domain("rack", 1, ["n0", "n1"]))
    PROJECTIONS[HYPER_NODE].project(Batch(site.cluster.list(HYPER_NODE).items))
    client.force_login(boss, "django.contrib.auth.backends.ModelBackend")
    link = "/drains/new/?node=n0&amp;node=n1"
    assert link in client.get(reverse("topology:domain", args=["rack"])).content.decode()
    client.force_login(make_user("user"), "django.contrib.auth.backends.ModelBackend")
    assert link not in client.get(reverse("topology:domain", args=["rack"])).content.decode()
