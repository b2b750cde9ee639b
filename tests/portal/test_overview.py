"""The overview: its figures are those of the pages that they lead to, and what needs somebody is ranked."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from cluster.models import Node
from jobs.choices import GroupPhase, JobPhase
from portal import figures, happened
from portal.live.topics import OverviewTopic
from portal.models import Cycle, SchedulerConfiguration
from portal.standing import standing
from tests import factories as make
from tests.portal.test_evictions import narrow, two_jobs  # noqa: F401 - fixtures

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client: Client, make_user):
    user = make_user("ada")
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return user


def shown(client: Client, url: str) -> str:
    return client.get(url).content.decode()


def field(html: str, name: str) -> str:
    return re.search(rf'data-field="{name}"[^>]*>([^<]*)<', html)[1]


def test_figures_are_those_of_the_pages_and_of_the_live_channel(client, ada):
    make.fleet()
    make.save(make.many_jobs(60))
    html = shown(client, "/")
    told = figures.headline(ada)
    for name in ("gpus_used", "gpus_free", "jobs_running", "jobs_waiting", "started_hour", "finished_hour", "jobs_failed"):
        assert field(html, name) == str(getattr(told, name)), name
    assert figures.waiting(ada) == (told.jobs_waiting, told.gpus_waiting)
    gpus = shown(client, reverse("cluster:gpus"))
    assert re.search(r'data-count="used">([^<]*)<', gpus)[1] == field(html, "gpus_used")
    assert re.search(r'data-count="free">([^<]*)<', gpus)[1] == field(html, "gpus_free")
    waiting = re.search(r'<div class="l">Waiting jobs</div><div class="v">(\d+)', shown(client, reverse("scheduler")))[1]
    assert waiting == field(html, "jobs_waiting")


def test_throughput_counts_the_last_hour_alone(client, ada):
    for name, minutes in (("a", 10), ("b", 50), ("old", 70)):
        at = make.now() - timedelta(minutes=minutes)
        make.save([make.job(name, phase=JobPhase.COMPLETED, started_at=at - timedelta(minutes=15), finished_at=at)])
    told = figures.headline(ada)
    assert (told.started_hour, told.finished_hour) == (1, 2)


def test_a_wall_has_no_rail_and_the_same_figures(client, ada):
    make.fleet()
    wall, usual = shown(client, "/?wall=1&range=24h"), shown(client, "/?range=24h")
    assert 'class="wall"' in wall
    assert 'class="wall"' not in usual
    assert field(wall, "gpus_free") == field(usual, "gpus_free")
    assert 'href="?range=24h"' in wall


def test_a_silent_scheduler_comes_first_among_what_needs_somebody(client, ada):
    make.save([make.job("flaky", phase=JobPhase.FAILED, finished_at=make.now() - timedelta(minutes=1))])
    Cycle.objects.create(number=1, at=make.now() - timedelta(minutes=5), milliseconds=1.0)
    SchedulerConfiguration.objects.create(pk=1, text="", since=make.now(), faults=[{"line": 3, "message": "no"}])
    html = shown(client, "/")
    titles = re.findall(r"<ul class=\"attn\">.*?</ul>", html, re.DOTALL)[0]
    names = re.findall(r"<b>([^<]*)</b>", titles)
    assert names == [
        "The scheduler has run no cycle for 5 min",
        "A newer configuration of the scheduler is broken",
        "flaky failed",
    ]
    assert reverse("scheduler") in titles
    assert reverse("cockpit:configuration") in titles


def test_of_what_happened_the_newest_is_first(client, ada):
    ended, began = make.now() - timedelta(minutes=1), make.now() - timedelta(minutes=2)
    make.save([
        make.job("done", phase=JobPhase.COMPLETED, started_at=began - timedelta(hours=1), finished_at=ended),
        make.job("begun", phase=JobPhase.RUNNING, created_at=began - timedelta(minutes=3), started_at=began),
    ])  # fmt: skip
    lines = happened.newest(ada, 2)
    assert [(each.name, each.mark) for each in lines] == [("done", "completed"), ("begun", "running")]
    assert lines[1].text == "started after 3 min"


@pytest.mark.usefixtures("two_jobs", "narrow")
def test_nothing_is_told_of_jobs_that_one_may_not_see(client, ada):
    names = {each.name for each in happened.newest(ada, 9)}
    assert "theirs" not in str(names)
    assert "mine" in names
    assert "theirs" not in shown(client, "/")


def test_figures_queues_and_causes_are_of_one_moment(client, ada):
    make.fleet()
    jobs = [
        make.job("a", queue="prod", phase=JobPhase.RUNNING, running=1, gpus=2),
        make.job("b", queue="teaching", phase=JobPhase.RUNNING, running=1, gpus=1),
        make.job("c", queue="prod", gpus=4, verdict=make.verdict()),
        make.job("d", queue="teaching", gpus=8, group_phase=GroupPhase.RUNNING),
    ]
    make.save(jobs)
    node = Node.objects.filter(gpu_count__gte=3).first().name
    for job, gpus in zip(jobs, ([0, 1], [2]), strict=False):
        (pod,) = make.pods(job, 1, phase="Running")
        pod.node, pod.gpus = node, gpus
        pod.save()
    told = standing(ada)
    assert told.figures.gpus_used == 3
    held = {line.queue.name: (line.bar.allocated, line.waiting) for line in told.lines if line.bar.allocated or line.waiting}
    assert held == {"prod": (2000, 1), "teaching": (1000, 1)}
    assert told.figures.jobs_waiting == sum(line.waiting for line in told.lines) == 2
    assert sorted(figures.held_at(told.waits)) == [("node_fit", 1, 4), ("starting", 1, 8)]
    html = shown(client, "/")
    assert sorted(re.findall(r"data-allocated>([^<]*)<", html), reverse=True)[:3] == ["2", "1", "0"]
    assert "Why 2 jobs are pending" in html
    assert "Pods are starting" in html
    extras = OverviewTopic().load(ada, None).extras
    assert extras["lines"] == {line.queue.name: line.live for line in told.lines if any(line.live)}
    assert "Why 2 jobs are pending" in extras["held"]["en"]
    assert "2 个作业为何等待" in extras["held"]["zh-hans"]
    assert extras["held"]["en"].strip() in html


def test_machines_of_which_there_are_none_are_not_called_well(client, ada):
    assert "All machines are well" not in shown(client, "/")
    make.fleet()
    Node.objects.update(ready=True, cordoned=False, gpu_unhealthy=[])
    assert "All machines are well" in shown(client, "/")
