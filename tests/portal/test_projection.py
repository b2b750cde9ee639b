"""The projection moves only forward, in whatever order and however often events arrive."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.models import Node
from cluster.projection import Batch, project_nodes, projected, refused
from jobs.models import Job, PhaseChange, Pod, PodGroup, Task
from jobs.projection import project_jobs, project_pod_groups, project_pods
from queues.models import Queue
from queues.projection import project as project_queues
from queues.projection import set_shares
from tests.portal import objects as make

pytestmark = [pytest.mark.django_db, pytest.mark.services]

LIFE = ["Pending", "Running", "Restarting", "Running", "Completed"]


@given(order=st.permutations(list(range(len(LIFE)))), again=st.lists(st.integers(0, len(LIFE) - 1)), cut=st.integers(1, 3))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_newest_version_wins_in_any_order(order, again, cut):
    Job.objects.all().delete()
    events = [make.job(version=i + 1, phase=LIFE[i], seconds=i) for i in [*order, *again]]
    for start in range(0, len(events), cut):
        project_jobs(Batch(events[start : start + cut]))
    row = Job.objects.get()
    assert (row.phase, row.resource_version, row.replicas, row.gpus, row.cpu_milli) == ("Completed", 5, 3, 3, 6000)
    assert row.finished_at is not None


@given(late=st.lists(st.integers(1, 9), max_size=4), last=st.integers(1, 9))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tombstone_is_final(late, last):
    Job.objects.all().delete()
    project_jobs(Batch([make.job(version=1)]))
    project_jobs(Batch(deletes=[make.job(version=last)]))
    buried = Job.objects.get().deleted_at
    project_jobs(Batch([make.job(version=version, phase="Running") for version in late], gone=["uid-train"]))
    assert Job.objects.get().deleted_at == buried
    assert buried is not None


def test_an_object_that_was_deleted_before_it_was_seen_never_appears():
    project_jobs(Batch(deletes=[make.job(version=7)]))
    project_jobs(Batch([make.job(version=6)]))
    assert not Job.objects.filter(deleted_at=None).exists()


def test_one_bad_object_is_counted_and_does_not_stop_the_others():
    before = refused.get("Job", 0)
    bad = make.job("bad")
    bad["spec"]["tasks"] = 5
    project_jobs(Batch([bad, make.job("good")]))
    assert [row.name for row in Job.objects.all()] == ["good"]
    assert refused["Job"] == before + 1


def test_tasks_count_their_pods_whichever_came_first():
    project_pods(Batch([make.pod("w-0", phase="Running"), make.pod("w-1")]))
    project_jobs(Batch([make.job()]))
    assert Task.objects.get(name="worker").counts == {"Running": 1, "Pending": 1}
    project_pods(Batch([make.pod("w-1", version=2, phase="Running")], deletes=[make.pod("w-0", version=3)]))
    assert Task.objects.get(name="worker").counts == {"Running": 1}
    assert Task.objects.get(name="ps").counts == {}
    assert Pod.objects.count() == 2


def test_the_gangs_phase_reaches_its_job_and_its_queue_whichever_came_first():
    project_queues(Batch([make.queue()]))
    project_pod_groups(Batch([make.pod_group(phase="Inqueue")]))
    project_jobs(Batch([make.job()]))
    assert Job.objects.get().group_phase == "Inqueue"
    assert Queue.objects.get().groups_inqueue == 1
    project_pod_groups(Batch([make.pod_group(version=2, phase="Running")]))
    assert Job.objects.get().group_phase == "Running"
    assert (Queue.objects.get().groups_inqueue, Queue.objects.get().groups_running) == (0, 1)
    project_pod_groups(Batch(gone=["uid-train-uid-train"]))
    assert (Job.objects.get().group_phase, Queue.objects.get().groups_running) == ("", 0)
    assert PodGroup.objects.get().deleted_at is not None


def test_steps_that_nobody_saw_are_read_from_the_conditions():
    quick = make.job(version=9, phase="Completed", seconds=5)
    quick["status"]["conditions"] = [
        {"status": phase, "lastTransitionTime": make.STAMP.format(at)}
        for phase, at in (("Pending", 0), ("Running", 2), ("Completed", 5))
    ]
    project_jobs(Batch([quick]))
    project_jobs(Batch([quick]))
    assert [step.phase for step in PhaseChange.objects.all()] == ["Pending", "Running", "Completed"]
    row = Job.objects.get()
    assert (row.finished_at - row.started_at).total_seconds() == 3


def test_a_step_of_the_gang_seen_late_stays_before_the_jobs_next_one(db):
    project_jobs(Batch([make.job()]))
    PhaseChange.objects.create(job_uid="uid-train", phase="Pending", group_phase="Inqueue", at=datetime.now(UTC))
    project_jobs(Batch([make.job(version=2, phase="Running", seconds=30)]))
    steps = [(step.phase, step.at.second) for step in PhaseChange.objects.all()]
    assert steps == [("Pending", 0), ("Pending", 30), ("Running", 30)]


def test_the_first_start_outlives_a_restart():
    project_jobs(Batch([make.job(version=1, phase="Running", seconds=3)]))
    project_jobs(Batch([make.job(version=2, phase="Running", seconds=30)]))
    assert Job.objects.get().started_at.second == 3


def test_a_job_that_names_no_gpu_model_gets_that_of_its_node():
    project_nodes(Batch([make.node()]))
    project_jobs(Batch([make.job()]))
    project_pods(Batch([make.pod("w-0", nodeName="gpu-01")]))
    assert Job.objects.get().gpu_model == "A100"
    assert Pod.objects.get().gpus == [0, 3]
    project_jobs(Batch([make.job(version=2)]))
    assert Job.objects.get().gpu_model == "A100"


def test_a_job_on_nodes_of_two_gpu_models_gets_neither():
    two = make.node("gpu-02")
    two["metadata"]["labels"]["nvidia.com/gpu.product"] = "H100"
    project_nodes(Batch([make.node(), two]))
    project_jobs(Batch([make.job()]))
    project_pods(Batch([make.pod("w-0", nodeName="gpu-01"), make.pod("w-1", nodeName="gpu-02")]))
    assert Job.objects.get().gpu_model == ""


def test_what_the_scheduler_said_of_a_queue_survives_a_change_of_the_queue():
    project_queues(Batch([make.queue()]))
    figures = {"share": 0.5, "share_allocated": {"cpu": 1}, "share_deserved": {}, "share_request": {}, "share_inqueue": {}}
    assert set_shares({"default": figures}) == {"default"}
    assert set_shares({"default": figures, "unknown": figures}) == set()
    project_queues(Batch([make.queue(version=2, weight=4)]))
    row = Queue.objects.get()
    assert (row.weight, row.share, row.share_allocated) == (4, 0.5, {"cpu": 1})


def test_a_heartbeat_tells_nobody(django_capture_on_commit_callbacks):
    told = []

    def listen(topic, uids, **_):
        told.append((topic, uids))

    projected.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            project_nodes(Batch([make.node()]))
        with django_capture_on_commit_callbacks(execute=True):
            project_nodes(Batch([make.node(version=2)]))
        with django_capture_on_commit_callbacks(execute=True):
            project_nodes(Batch([make.node(version=3, ready=False)]))
    finally:
        projected.disconnect(listen)
    assert told == [("topology", {"gpu-01"})] * 2
    assert Node.objects.get().resource_version == 3


def test_a_pod_on_cards_shared_by_memory_holds_the_cards_that_it_names():
    shared = make.pod("w-0", phase="Running")
    shared["metadata"]["annotations"]["volcano.sh/gpu-index"] = "2"
    project_pods(Batch([shared]))
    assert Pod.objects.get().gpus == [2]
