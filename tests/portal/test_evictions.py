"""Evictions on the pages of jobs and queues: both sides, what came free, and no name of whoever must not be known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from cluster.projection import Batch, projected
from jobs.projection import project_jobs, project_pod_groups
from portal import evictions
from portal.decisions import Sink
from portal.live.topics import JobTopic
from portal.models import Eviction
from portal.policy import StaffPolicy
from queues.projection import project as project_queues
from scheduler.framework.record import CycleRecord, EvictionRecord
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db]

AT = 1_767_323_045.0


class Own(StaffPolicy):
    """Members see no jobs but those called `mine`, and no bare pods."""

    def visible(self, user, queryset):
        found = super().visible(user, queryset)
        if user.is_staff or queryset.model.__name__ not in ("Job", "PodGroup"):
            return found
        return found.filter(name__startswith="mine")

    def rights(self, user):
        return f"{super().rights(user)}-{user.is_staff}"


@pytest.fixture
def narrow(settings):
    settings.BASALT_POLICY = "tests.portal.test_evictions.Own"


@pytest.fixture
def two_jobs():
    """`theirs` was preempted for `mine`, then a pod of `mine` was reclaimed for a bare pod."""
    project_queues(Batch([make.queue("default"), make.queue("lab"), make.queue("idle")]))
    for name in ("mine", "theirs"):
        project_jobs(Batch([make.job(name)]))
        project_pod_groups(Batch([make.pod_group(f"{name}-uid-{name}", owner=f"uid-{name}")]))
    bare = make.pod_group("lone")
    bare["metadata"].pop("ownerReferences")
    project_pod_groups(Batch([bare]))
    give(eviction("theirs-w-0", "theirs", "default/mine-uid-mine", "mine-w-0"))
    reclaimed = eviction("mine-w-1", "mine", "default/lone", "lone", action="reclaim", rule="gang+proportion", taker_queue="lab")
    give(reclaimed, number=2)


def eviction(pod, job, preemptor, by, *, action="preempt", rule="priority+conformance", taker_queue="default"):
    return EvictionRecord(
        f"default/{pod}", f"pod-{pod}", f"default/{job}-uid-{job}", "default", "gpu-01", action, rule,
        f"preempted: default/{by} needs its room", preemptor=preemptor, preemptor_pod=f"default/{by}",
        preemptor_queue=taker_queue, freed={"cpu": 4000, "nvidia.com/gpu": 2000, "memory": 8 << 30, "pods": 1}, proved=True,
    )  # fmt: skip


def give(*records, number=1, sink=None):
    sink = sink or Sink()
    sink(CycleRecord(number, AT + number, evicted=len(records), evictions=list(records)))
    sink.write()


def page(client: Client, user, view: str, *args: str) -> str:
    client.force_login(user)
    response = client.get(reverse(view, args=args))
    assert response.status_code == 200
    return response.content.decode()


def section(html: str) -> str:
    return html.partition('aria-labelledby="h-evictions"')[2].partition("</section>")[0]


def test_a_job_shows_who_left_for_it_and_who_of_it_had_to_leave(client, make_user, two_jobs):
    shown = section(page(client, make_user(), "jobs:detail", "uid-mine"))
    left, _, had = shown.partition("Had to leave")
    for words in (
        "theirs",
        "theirs-w-0",
        "Preempted",
        "lower priority, not critical",
        "2 GPUs · 4 CPUs · 8 GiB of memory",
        "gpu-01",
    ):
        assert words in left
    assert reverse("jobs:detail", args=["uid-theirs"]) in left
    for words in (
        "mine-w-1",
        "default/lone",
        "Reclaimed",
        "beyond its gang&#x27;s minimum, beyond what its queue deserves",
        "lab",
    ):
        assert words in had


def test_a_job_without_evictions_shows_none(client, make_user):
    project_jobs(Batch([make.job("quiet")]))
    assert "h-evictions" not in page(client, make_user(), "jobs:detail", "uid-quiet")


def test_whoever_may_not_see_the_other_job_sees_other(client, make_user, two_jobs, narrow):
    shown = section(page(client, make_user(), "jobs:detail", "uid-mine"))
    assert shown.count(">other<") == 2
    assert "2 GPUs" in shown
    for name in ("theirs", "lone", "· lab"):
        assert name not in shown
    boss = section(page(client, make_user("boss", staff=True), "jobs:detail", "uid-mine"))
    assert "other" not in boss
    assert "theirs-w-0" in boss


def test_a_queue_shows_what_left_it_and_what_left_for_it(client, make_user, two_jobs):
    user = make_user()
    assert page(client, user, "queues:detail", "default").count("<tr><td><time") >= 2
    lab = page(client, user, "queues:detail", "lab").partition('id="qd-evictions"')[2].partition("</div></div>")[0]
    assert "mine-w-1" in lab
    assert "theirs-w-0" not in lab
    assert "ev-t" not in page(client, user, "queues:detail", "idle")


def test_the_ledger_of_the_api_hides_the_same_names(client, make_user, two_jobs, narrow):
    client.force_login(make_user())
    url = "/api/v1/evictions"
    found = {row["cycle"]: row for row in client.get(url).json()["results"]}
    first, second = found[1], found[2]
    assert (first["victim"], first["victim_job"], first["victim_job_uid"], first["reason"]) == ("other", "", "", "")
    assert (first["preemptor_pod"], first["freed"]["nvidia.com/gpu"]) == ("default/mine-w-0", 2000)
    assert (second["victim"], second["preemptor"], second["preemptor_queue"]) == ("default/mine-w-1", "other", "")
    assert "theirs" not in str(found)
    for query in ({"victim_job_uid": "uid-theirs"}, {"victim_job": "default/theirs-uid-theirs"}, {"preemptor": "default/lone"}):
        assert client.get(url, query).json()["results"] == []
    assert len(client.get(url, {"preemptor_uid": "uid-mine"}).json()["results"]) == 1


def test_staff_find_every_side_by_name(client, make_user, two_jobs, narrow):
    client.force_login(make_user("boss", staff=True))
    for query in ({"victim_job_uid": "uid-theirs"}, {"preemptor": "default/lone"}, {"preemptor_queue": "lab"}):
        (row,) = client.get("/api/v1/evictions", query).json()["results"]
        assert "other" not in row.values()


def test_the_live_channel_carries_the_section_as_its_viewer_may_see_it(make_user, two_jobs, narrow):
    def drawn(user):
        answer = JobTopic("uid-mine").load(user, None)
        (found,) = (part["html"] for part in answer.extras["parts"] if part["uid"] == "evictions")
        return found

    ada, boss = make_user(), make_user("boss", staff=True)
    assert "theirs" not in drawn(ada)["en"]
    assert "theirs" in drawn(boss)["en"]
    assert "驱逐" in drawn(ada)["zh-hans"]


def test_both_jobs_are_told_at_once(two_jobs, django_capture_on_commit_callbacks):
    told = []

    def hear(sender, topic, uids, **more):
        told.append((topic, uids))

    projected.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            give(eviction("theirs-w-1", "theirs", "default/mine-uid-mine", "mine-w-2"), number=3)
    finally:
        projected.disconnect(hear)
    assert ("jobs", frozenset({"uid-mine", "uid-theirs"})) in told


def test_a_gang_that_the_mirror_had_not_shown_yet_gets_its_job_later():
    sink = Sink()
    give(eviction("late-w-0", "late", "", ""), sink=sink)
    assert Eviction.objects.get().victim_job_uid == ""
    project_jobs(Batch([make.job("late")]))
    project_pod_groups(Batch([make.pod_group("late-uid-late", owner="uid-late")]))
    sink(CycleRecord(2, AT + 2))
    sink.write()
    assert Eviction.objects.get().victim_job_uid == "uid-late"


def test_evictions_for_nobody_in_particular_say_so(client, make_user):
    project_jobs(Batch([make.job("moved")]))
    project_pod_groups(Batch([make.pod_group("moved-uid-moved", owner="uid-moved")]))
    give(eviction("moved-w-0", "moved", "", "", action="shuffle", rule="rescheduling"))
    shown = section(page(client, make_user(), "jobs:detail", "uid-moved"))
    for words in ("Moved on", "busy node", "nobody in particular"):
        assert words in shown


def test_only_the_newest_are_drawn_and_their_number_is_said(client, make_user, two_jobs):
    row = Eviction.objects.get(cycle=1)
    Eviction.objects.bulk_create(
        Eviction(**{f.name: getattr(row, f.name) for f in Eviction._meta.fields if f.name not in ("id", "cycle")}, cycle=i)
        for i in range(100, 170)
    )
    shown = section(page(client, make_user(), "jobs:detail", "uid-mine"))
    assert "The newest 50 of 71" in shown


def test_a_section_costs_the_same_queries_for_one_row_as_for_many(make_user, two_jobs, django_assert_num_queries):
    user = make_user()
    with django_assert_num_queries(5):
        evictions.html(user, "uid-mine")
    give(*(eviction(f"theirs-w-{i}", "theirs", "default/mine-uid-mine", "mine-w-0") for i in range(1, 30)), number=4)
    with django_assert_num_queries(5):
        evictions.html(user, "uid-mine")


def test_amounts_and_rules_have_words_in_both_languages():
    units = {"pods": 1, "memory": 1 << 30, "nvidia.com/gpu": 1000, "cpu": 500}
    assert evictions.freed(units) == "1 GPU · 0.5 CPUs · 1 GiB of memory"
    assert evictions.freed({"pods": 1}) == ""
    assert evictions.rule_labels("proportion+capacity+mine") == "beyond what its queue deserves, mine"
    with translation.override("zh-hans"):
        assert evictions.rule_labels("priority") not in ("", "priority", "lower priority")
    assert datetime.fromtimestamp(AT, UTC).year == 2026
