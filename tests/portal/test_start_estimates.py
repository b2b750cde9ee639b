"""When waiting jobs start: worked out over the copy of a real cluster, kept, and shown in REST and on the page."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from cluster import runtime
from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from cluster.models import Node
from cluster.projection import Batch
from jobs.models import Job, Pod
from jobs.pages import timeline
from jobs.pages.axis import OUTLOOK, Bar
from jobs.pages.facts import gather
from jobs.starts import Start, ahead
from portal.mirror import PROJECTIONS
from portal.models import StartEstimate
from portal.outlook import freshness, ground
from portal.simulations import estimates, present
from portal.unblock import copy
from scheduler import conf
from scheduler.framework.explain import Code
from tests import factories
from tests.portal.pages import streamed
from tests.portal.unblock.test_trial import DEPLOYED
from tests.portal.unblock.world import Stage, manifest

NEVER = {"code": Code.POD_TOO_LARGE, "stage": "node-fit", "resource": "nvidia.com/gpu", "asked": 64, "capacity": 8}
pytestmark = pytest.mark.django_db(databases="__all__")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, make_user: Any) -> Any:
    """One job holds a cluster of one node with 8 GPUs, the next waits for it, a third can never start."""
    from portal.scenario import objects as make

    made = Stage(nodes=[{"name": "n0", "cpu": 64, "memory": "256Gi", "gpu": 8}], setup=DEPLOYED)
    runtime.use(made.cluster)
    loaded = conf.load(make.configuration(DEPLOYED))
    monkeypatch.setattr(copy, "conf_in_force", lambda: loaded)
    freshness.forget()
    for name, gpus in (("first", 8), ("next", 8), ("huge", 64)):
        made.submit(manifest(name, 1, cpu=4, gpu=gpus))
        made.rest()
    for kind in (QUEUE, NODE, JOB, POD_GROUP, POD):
        PROJECTIONS[kind].project(Batch(made.cluster.list(kind).items))
    yield made
    runtime.use(None)


def test_the_next_in_line_is_foretold_and_who_never_starts_is_not(stage: Stage) -> None:
    assert estimates.refresh(futures=5, pause=0) == 1
    row = StartEstimate.objects.get()
    job = Job.objects.get(name="next")
    assert row.job_uid == job.uid
    assert (row.samples, row.rank) == (5, row.rank)
    assert row.at <= row.p50 <= row.p90


def test_what_is_simulated_leaves_the_cluster_and_the_copy_as_they_were(stage: Stage) -> None:
    before = [stage.cluster.list(kind).items for kind in (JOB, POD, POD_GROUP)]
    seen = stage.view(lambda view: present.objects_now(view))
    estimates.refresh(futures=2, pause=0)
    assert [stage.cluster.list(kind).items for kind in (JOB, POD, POD_GROUP)] == before
    assert stage.view(lambda view: present.objects_now(view)) == seen


def test_an_estimate_is_answered_and_shown(stage: Stage, make_user: Any) -> None:
    client = Client()
    client.force_login(make_user("ann"), "django.contrib.auth.backends.ModelBackend")
    job = Job.objects.get(name="next")
    assert client.get(f"/api/v1/jobs/{job.uid}/start-estimate").json()["state"] == "none"  # no process works here
    estimates.refresh(futures=3, pause=0)
    answer = client.get(f"/api/v1/jobs/default/{job.name}/start-estimate").json()
    assert (answer["state"], answer["futures"], answer["uid"]) == ("done", 3, job.uid)
    assert "Likely start" in client.get(f"/jobs/{job.uid}/unblock/").content.decode()
    running = Job.objects.get(name="first")
    assert client.get(f"/api/v1/jobs/{running.uid}/start-estimate").json()["state"] == "none"


def test_an_estimate_that_time_has_proved_wrong_is_not_shown(stage: Stage) -> None:
    estimates.refresh(futures=2, pause=0)
    job = Job.objects.get(name="next")
    now = runtime.now()
    StartEstimate.objects.update(p50=now - timedelta(minutes=5), p90=now + timedelta(minutes=5))
    start = estimates.of(job).start
    assert start.is_due
    assert start.p50 >= now  # what has passed is not ahead: at any moment, then
    assert start.p90 == now + timedelta(minutes=5)
    StartEstimate.objects.update(p90=now - timedelta(minutes=1))
    assert estimates.of(job).row is None
    StartEstimate.objects.update(p90=None)
    assert estimates.of(job).row is None
    StartEstimate.objects.update(p50=None)
    assert estimates.of(job).start == Start(None, None)


def test_an_old_estimate_is_marked_and_then_withdrawn(stage: Stage) -> None:
    estimates.refresh(futures=2, pause=0)
    job, now = Job.objects.get(name="next"), runtime.now()
    StartEstimate.objects.update(p50=None, p90=None, at=now - timedelta(minutes=9))
    assert estimates.of(job).start == Start(None, None)
    StartEstimate.objects.update(at=now - timedelta(minutes=11))
    assert estimates.of(job).start == Start(None, None, is_old=True)
    assert estimates.starts([job.uid]) == {job.uid: Start(None, None, is_old=True)}
    StartEstimate.objects.update(at=now - timedelta(minutes=61))
    assert estimates.of(job).start is None
    assert estimates.starts([job.uid]) == {}


@pytest.mark.parametrize(("jobs", "gpus", "is_old"), [(5, 8, False), (6, 8, True), (0, 7, True)])
def test_an_estimate_of_a_cluster_that_has_changed_much_is_old(stage: Stage, jobs: int, gpus: int, is_old: bool) -> None:
    estimates.refresh(futures=2, pause=0)
    job, row = Job.objects.get(name="next"), StartEstimate.objects.get()
    StartEstimate.objects.update(p50=None, p90=None)
    for number in range(jobs):
        factories.job(f"new-{number}", created_at=row.at + timedelta(seconds=1)).save()
    Node.objects.update(gpu_count=gpus)
    freshness.forget()
    assert estimates.of(job).start == Start(None, None, is_old=is_old)


@given(st.none() | st.integers(-7200, 7200), st.none() | st.integers(-7200, 7200))
def test_no_start_is_foretold_before_now(first: int | None, second: int | None) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    p50, p90 = (now + timedelta(seconds=each) if each is not None else None for each in (first, second))
    start = ahead(p50, p90, now)
    if start is not None:
        assert all(each is None or each >= now for each in (start.p50, start.p90))
        assert start.is_due == (p50 is not None and p50 < now)
    else:
        assert any(each is not None and each < now for each in (p50, p90))


def test_a_second_look_keeps_what_was_said_first(stage: Stage) -> None:
    estimates.refresh(futures=2, pause=0)
    StartEstimate.objects.update(first_at=F("at") - timedelta(hours=1), first_raw=7.0)
    stage.world.clock.advance(30)
    estimates.refresh(futures=2, pause=0)
    row = StartEstimate.objects.get()
    assert row.first_raw == 7.0
    assert row.at - row.first_at > timedelta(minutes=59)


def test_a_list_says_when_waiting_jobs_start_and_never_of_those_that_cannot(stage: Stage, make_user: Any) -> None:
    client = Client()
    client.force_login(make_user("ann"), "django.contrib.auth.backends.ModelBackend")
    estimates.refresh(futures=2, pause=0)
    Job.objects.filter(name="huge").update(verdict=NEVER)
    now = (runtime.now() + timedelta(days=1)).replace(hour=12, minute=0)
    StartEstimate.objects.update(p50=now + timedelta(hours=1), p90=now + timedelta(hours=2, minutes=30))
    page = client.get("/jobs/?view=all", headers={"accept-language": "en"}).content.decode()
    cells = re.findall(r'data-as="start">(.*?)</td>', page)
    assert sorted(re.sub("<[^>]+>", "", cell) for cell in cells) == ["", f"{now:%m-%d} 13:00 – {now:%m-%d} 14:30", "never"]
    exported = streamed(client.get("/jobs/export.json"))
    with_starts = {row["name"]: (row["start_p50"], row["start_p90"]) for row in json.loads(exported)}
    row = StartEstimate.objects.get()
    assert with_starts == {
        "first": (None, None),
        "next": (row.p50.isoformat(), row.p90.isoformat()),
        "huge": (None, None),
    }


def test_a_timeline_reaches_to_what_is_foretold(stage: Stage) -> None:
    estimates.refresh(futures=2, pause=0)
    job, now = Job.objects.get(name="next"), runtime.now()
    Job.objects.update(created_at=now - timedelta(minutes=100))
    job.refresh_from_db()
    StartEstimate.objects.update(p50=now + timedelta(minutes=20), p90=now + timedelta(minutes=28))

    def bar() -> Bar:
        facts = gather(job, [], Pod.objects.none(), [], now)
        (outlook,) = [bar for bar in timeline.build(job, [], [], now, facts).lanes[0].bars if bar.state == OUTLOOK]
        return outlook

    assert (bar().left, bar().width) == (pytest.approx(120 / 1.3, abs=0.01), pytest.approx(8 / 1.3, abs=0.01))
    StartEstimate.objects.update(p90=None)  # half of the futures only: to the end of the axis
    assert bar().left + bar().width == pytest.approx(100, abs=0.01)
    StartEstimate.objects.update(p50=now + timedelta(hours=9), p90=now + timedelta(hours=10))  # beyond what is drawn
    facts = gather(job, [], Pod.objects.none(), [], now)
    assert {bar.state for bar in timeline.build(job, [], [], now, facts).lanes[0].bars} == {"pending"}


@pytest.mark.parametrize(("cost", "steps"), [(0.0, 100), (0.02, 100), (0.1, 30), (0.6, 10), (30.0, 10)])
def test_futures_are_shorter_where_cycles_take_long(cost: float, steps: int) -> None:
    assert ground.steps_within(cost) == steps


@pytest.mark.parametrize(("steps", "period"), [(100, 120.0), (20, 36_000 / (10 * 1.1**10)), (10, 3600.0)])
def test_ten_hours_are_looked_ahead_however_few_cycles_there_are(steps: int, period: float) -> None:
    assert ground.period_for(steps) == pytest.approx(period)
