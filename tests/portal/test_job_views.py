"""Grouping, labels, columns, exports and saved views of the job list."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from cluster.projection import Batch
from jobs.choices import JobPhase
from jobs.models import JobLabel, ListColumns, SavedView
from jobs.pages.asked import Filter, labelled
from jobs.pages.columns import COLUMNS, USUAL
from jobs.projection import project_jobs
from tests import factories as make
from tests.portal import objects

pytestmark = pytest.mark.django_db(databases="__all__")
LIST = "/jobs/"


def page(client: Client, query: str = "") -> str:
    response = client.get(LIST + query)
    assert response.status_code == 200, response
    return response.content.decode()


def names(html: str) -> list[str]:
    return re.findall(r'<td class="c-nm"><a class="name" [^>]*>([^<]*)</a>', html)


def cells(html: str) -> list[list[str]]:
    """The table's rows as texts."""
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)
    ]


def heads(html: str) -> list[str]:
    head = html.partition("<thead>")[2].partition("</thead>")[0]
    return [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in re.findall(r"<th[^>]*>(.*?)</th>", head, re.S)]


def test_groups_add_up_jobs_pods_and_gpus(client: Client, ada):
    make.save(
        [
            make.job("a", queue="prod", phase=JobPhase.RUNNING, running=2, replicas=2, gpus=16),
            make.job("b", queue="prod", phase=JobPhase.COMPLETED, succeeded=3, replicas=4, gpus=8),
            make.job("c", queue="lab", replicas=5, gpus=1),
        ]
    )
    html = page(client, "?group=queue")
    assert heads(html) == ["Queue", "Jobs", "States", "Pods", "GPUs asked", "of running jobs"]
    assert cells(html) == [
        ["prod", "2", "1 Running 1 Completed", "5 /6", "24", "16"],
        ["lab", "1", "1 Pending", "0 /5", "1", "0"],
    ]
    assert [row[0] for row in cells(page(client, "?group=queue&sort=gpus"))] == ["lab", "prod"]
    assert [row[0] for row in cells(page(client, "?group=state&sort=name"))] == ["Completed", "Pending", "Running"]
    assert [row[0] for row in cells(page(client, "?group=queue&state=pending"))] == ["lab"]


@pytest.mark.parametrize("group", ["state", "queue", "owner", "namespace", "model"])
def test_a_group_leads_to_exactly_its_jobs(client: Client, ada, group: str):
    make.save(make.many_jobs(60))
    html = page(client, f"?group={group}&q=a")
    links = re.findall(r'<a class="name" href="([^"]+)" data-open', html)
    sizes = [int(row[1]) for row in cells(html)]
    assert len(links) == len(sizes) > 1
    for link, size in zip(links, sizes, strict=True):
        shown = page(client, link.replace("&amp;", "&"))
        assert f"{size} job" in shown.partition('role="status">')[2][:20]
        assert "group=" not in link


def test_groups_cost_one_statement_whatever_their_number(client: Client, ada, django_assert_num_queries):
    from jobs.models import Job
    from jobs.pages import queries

    make.save(make.many_jobs(200))
    from django.http import QueryDict

    with django_assert_num_queries(1):
        assert len(queries.groups(Job.objects.all(), Filter.of(QueryDict("group=queue")), ())) == 7


LABELS = {"web": {"app": "web", "tier": "a"}, "db": {"app": "db", "tier": "b", "example.com/old": "1"}, "bare": {}}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", {"web"}),
        ("app==web", {"web"}),
        ("app!=web", {"db", "bare"}),
        ("app", {"web", "db"}),
        ("!app", {"bare"}),
        ("app in (web, db),tier=b", {"db"}),
        ("tier notin (a)", {"db", "bare"}),
        ("example.com/old=1", {"db"}),
        ("app=nothing", set()),
    ],
)
def test_labels_narrow_the_list(client: Client, ada, selector: str, expected: set[str]):
    for name, labels in LABELS.items():
        project_jobs(Batch([objects.job(name, labels=labels)]))
    assert set(names(page(client, "?" + "label=" + selector.replace(" ", "+").replace("=", "%3D")))) == expected


def test_labels_follow_the_object(client: Client, ada):
    obj = objects.job("web", labels={"app": "web", "tier": "a"})
    project_jobs(Batch([obj]))
    assert sorted(JobLabel.objects.values_list("key", "value")) == [("app", "web"), ("tier", "a")]
    obj["metadata"] |= {"labels": {"app": "api"}, "resourceVersion": str(int(obj["metadata"]["resourceVersion"]) + 1)}
    project_jobs(Batch([obj]))
    assert sorted(JobLabel.objects.values_list("key", "value")) == [("app", "api")]


@pytest.mark.parametrize("wrong", ["a=b=c", "(", "x>3", "a,,b", "-bad=1"])
def test_a_selector_that_cannot_be_read_is_said_and_left_out(client: Client, ada, wrong: str):
    make.save([make.job("one")])
    html = client.get(LIST, {"label": wrong}).content.decode()
    assert names(html) == ["one"]
    assert "is no selector" in html


def test_labels_agree_with_the_selectors_own_rule():
    from cluster.selectors import parse_selector
    from jobs.models import Job

    for name, labels in LABELS.items():
        project_jobs(Batch([objects.job(name, labels=labels)]))
    for text in ("app", "!app", "app=web", "app!=web", "tier in (a,b)", "tier notin (b)", "app,!example.com/old"):
        selector = parse_selector(text)
        said = {name for name, labels in LABELS.items() if selector.matches(labels)}
        assert set(labelled(Job.objects.all(), selector).values_list("name", flat=True)) == said, text


def test_columns_are_kept_for_each_user(client: Client, ada, make_user):
    make.save([make.job("one")])
    assert heads(page(client))[1:] == [
        "State",
        "Job",
        "Queue, owner",
        "Pods, min",
        "GPUs",
        "In state",
        "Why, or what next",
        "Start P50 – P90",
        "Submitted",
    ]
    client.post(reverse("jobs:columns"), {"columns": ["cpu", "state", "nonsense"], "query": "state=pending&columns=name"})
    assert heads(page(client))[1:] == ["State", "Job", "CPU"]
    assert heads(page(client, "?columns=memory"))[1:] == ["Job", "Memory"]
    other = Client()
    other.force_login(make_user("bo"), "django.contrib.auth.backends.ModelBackend")
    assert len(heads(page(other))) == len(USUAL) + 1
    client.post(reverse("jobs:columns"), {"do": "usual"})
    assert not ListColumns.objects.exists()


def test_every_column_can_be_shown(client: Client, ada):
    make.save([make.job("one", labels={"a": "b"}, priority_class="high")])
    html = page(client, "?columns=" + ",".join(COLUMNS))
    assert len(cells(html)[0]) == len(heads(html)) == len(COLUMNS) + 1
    assert "“x”" in page(client, "?columns=x")


async def _body(response) -> str:
    return b"".join([part async for part in response.streaming_content]).decode()


@pytest.mark.django_db(transaction=True, databases="__all__")
async def test_exports_have_the_lists_filter_and_columns(async_client, make_user):
    from asgiref.sync import sync_to_async

    user = await sync_to_async(make_user)("ada")
    rows = [make.job("keep", labels={"app": "web"}, gpus=8), make.job("drop", phase=JobPhase.RUNNING)]
    await sync_to_async(make.save)(rows)
    await async_client.aforce_login(user, "django.contrib.auth.backends.ModelBackend")
    query = "?state=pending&columns=gpus,labels"
    as_json = json.loads(await _body(await async_client.get(reverse("jobs:export_json") + query)))
    assert as_json == [{"uid": rows[0].uid, "name": "keep", "labels": {"app": "web"}, "gpus": 8, "gpu_model": make.MODELS[0]}]
    text = (await _body(await async_client.get(reverse("jobs:export") + query))).removeprefix("\ufeff")
    found = list(csv.DictReader(io.StringIO(text)))
    assert [(row["name"], row["labels"], row["gpus"]) for row in found] == [("keep", "app=web", "8")]
    assert json.loads(await _body(await async_client.get(reverse("jobs:export_json") + "?q=nothing"))) == []
    groups = json.loads(await _body(await async_client.get(reverse("jobs:export_json") + "?group=state")))
    assert [(row["state"], row["jobs"]) for row in groups] == [("pending", 1), ("running", 1)]
    every = json.loads(await _body(await async_client.get(reverse("jobs:export_json") + "?columns=all")))
    assert set(every[0]) == {"uid"} | {field for column in COLUMNS.values() for field in column.fields}


def test_a_view_is_kept_shared_changed_and_dropped(client: Client, ada, make_user):
    make.save([make.job("waits"), make.job("runs", phase=JobPhase.RUNNING)])
    client.post(reverse("jobs:views"), {"name": " My  runs ", "query": "state=running&page=3&sort=name", "is_shared": "1"})
    view = SavedView.objects.get()
    assert (view.name, view.query, view.is_shared, view.default_for) == ("My runs", "sort=name&state=running", True, "")
    bo = Client()
    bo.force_login(make_user("bo"), "django.contrib.auth.backends.ModelBackend")
    assert names(bo.get(reverse("jobs:view", args=[view.pk]), follow=True).content.decode()) == ["runs"]
    assert bo.post(reverse("jobs:view", args=[view.pk]), {"do": "drop"}).status_code == 403
    html = page(client, f"?state=pending&view={view.pk}")
    assert "Keep the changes in My runs" in html
    client.post(reverse("jobs:view", args=[view.pk]), {"query": f"state=pending&view={view.pk}"})
    assert SavedView.objects.get().query == "state=pending"
    client.post(reverse("jobs:view", args=[view.pk]), {"name": "My runs", "from": "views"})
    assert bo.get(reverse("jobs:view", args=[view.pk])).status_code == 404
    client.post(reverse("jobs:view", args=[view.pk]), {"do": "drop"})
    assert not SavedView.objects.exists()


def test_names_of_views_are_asked_for_and_unique_for_each_user(client: Client, ada):
    for name in ("one", "one", "  "):
        client.post(reverse("jobs:views"), {"name": name, "query": "q=a"})
    assert list(SavedView.objects.values_list("name", flat=True)) == ["one"]


def test_administrators_set_what_a_role_sees_first(client: Client, ada, make_user):
    make.save([make.job("waits"), make.job("runs", phase=JobPhase.RUNNING), make.job("done", phase=JobPhase.COMPLETED)])
    client.post(reverse("jobs:views"), {"name": "mine", "query": "state=running", "default_for": "user"})
    assert SavedView.objects.get().default_for == ""
    boss = Client()
    boss.force_login(make_user("boss", staff=True), "django.contrib.auth.backends.ModelBackend")
    boss.post(reverse("jobs:views"), {"name": "live", "query": "state=running", "default_for": "user"})
    assert names(client.get(LIST, follow=True).content.decode()) == ["runs"]
    assert names(boss.get(LIST, follow=True).content.decode()) == ["runs"]
    boss.post(reverse("jobs:views"), {"name": "ended", "query": "state=completed", "default_for": "staff"})
    assert names(boss.get(LIST, follow=True).content.decode()) == ["done"]
    assert names(client.get(LIST, follow=True).content.decode()) == ["runs"]
    assert len(names(page(client, "?view=all"))) == 3
    boss.post(reverse("jobs:views"), {"name": "other", "query": "state=pending", "default_for": "user"})
    assert dict(SavedView.objects.exclude(default_for="").values_list("default_for", "name")) == {
        "staff": "ended",
        "user": "other",
    }
    assert SavedView.objects.get(name="other").is_shared


def test_a_forms_query_leads_to_this_list_only(client: Client, ada):
    for query in ("//evil.example/", "\nhttps://evil.example/", "a=b#//evil"):
        answer = client.post(reverse("jobs:columns"), {"columns": ["cpu"], "query": query})
        assert answer.status_code == 302
        assert answer["Location"].startswith("/jobs/")


def test_of_very_many_choices_the_most_frequent_are_offered_and_the_rest_counted(client: Client, ada):
    make.save([make.job(f"job-{n}", queue=f"queue-{n:02}") for n in range(60)])
    html = page(client, "?queue=queue-59")
    facet = html.partition("<legend>Queue</legend>")[2].partition("</fieldset>")[0]
    offered = re.findall(r'name="queue" value="([^"]+)"', facet)
    assert len(offered) == 48
    assert offered[0] == "queue-59"  # what is chosen is never left out
    assert "and 12 more: type a name above the list" in facet
