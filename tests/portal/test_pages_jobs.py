"""The pages of jobs, as a browser without scripts sees them."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from cluster import runtime
from cluster.errors import Conflict
from jobs import summary
from jobs.choices import GroupPhase, JobPhase
from jobs.models import Job, PhaseChange, PodGroup, Task
from jobs.pages import views
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def boss(make_user, client: Client):
    """A signed-in cluster admin."""
    user = make_user("boss", staff=True)
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return user


def names(html: str) -> list[str]:
    """The jobs of a list page, in order."""
    return re.findall(r'<td class="c-nm"><a class="name" [^>]*>([^<]*)</a>', html)


def page(client: Client, query: str = "", **headers: str) -> str:
    response = client.get(reverse("jobs:list") + query, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def test_nobody_sees_jobs_without_signing_in(client: Client):
    make.save([make.job("secret")])
    for name in ("jobs:list", "jobs:export"):
        response = client.get(reverse(name))
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("login"))


def test_list_does_not_read_manifests(client: Client, ada, django_assert_max_num_queries):
    make.save(make.many_jobs(3))
    with django_assert_max_num_queries(20) as seen:
        page(client)
    assert not any('"manifest"' in query["sql"] for query in seen.captured_queries)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?state=pending", {"waits"}),
        ("?state=inqueue", {"admitted"}),
        ("?state=pending&state=inqueue", {"waits", "admitted"}),
        ("?state=completed", {"done"}),
        ("?state=aborted", {"stopped"}),
        ("?queue=prod", {"runs"}),
        ("?owner=ivo", {"runs"}),
        ("?namespace=vision", {"done"}),
        ("?model=Tesla-V100", {"done"}),
        ("?stage=node_fit", {"waits"}),
        ("?q=RUN", {"runs"}),
        ("?q=ivo+prod", {"runs"}),
        ("?q=ivo+vision", set()),
        ("?state=running&queue=research-nlp", set()),
    ],
)
def test_list_filters_by(client: Client, ada, query: str, expected: set[str]):
    make.save(
        [
            make.job("waits", verdict=make.verdict()),
            make.job("admitted", group_phase=GroupPhase.INQUEUE),
            make.job("runs", phase=JobPhase.RUNNING, queue="prod", owner="ivo"),
            make.job("done", phase=JobPhase.COMPLETED, namespace="vision", gpu_model="Tesla-V100"),
            make.job("stopped", phase=JobPhase.TERMINATED),
        ]
    )
    assert set(names(page(client, query))) == expected


def test_facets_count_the_other_filters_choices_not_their_own(client: Client, ada):
    make.save(
        [
            *(make.job(f"p{i}", queue="prod") for i in range(3)),
            *(make.job(f"r{i}", queue="prod", phase=JobPhase.RUNNING) for i in range(2)),
            make.job("other", queue="lab"),
        ]
    )
    html = page(client, "?queue=prod&state=pending")
    choice = r'value="([\w-]+)"[^>]*>(?:<span class="ba-st".*?</span>)?<span class="clip".*?<span class="c">(\d+)</span>'
    counts = {match[0]: int(match[1]) for match in re.findall(choice, html)}
    assert counts == {"pending": 3, "running": 2, "prod": 3, "lab": 1, "lena": 3, "default": 3, make.MODELS[0]: 3}
    assert len(names(html)) == 3


@pytest.mark.parametrize("sort", ["name", "-name", "gpus", "-gpus", "since", "created", "-created", "queue", "pods", "state"])
def test_list_sorts_and_ties_stay_put(client: Client, ada, sort: str):
    make.save(make.many_jobs(80))
    first, second = page(client, f"?sort={sort}"), page(client, f"?sort={sort}&page=2")
    found = names(first) + names(second)
    assert len(set(found)) == 80
    column = {"since": "phase_since", "created": "created_at", "pods": "replicas", "state": "phase"}.get(
        sort.lstrip("-"), sort.lstrip("-")
    )
    jobs = {job.name: job for job in Job.objects.all()}
    values = [getattr(jobs[name], column) for name in found]
    assert values == sorted(values, reverse=sort[0] == "-")
    if column in ("queue", "phase"):  # the newest first among equals, both ways round
        for value in set(values):
            made = [jobs[name].created_at for name in found if getattr(jobs[name], column) == value]
            assert made == sorted(made, reverse=True)


def test_wrong_queries_are_said_and_left_out(client: Client, ada):
    make.save([make.job("one")])
    html = page(client, "?state=happy&sort=<b>&stage=nowhere&page=x")
    assert names(html) == ["one"]
    for wrong in ("happy", "&lt;b&gt;", "nowhere", "“x”"):
        assert wrong in html
    assert "<b>”" not in html


def test_a_page_beyond_the_end_leads_back(client: Client, ada):
    make.save([make.job("one")])
    html = page(client, "?page=900")
    assert names(html) == []
    assert "There is no such page" in html


def test_empty_list_offers_to_submit_and_empty_filter_to_clear(client: Client, ada):
    assert "No jobs yet" in page(client)
    make.save([make.job("one")])
    html = page(client, "?q=zzz")
    assert "0 of 1 jobs match" in html
    assert "Clear filters" in html


def test_htmx_gets_the_results_alone_and_its_history_the_whole_page(client: Client, ada):
    make.save([make.job("one")])
    part = page(client, "?state=pending", **{"HX-Request": "true"})
    assert "<html" not in part
    assert 'hx-swap-oob="innerHTML"' in part
    assert "<html" in page(client, **{"HX-Request": "true", "HX-History-Restore-Request": "true"})


def test_deleted_jobs_are_listed_only_when_asked_for(client: Client, ada):
    make.save([make.job("here"), make.job("gone", deleted_at=make.now())])
    assert names(page(client)) == ["here"]
    assert set(names(page(client, "?gone=1"))) == {"here", "gone"}


def test_names_are_escaped(client: Client, ada):
    evil = '"><script>alert(1)</script>'
    make.save(
        [make.job("x", owner=evil, queue=evil, namespace=evil[:40], verdict=make.verdict(queue=evil, code="queue.missing"))]
    )
    uid = Job.objects.get().uid
    for html in (
        page(client),
        client.get(reverse("jobs:detail", args=(uid,))).content.decode(),
        client.get("/").content.decode(),
    ):
        assert "<script>alert" not in html


async def _text(response) -> str:
    return b"".join([part async for part in response.streaming_content]).decode()


@pytest.mark.django_db(transaction=True, databases="__all__")
async def test_export_holds_the_filtered_rows_and_no_formulas(async_client, make_user):
    from asgiref.sync import sync_to_async

    user = await sync_to_async(make_user)("ada")
    rows = [make.job("keep", owner="=cmd()", verdict=make.verdict()), make.job("drop", phase=JobPhase.RUNNING)]
    await sync_to_async(make.save)(rows)
    await async_client.aforce_login(user, "django.contrib.auth.backends.ModelBackend")
    response = await async_client.get(reverse("jobs:export") + "?state=pending")
    assert response["Content-Type"].startswith("text/csv")
    found = list(csv.DictReader(io.StringIO((await _text(response)).removeprefix("\ufeff"))))
    assert [(row["name"], row["owner"], row["why"]) for row in found] == [
        ("keep", "'=cmd()", "5 of 8 pods fit; the next asks 8 H100, the best node has 5")
    ]


def test_job_page_says_why_it_waits_with_its_numbers(client: Client, ada):
    job = make.job("wait", verdict=make.verdict(), replicas=8, min_available=8)
    make.save([job])
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    assert "Needs room for 8 pods at once; 5 fit now." in html
    assert "The best node is short by 3 H100." in html
    for number, label in (("8", "H100 for one pod"), ("5", "free on the best node"), ("3", "short")):
        assert re.search(rf'>{number}</div><div class="l">{label}</div>', html)
    assert html.count('<i class="no">') == 3
    assert "27 of 32 nodes rejected" in html
    assert '<li class="held" aria-current="step">' in html


def test_job_page_costs_the_same_queries_for_one_pod_as_for_many(client: Client, ada, django_assert_num_queries):
    few, many = make.job("few", phase=JobPhase.RUNNING), make.job("many", phase=JobPhase.RUNNING, replicas=500)
    make.save([few, many])
    for job, count in ((few, 1), (many, 500)):
        Task.objects.create(job=job, name="worker", position=0, replicas=count)
        make.save(make.pods(job, count), [make.event(job) for _ in range(count)])
        with django_assert_num_queries(19):
            assert client.get(reverse("jobs:detail", args=(job.uid,))).status_code == 200


def test_timeline_follows_the_phases(client: Client, ada):
    begun = make.now() - timedelta(hours=2)
    end = begun + timedelta(hours=1)
    half = begun + timedelta(minutes=30)
    job = make.job("over", phase=JobPhase.COMPLETED, created_at=begun, started_at=half, phase_since=end, finished_at=end)
    steps = (("Pending", "", 0), ("Pending", "Inqueue", 15), ("Running", "Running", 30), ("Completed", "Running", 60))
    changes = [PhaseChange(job_uid=job.uid, phase=p, group_phase=g, at=begun + timedelta(minutes=m)) for p, g, m in steps]
    make.save([job], changes)
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    bars = re.findall(r'<i class="tl-bar" data-st="(\w+)".*?style="left:([\d.]+)%;width:([\d.]+)%" title="([^"]*)"', html)
    assert bars == [
        ("pending", "0", "25", "Pending 15 min"),
        ("inqueue", "25", "25", "Inqueue 15 min"),
        ("running", "50", "50", "Running 30 min"),
        ("completed", "100", "0", "Completed 0 s"),
    ]


@pytest.mark.parametrize("tab", ["pods", "events", "yaml"])
def test_tabs_work_without_scripts(client: Client, ada, tab: str):
    job = make.job("one", phase=JobPhase.RUNNING)
    make.save([job], make.pods(job, 2), [make.event(job, "Started", "<i>hello</i>")])
    html = client.get(reverse("jobs:detail", args=(job.uid,)) + f"?tab={tab}").content.decode()
    wanted = {
        "pods": "one-worker-1",
        "events": "&lt;i&gt;hello&lt;/i&gt;",
        "yaml": '<span class="k">minAvailable</span>: <span class="n">2</span>',
    }
    assert wanted[tab] in html


def test_a_deleted_job_keeps_its_page_and_loses_its_actions(client: Client, boss):
    job = make.job("gone", phase=JobPhase.RUNNING, deleted_at=make.now())
    make.save([job], make.pods(job, 1, deleted_at=make.now()))
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    assert "gone from the cluster" in html
    assert "/actions/" not in html


def test_by_name_leads_to_the_newest(client: Client, ada):
    old = make.job("twice", created_at=make.now() - timedelta(days=2), deleted_at=make.now())
    new = make.job("twice")
    make.save([old, new])
    response = client.get(reverse("jobs:by_name", args=("default", "twice")))
    assert response["Location"] == reverse("jobs:detail", args=(new.uid,))
    assert client.get(reverse("jobs:by_name", args=("default", "never"))).status_code == 404


def test_unknown_jobs_and_actions_are_not_found(client: Client, boss):
    make.save([job := make.job("one")])
    assert client.get(reverse("jobs:detail", args=("nothing",))).status_code == 404
    assert client.get(reverse("jobs:action", args=(job.uid, "explode"))).status_code == 404


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (JobPhase.RUNNING, {"suspend", "restart", "complete", "terminate", "delete"}),
        (JobPhase.ABORTED, {"resume", "delete"}),
        (JobPhase.COMPLETED, {"delete"}),
    ],
)
def test_actions_follow_the_phase(client: Client, boss, phase: JobPhase, expected: set[str]):
    make.save([job := make.job("one", phase=phase)])
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    shown = set(re.findall(r'actions/(\w+)/" data-phases="[^"]*">', html))
    assert shown == expected


def test_only_owner_and_staff_may_act(client: Client, ada):
    make.save([mine := make.job("mine", owner="ada"), other := make.job("other", owner="ivo")])
    assert "/actions/" not in client.get(reverse("jobs:detail", args=(other.uid,))).content.decode()
    assert client.post(reverse("jobs:action", args=(other.uid, "suspend"))).status_code == 403
    assert "/actions/suspend/" in client.get(reverse("jobs:detail", args=(mine.uid,))).content.decode()


def test_acting_asks_the_cluster_for_this_very_job(client: Client, ada, monkeypatch):
    make.save([job := make.job("mine", owner="ada", phase=JobPhase.RUNNING)])
    asked = []
    monkeypatch.setattr(runtime, "current", lambda: "the cluster")
    monkeypatch.setattr(views.operations, "act", lambda *args, **named: asked.append((*args, named)))
    response = client.post(reverse("jobs:action", args=(job.uid, "suspend")), follow=True)
    assert asked == [("the cluster", "default", "mine", "suspend", {"uid": job.uid, "user": "ada"})]
    assert "mine was asked to suspend." in response.content.decode()


def test_what_ends_something_asks_first_without_a_script(client: Client, ada, monkeypatch):
    make.save([job := make.job("mine", owner="ada", phase=JobPhase.RUNNING)])
    url = reverse("jobs:action", args=(job.uid, "delete"))
    deleted = []
    monkeypatch.setattr(runtime, "current", lambda: "the cluster")
    monkeypatch.setattr(views.operations, "delete", lambda *args, **named: deleted.append((*args, named)))
    html = client.get(url).content.decode()
    assert 'name="csrfmiddlewaretoken"' in html
    assert not deleted
    assert client.post(url)["Location"] == reverse("jobs:list")
    assert deleted == [("the cluster", "default", "mine", {"uid": job.uid})]


def test_what_the_cluster_refuses_is_said(client: Client, ada, monkeypatch):
    make.save([job := make.job("mine", owner="ada", phase=JobPhase.RUNNING)])

    def refuse(*args, **named):
        raise Conflict("it changed meanwhile")

    monkeypatch.setattr(runtime, "current", lambda: "the cluster")
    monkeypatch.setattr(views.operations, "act", refuse)
    html = client.post(reverse("jobs:action", args=(job.uid, "suspend")), follow=True).content.decode()
    assert "it changed meanwhile" in html


def test_an_action_out_of_season_changes_nothing(client: Client, ada, monkeypatch):
    make.save([job := make.job("mine", owner="ada", phase=JobPhase.COMPLETED)])
    monkeypatch.setattr(views.operations, "act", lambda *args, **named: pytest.fail("the cluster was asked"))
    html = client.post(reverse("jobs:action", args=(job.uid, "suspend")), follow=True).content.decode()
    assert "not possible" in html


def test_forms_without_a_token_are_refused(make_user):
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("boss", staff=True), "django.contrib.auth.backends.ModelBackend")
    make.save([job := make.job("one", phase=JobPhase.RUNNING)])
    response = client.post(reverse("jobs:action", args=(job.uid, "suspend")))
    assert response.status_code == 403
    assert "This form has expired" in response.content.decode()


def test_gang_conditions_are_shown(client: Client, ada):
    make.save([job := make.job("one")])
    condition = {"type": "Unschedulable", "reason": "NotEnoughResources", "message": "<3/8>", "lastTransitionTime": "not a time"}
    PodGroup.objects.create(
        uid="g", name="one-g", namespace="default", resource_version=1, created_at=job.created_at, job_uid=job.uid,
        queue=job.queue, conditions=[condition],
    )  # fmt: skip
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    assert "NotEnoughResources" in html
    assert "&lt;3/8&gt;" in html
    assert "not a time" in html


def test_a_finished_job_says_how_long_it_ran_and_when_it_ended(client: Client, ada):
    end = make.now() - timedelta(minutes=5)
    job = make.job("done", phase=JobPhase.COMPLETED, started_at=end - timedelta(seconds=12), phase_since=end, finished_at=end)
    make.save([job])
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    assert re.search(r"ran <span>12 s</span>, ended <time [^>]*data-since>5 min</time> ago", html)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"failed": 1, "retry_count": 1, "max_retry": 1}, "1 pod failed in its only run"),
        ({"failed": 2, "retry_count": 3, "max_retry": 3}, "2 pods failed in the last of 3 runs"),
        ({"failed": 2, "retry_count": 0}, "2 pods failed"),
        ({"failed": 0, "retry_count": 3, "max_retry": 3}, "Given up after 3 runs"),
    ],
)
def test_a_failed_job_says_what_happened(changes: dict, said: str):
    assert summary.line(make.job("bad", phase=JobPhase.FAILED, **changes)) == said
