"""The grid of a job's pods: each with its node, and of very many how many are in which state."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from jobs.choices import JobPhase
from jobs.models import Task
from jobs.pages.podgrid import is_large, overview
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")


def test_pod_grid_names_nodes_of_few_pods_and_stays_small_for_thousands(client: Client, ada):
    few, many = make.job("few", phase=JobPhase.RUNNING), make.job("many", phase=JobPhase.RUNNING, replicas=2000)
    make.save([few, many])
    Task.objects.create(job=few, name="worker", position=0, replicas=3)
    Task.objects.create(job=many, name="worker", position=0, replicas=2000)
    make.save(make.pods(few, 2), make.pods(many, 2000))
    html = client.get(reverse("jobs:detail", args=(few.uid,))).content.decode()
    assert html.count('data-node><a class="ink2" href="/nodes/n-00') == 2
    assert html.count("data-node>no node") == 1
    html = client.get(reverse("jobs:detail", args=(many.uid,))).content.decode()
    assert html.count('data-st="running" data-index=') == 2000
    assert len(html) < 500_000


def test_absurd_replicas_do_not_make_an_absurd_page(client: Client, ada):
    job = make.job("huge", replicas=2_000_000_000)
    make.save([job])
    Task.objects.create(job=job, name="worker", position=0, replicas=2_000_000_000)
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    assert len(html) < 100_000
    assert "2,000,000,000 Pending (one mark for 20,000,000 pods)" in html


def test_a_large_jobs_page_says_how_many_pods_are_in_which_state(client: Client, ada, django_assert_max_num_queries):
    job = make.job("vast", replicas=50_000)
    make.save([job])
    task = Task.objects.create(job=job, name="worker", position=0, replicas=50_000, min_available=50_000)
    task.counts = {"Succeeded": 20_000, "Failed": 3, "Running": 20_000, "Odd": 1}
    task.save()
    [row] = overview([task])
    assert [(s.phase, s.pods, s.marks) for s in row.stretches] == [
        ("Failed", 3, 1), ("Unknown", 1, 1), ("Succeeded", 20_000, 40), ("Running", 20_000, 40), ("Pending", 9_996, 20),
    ]  # fmt: skip
    assert row.each == 500
    with django_assert_max_num_queries(20):
        page = client.get(f"/jobs/{job.uid}/").content.decode()
    assert 'data-part="grid"' in page
    assert page.count('<i data-st="running"') == 40
    assert "3 Failed · 1 Unknown · 20,000 Succeeded · 20,000 Running · 9,996 Pending (one mark for 500 pods)" in page


@pytest.mark.parametrize("pods", [0, 2_000, 2_001])
def test_a_job_is_drawn_pod_by_pod_up_to_two_thousand(pods):
    assert is_large([Task(replicas=pods), Task(replicas=0, counts={})]) is (pods > 2_000)
