"""Pages over a cluster whose scheduler is another: what it says is quoted, what nobody says is left open."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from cluster.kinds import JOB, NODE, POD_GROUP, QUEUE
from cluster.projection import Batch
from jobs.models import Job
from portal.mirror import PROJECTIONS
from tests.portal import objects as make

pytestmark = pytest.mark.django_db(databases="__all__")
MESSAGE = "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable"


def project(kind: Any, *objects: Any) -> None:
    PROJECTIONS[kind].project(Batch(list(objects)))


def waiting(version: int, *conditions: dict[str, Any], phase: str = "Inqueue") -> dict[str, Any]:
    group = make.pod_group(version=version, phase=phase)
    return {**group, "status": {**group["status"], "conditions": list(conditions)}}


def condition(kind: str, second: int) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "reason": "R",
        "message": MESSAGE,
        "lastTransitionTime": f"2030-01-01T00:00:{second:02d}Z",
    }


@pytest.fixture
def page(settings: Any, make_user: Any) -> Any:
    settings.BASALT_SCHEDULER = False
    client = Client()
    client.force_login(make_user("ada"), "django.contrib.auth.backends.ModelBackend")
    return lambda path: client.get(path).content.decode()


def test_a_job_that_waits_quotes_its_scheduler_and_claims_no_more(page: Any) -> None:
    project(JOB, make.job())
    project(POD_GROUP, waiting(2, condition("Unschedulable", 1)))
    shown = page("/jobs/uid-train/")
    assert f"The scheduler of this job says: {MESSAGE}." in shown
    assert "ba-stages" not in shown
    assert "data-unblock" not in shown
    project(POD_GROUP, waiting(3, condition("Unschedulable", 1), condition("Scheduled", 2), phase="Running"))
    assert Job.objects.get().verdict is None
    assert "The scheduler of this job says" not in page("/jobs/uid-train/")


def test_a_change_of_a_condition_alone_is_news(page: Any) -> None:
    project(JOB, make.job())
    project(POD_GROUP, waiting(2))
    assert Job.objects.get().verdict is None
    project(POD_GROUP, waiting(3, condition("Unschedulable", 1)))
    assert Job.objects.get().verdict["said"] == MESSAGE


def test_our_scheduler_is_not_quoted(page: Any, settings: Any) -> None:
    settings.BASALT_SCHEDULER = True
    project(JOB, make.job())
    project(POD_GROUP, waiting(2, condition("Unschedulable", 1)))
    assert Job.objects.get().verdict is None


def test_of_a_queue_what_its_status_says_is_shown_and_the_rest_left_open(page: Any) -> None:
    allocated = {"cpu": "3", "memory": "2Gi"}
    project(NODE, make.node())
    project(QUEUE, make.queue("root"))
    project(
        QUEUE, {**make.queue("lab", deserved={"cpu": "6"}, parent="root"), "status": {"state": "Open", "allocated": allocated}}
    )
    shown = page("/queues/lab/")
    assert '<div class="v">50<span class="u">%</span></div>' in shown
    for amount in ("Asked", "Admitted"):
        assert amount in shown
    assert shown.count('<td class="num"><span class="ink3">–</span></td>') >= 2
    assert "Another scheduler serves this cluster" in page("/queues/")
    project(QUEUE, {**make.queue("open", parent="root"), "status": {"state": "Open", "allocated": allocated}})
    assert '<div class="v">–</div>' in page("/queues/open/")


def test_the_schedulers_page_says_whose_it_is(page: Any, make_user: Any) -> None:
    client = Client()
    client.force_login(make_user("root", staff=True), "django.contrib.auth.backends.ModelBackend")
    html = client.get("/scheduler/").content.decode()
    assert "Another scheduler than Basalt’s serves this cluster" in html
    assert "Nobody had to give way" not in html, "nobody here knows what the other scheduler did"
    for figure in ("Pods placed", "Pods evicted, 24 h"):
        assert f'{figure}</div><div class="v">–</div><div class="d">another scheduler</div>' in html
