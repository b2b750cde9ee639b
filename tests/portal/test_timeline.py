"""A job's life: lanes, time in each state, gaps explained, and the same as data."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from cluster.projection import Batch
from jobs import holds, reasons
from jobs.choices import JobPhase
from jobs.models import Hold, Job, PhaseChange, Pod, Task
from jobs.pages import timeline
from jobs.pages.facts import Facts, Moment, gather
from jobs.pages.lives import lives
from jobs.projection import project_jobs, project_pod_groups
from portal.decisions import Sink
from portal.models import Eviction
from queues.models import QueueSample
from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.record import CycleRecord
from tests import factories as make
from tests.factories import GPU
from tests.portal import objects

pytestmark = pytest.mark.django_db(databases="__all__")

BEGIN = make.now().replace(microsecond=0) - timedelta(hours=1)
LIMIT = {"stage": "queue_limit", "code": "queue.capability", "asked": 8000, "free": 0, "limit": 16_000, "short": 8000}


def at(minutes: float):
    return BEGIN + timedelta(minutes=minutes)


def change(job: Job, phase: str, minutes: float, group: str = "") -> PhaseChange:
    return PhaseChange(job_uid=job.uid, phase=phase, group_phase=group, at=at(minutes))


def hold(job: Job, begin: float, end: float | None, **changes) -> Hold:
    verdict = make.verdict(**changes)
    until = None if end is None else at(end)
    return Hold(job_uid=job.uid, since=at(begin), until=until, stage=verdict["stage"], code=verdict["code"], verdict=verdict)


def ended() -> Job:
    return make.job("one", created_at=BEGIN, phase=JobPhase.COMPLETED, phase_since=at(60), started_at=at(30), finished_at=at(60))


def life(job: Job):
    """Pending (queue limit, then node fit), admitted, starting, run, suspended, restarted, run, completed."""
    changes = [
        change(job, "Pending", 0), change(job, "Pending", 20, "Inqueue"), change(job, "Running", 30, "Running"),
        change(job, "Aborting", 40), change(job, "Aborted", 41), change(job, "Restarting", 50), change(job, "Running", 52),
        change(job, "Completed", 60),
    ]  # fmt: skip
    held = [hold(job, 1, 10, **LIMIT), hold(job, 10, 25)]
    return changes, held


def test_every_gap_has_its_cause():
    job = ended()
    changes, held = life(job)
    facts = Facts(held, [Moment(at(26), "bound", {"pods": 2, "nodes": 1})])
    drawn = timeline.build(job, changes, [], make.now(), facts)
    told = [
        ((gap.start - BEGIN) / timedelta(minutes=1), (gap.end - BEGIN) / timedelta(minutes=1), gap.code) for gap in drawn.gaps
    ]
    assert told == [
        (0, 1, "looked_at"),
        (1, 10, "queue.capability"),
        (10, 20, "nodes.insufficient"),
        (20, 25, "nodes.insufficient"),
        (25, 30, "starting"),
        (40, 41, "stopping"),
        (41, 50, "suspended"),
        (50, 52, "restarting"),
    ]
    assert drawn.gaps[1].text == reasons.say(held[0].verdict, job.gpu_model)
    assert [gap.stage for gap in drawn.gaps][:3] == ["", "queue_limit", "node_fit"]


def test_gaps_and_runs_fill_the_whole_life():
    job = ended()
    changes, held = life(job)
    drawn = timeline.build(job, changes, [], make.now(), Facts(held))
    gone = sum((gap.end - gap.start for gap in drawn.gaps), timedelta())
    ran = sum((each.time for each in drawn.durations if each.state == "running"), timedelta())
    assert gone + ran == timedelta(minutes=60)
    assert ran == timedelta(minutes=18)
    assert {each.word: each.time for each in drawn.durations} == {
        "Pending": timedelta(minutes=20), "Inqueue": timedelta(minutes=10), "Running": timedelta(minutes=18),
        "Aborting": timedelta(minutes=1), "Aborted": timedelta(minutes=9), "Restarting": timedelta(minutes=2),
    }  # fmt: skip
    assert sum(each.share for each in drawn.durations) == pytest.approx(1.0)


def test_decisions_of_one_second_are_listed_newest_first_and_name_their_stage_once(client: Client, ada):
    verdict = {
        "stage": "admission",
        "code": "overcommit",
        "resource": GPU,
        "asked": 8000,
        "free": 0,
        "limit": 9000,
        "short": 8000,
    }
    job = make.job("quick", created_at=BEGIN)
    changes = [change(job, "Pending", 0), change(job, "Pending", 1, "Inqueue")]
    held = Hold(job_uid=job.uid, stage="admission", code="overcommit", since=at(0), until=at(1), verdict=verdict)
    make.save([job], changes, [held])
    make.save(make.pods(job, 3, created_at=at(1), scheduled_at=at(1)))
    html = client.get(f"/jobs/{job.uid}/?tab=decisions").content.decode()
    told = [html.index(text) for text in ("3 pods bound", "admitted: it may", ">Admission: asks 8 ", "submitted by")]
    assert told == sorted(told)


def test_a_gang_was_let_in_before_its_pods_had_nodes_however_late_that_is_told():
    job = make.job("quick", created_at=BEGIN)
    let_in = at(1) + timedelta(seconds=1)
    make.save([job], [PhaseChange(job_uid=job.uid, phase="Pending", group_phase="Inqueue", at=let_in)])
    make.save(make.pods(job, 3, created_at=at(1), scheduled_at=at(1)))
    changes = [change(job, "Pending", 0), *PhaseChange.objects.all()]
    told = gather(job, changes, Pod.objects.filter(job_uid=job.uid), [], make.now()).moments
    assert [(moment.code, moment.at) for moment in told] == [("submitted", at(0)), ("admitted", at(1)), ("bound", at(1))]
    late = [change(job, "Pending", 0), change(job, "Pending", 9, "Inqueue")]
    told = gather(job, late, Pod.objects.filter(job_uid=job.uid), [], make.now()).moments
    assert [moment.code for moment in told] == ["submitted", "bound", "admitted"]


@pytest.mark.parametrize(("bound", "code"), [(0, "looked_at"), (9, "starting"), (10, "looked_at")])
def test_a_job_that_waits_to_be_admitted_has_no_nodes_by_another_run_nor_by_what_came_as_it_was_admitted(bound, code):
    """Stamps are of whole seconds: admission and nodes often share one."""
    job = make.job("quick", created_at=BEGIN)
    changes = [change(job, "Running", 0), change(job, "Pending", 1), change(job, "Running", 10)]
    facts = Facts((), [Moment(at(bound), "bound", {"pods": 1, "nodes": 1})])
    (gap,) = timeline.build(job, changes, [], make.now(), facts).gaps
    assert gap.code == code


def test_a_gap_that_lasts_has_no_end_and_says_what_is_so_now():
    job = make.job("waits", created_at=BEGIN, verdict=make.verdict(placeable=7))
    open_hold = hold(job, 5, None)
    (first, last) = timeline.build(job, [change(job, "Pending", 0)], [], make.now(), Facts([open_hold])).gaps
    assert (first.code, first.end) == ("looked_at", at(5))
    assert (last.code, last.end) == ("nodes.insufficient", None)
    assert last.text.startswith("7 of 8 pods fit")


def test_each_has_its_lane(ada):
    job = ended()
    changes, held = life(job)
    make.save([job], changes, held)
    make.save(make.pods(job, 3, created_at=at(20), scheduled_at=at(26), started_at=at(30), finished_at=at(40)))
    make.save(
        [QueueSample(queue=job.queue, at=at(n), allocated={GPU: n * 1000}, deserved={GPU: 64_000}) for n in range(0, 61, 5)]
    )
    party = {"node": "n", "victim": "default/p", "victim_job": "default/g", "victim_queue": "q", "rule": "gang", "reason": ""}
    Eviction.objects.create(at=at(39), cycle=7, action="reclaim", victim_uid="p", victim_job_uid=job.uid, **party)
    tasks = [Task(job=job, name="worker", position=0, requests={"cpu": 1000, GPU: 8000})]
    facts = gather(job, changes, Pod.objects.filter(job_uid=job.uid), tasks, make.now())
    drawn = timeline.build(job, changes, lives(Pod.objects.all()), make.now(), facts)
    lanes = {lane.kind: lane for lane in drawn.lanes}
    assert list(lanes) == ["job", "queue", "scheduler", "pods", "task", "decisions"]
    assert [(value, of) for _at, value, of in lanes["queue"].area.samples][-2:] == [(55.0, 64.0), (60.0, 64.0)]
    assert [bar.word for bar in lanes["scheduler"].bars] == ["Queue limit", "Node fit"]
    assert [(point.at, point.text) for point in lanes["decisions"].points] == [
        (at(0), "submitted by lena"),
        (at(20), "admitted: it may have pods"),
        (at(26), "3 pods bound to 3 nodes"),
        (at(39), "1 pod evicted: Reclaimed"),
    ]
    assert max(value for _at, value, _of in lanes["pods"].area.samples) == 3


def test_very_many_decisions_at_once_are_drawn_as_few():
    job = ended()
    moments = [Moment(at(30) + timedelta(milliseconds=n), "bound", {"pods": 1, "nodes": 1}) for n in range(50)]
    drawn = timeline.build(job, life(job)[0], [], make.now(), Facts((), moments))
    assert len(drawn.lanes[-1].points) == 1


def test_rest_tells_the_same(client: Client, ada):
    job = ended()
    changes, held = life(job)
    make.save([job], changes, held)
    told = client.get("/api/v1/jobs/default/one/timeline").json()
    assert [lane["kind"] for lane in told["lanes"]] == ["job", "scheduler", "decisions"]
    assert told["end"] == job.finished_at.isoformat()
    assert [gap["code"] for gap in told["gaps"]][:2] == ["looked_at", "queue.capability"]
    assert sum(gap["seconds"] for gap in told["gaps"]) == 42 * 60
    page = client.get(f"/jobs/{job.uid}/").content.decode()
    for gap in told["gaps"]:
        assert gap["text"].replace("'", "&#x27;") in page
    older = make.job("one", created_at=BEGIN - timedelta(days=1), deleted_at=at(0))
    make.save([older])
    assert client.get(f"/api/v1/jobs/default/one/timeline?uid={older.uid}").json()["start"] == older.created_at.isoformat()
    assert client.get("/api/v1/jobs/default/one/timeline?uid=unknown").status_code == 404


def test_holds_begin_and_end_with_their_cause():
    job = make.job("waits", verdict=make.verdict())
    holds.record([job], at(1))
    job.verdict = make.verdict(placeable=7, free=7000)
    holds.record([job], at(2))  # the same cause with other numbers
    job.verdict = make.verdict(**LIMIT)
    holds.record([job], at(3))
    job.verdict = None
    holds.record([job], at(4))
    holds.record([job], at(5))
    assert list(Hold.objects.values_list("since", "until", "code")) == [
        (at(1), at(3), "nodes.insufficient"),
        (at(3), at(4), "queue.capability"),
    ]


def test_the_scheduler_and_the_mirror_keep_holds():
    project_jobs(Batch([objects.job()]))
    project_pod_groups(Batch([objects.pod_group()]))
    sink = Sink()
    verdict = Verdict(Stage.NODE_FIT, Code.NODES_INSUFFICIENT, resource=GPU, asked=8000, free=3000, short=5000)
    sink(CycleRecord(1, 100.0, verdicts={"default/train-uid-train": verdict}))
    sink.write()
    assert list(Hold.objects.values_list("job_uid", "code", "until")) == [("uid-train", "nodes.insufficient", None)]
    project_jobs(Batch([objects.job(version=2, phase="Completed", seconds=5)]))
    assert Hold.objects.get().until is not None


def test_a_tasks_lane_shows_one_state_at_a_time(ada):
    begun = make.now() - timedelta(minutes=60)

    def at(minutes: int):
        return begun + timedelta(minutes=minutes)

    job = make.job("twice", phase=JobPhase.ABORTING, created_at=begun, started_at=at(10), phase_since=at(50))
    lives = [(0, 10, 20, "Succeeded"), (0, None, 30, "Pending"), (25, 40, None, "Terminating")]
    pods = [
        Pod(
            uid=f"p{i}", name=f"p{i}", task="worker", job_uid=job.uid, phase=phase, created_at=at(made),
            started_at=at(start) if start else None, finished_at=at(end) if end else None,
        )
        for i, (made, start, end, phase) in enumerate(lives)
    ]  # fmt: skip
    lane = timeline.build(job, [], pods, make.now()).lanes[1]
    assert [(bar.state, bar.start) for bar in lane.bars] == [
        ("pending", at(0)), ("running", at(10)), ("pending", at(20)), ("running", at(40)), ("terminating", at(50)),
    ]  # fmt: skip
    assert [bar.end for bar in lane.bars] == [*(bar.start for bar in lane.bars[1:]), None]


def test_the_legend_names_every_state_that_is_drawn(ada):
    begun = make.now() - timedelta(hours=1)
    job = make.job("ended", phase=JobPhase.TERMINATED, created_at=begun, phase_since=begun, finished_at=make.now())
    phases = ["Pending", "Aborting", "Aborted", "Terminating", "Terminated"]
    changes = [PhaseChange(job_uid=job.uid, phase=p, at=begun + timedelta(minutes=i)) for i, p in enumerate(phases)]
    assert [word for _state, word in timeline.build(job, changes, [], make.now()).legend] == phases
