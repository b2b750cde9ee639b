"""What the scheduler decides reaches jobs, cycles and queues; idle cycles do not fill the database."""

import pytest
from django.db import DatabaseError

from cluster.projection import Batch
from jobs.models import Job
from jobs.projection import project_jobs, project_pod_groups
from portal.decisions import Sink
from portal.decisions import sink as decisions
from portal.models import Cycle, Eviction
from queues.models import Queue, QueueSample
from queues.projection import project as project_queues
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import CycleRecord, EvictionRecord, QueueShare
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db, pytest.mark.services]

KEY = "default/train-uid-train"
VERDICT = Verdict(Stage.NODE_FIT, Code.NODES_INSUFFICIENT, resource="nvidia.com/gpu", asked=8000, free=3000, short=5000)


@pytest.fixture
def sink():
    return Sink()


def waiting_job():
    project_jobs(Batch([make.job()]))
    project_pod_groups(Batch([make.pod_group()]))


def give(sink, *records):
    for record in records:
        sink(record)
    sink.write()


def test_a_verdict_comes_and_goes(sink):
    waiting_job()
    give(sink, CycleRecord(1, 100.0, verdicts={KEY: VERDICT}))
    row = Job.objects.get()
    assert (row.verdict["short"], row.verdict["code"], row.verdict_stage) == (5000, "nodes.insufficient", "node_fit")
    give(sink, CycleRecord(2, 101.0, verdicts={KEY: None}))
    assert (Job.objects.get().verdict, Job.objects.get().verdict_stage) == (None, "")


def test_a_verdict_waits_for_the_mirror(sink):
    give(sink, CycleRecord(1, 100.0, verdicts={KEY: VERDICT}))
    waiting_job()
    give(sink, CycleRecord(2, 101.0))
    assert Job.objects.get().verdict_stage == "node_fit"


def test_a_new_scheduler_takes_back_what_the_last_one_said(sink):
    waiting_job()
    give(sink, CycleRecord(1, 100.0, verdicts={KEY: VERDICT}))
    give(Sink(), CycleRecord(1, 200.0))
    assert Job.objects.get().verdict is None


def test_a_job_that_is_over_keeps_no_verdict(sink):
    waiting_job()
    give(sink, CycleRecord(1, 100.0, verdicts={KEY: VERDICT}))
    project_jobs(Batch([make.job(version=2, phase="Aborted", seconds=5)]))
    assert Job.objects.get().verdict is None
    give(sink, CycleRecord(2, 101.0, verdicts={KEY: VERDICT}))
    assert Job.objects.get().verdict is None


def test_idle_cycles_are_kept_once_in_ten_seconds(sink):
    for number in range(100):
        give(sink, CycleRecord(number, 100.0 + number / 2))
    give(sink, CycleRecord(200, 149.9, bound=3))
    assert [c.number for c in Cycle.objects.order_by("at")] == [0, 20, 40, 60, 80, 200]


def test_only_so_many_cycles_and_evictions_are_kept(monkeypatch):
    monkeypatch.setattr(decisions, "KEEP", 20)
    monkeypatch.setattr(decisions, "KEEP_EVICTIONS", 30)
    for begin in (0, 25):  # a scheduler that begins anew prunes what the last one left
        sink = Sink()
        for number in range(begin, begin + 25):
            give(sink, CycleRecord(number, 100.0, evicted=2, evictions=[EVICTED, EVICTED]))
    assert [c.number for c in Cycle.objects.order_by("pk")] == list(range(30, 50))
    assert Eviction.objects.order_by("pk").first().cycle == 35


def test_shares_are_written_when_they_change_and_sampled_every_ten_seconds(sink):
    project_queues(Batch([make.queue()]))
    share = QueueShare(0.5, {"cpu": 1000}, {"cpu": 2000}, {"cpu": 3000}, {})
    for number in range(25):
        give(sink, CycleRecord(number, 100.0 + number, queues={"default": share}))
    row = Queue.objects.get()
    assert (row.share, row.share_allocated, row.share_request) == (0.5, {"cpu": 1000}, {"cpu": 3000})
    assert [sample.allocated for sample in QueueSample.objects.all()] == [{"cpu": 1000}] * 3


EVICTED = EvictionRecord(
    "default/low-w-0", "pod-1", KEY, "default", "n0", "preempt", "priority+conformance", "preempted: h-w-0 needs its room",
    preemptor="default/h", preemptor_pod="default/h-w-0", preemptor_queue="default", freed={"cpu": 1000}, proved=True,
)  # fmt: skip


def test_the_ledger_keeps_who_gave_way_to_whom(sink, client, django_user_model):
    waiting_job()
    give(sink, CycleRecord(7, 100.0, evicted=1, evictions=[EVICTED]))
    row = Eviction.objects.get()
    assert (row.cycle, row.victim, row.rule) == (7, "default/low-w-0", "priority+conformance")
    assert (row.freed, row.proved) == ({"cpu": 1000}, True)
    assert row.victim_job_uid == Job.objects.get().uid
    client.force_login(django_user_model.objects.create_user("u"))
    project_pod_groups(Batch([make.pod_group("h", owner="")]))
    (item,) = client.get("/api/v1/evictions", {"victim_job_uid": row.victim_job_uid}).json()["results"]
    assert (item["victim"], item["preemptor"], item["action"]) == ("default/low-w-0", "default/h", "preempt")
    assert client.get("/api/v1/evictions", {"node": "other"}).json()["results"] == []


def test_an_eviction_is_written_once_though_the_database_fails_after_it(sink, monkeypatch):
    monkeypatch.setattr(sink, "_write_cycles", lambda records: (_ for _ in ()).throw(DatabaseError("busy")))
    sink(CycleRecord(7, 100.0, evicted=1, evictions=[EVICTED]))
    with pytest.raises(DatabaseError):
        sink.write()
    monkeypatch.undo()
    sink.write()
    assert (Eviction.objects.count(), Cycle.objects.count()) == (1, 1)
