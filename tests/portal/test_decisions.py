"""What the scheduler decides reaches jobs, cycles and queues; idle cycles do not fill the database."""

import pytest

from cluster.projection import Batch
from jobs.models import Job
from jobs.projection import project_jobs, project_pod_groups
from portal.decisions import Sink
from portal.models import Cycle
from queues.models import Queue, QueueSample
from queues.projection import project as project_queues
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import CycleRecord, QueueShare
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


def test_shares_are_written_when_they_change_and_sampled_every_ten_seconds(sink):
    project_queues(Batch([make.queue()]))
    share = QueueShare(0.5, {"cpu": 1000}, {"cpu": 2000}, {"cpu": 3000}, {})
    for number in range(25):
        give(sink, CycleRecord(number, 100.0 + number, queues={"default": share}))
    row = Queue.objects.get()
    assert (row.share, row.share_allocated, row.share_request) == (0.5, {"cpu": 1000}, {"cpu": 3000})
    assert [sample.allocated for sample in QueueSample.objects.all()] == [{"cpu": 1000}] * 3
