"""The CronJob controller: runs at their times, once each, whatever happens in between."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from cluster.kinds import CRON_JOB, JOB, QUEUE
from cluster.objects import annotations, labels
from jobs.cron import operations
from tests.jobs.cron.world import cron, end, go_to, make, reasons, runs, status
from tests.jobs.world import World, job


def minute(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp()) // 60


def name(text: str) -> str:
    return f"c-{minute(text)}"


@pytest.fixture
def world() -> World:
    world = World()
    go_to(world, "2030-06-01T00:00:30")
    return world


def test_a_job_is_made_at_each_time_and_named_by_it(world: World):
    make(world, cron())
    go_to(world, "2030-06-01T00:04:59")
    assert runs(world) == []
    go_to(world, "2030-06-01T00:10:00")
    assert runs(world) == [name("2030-06-01T00:05"), name("2030-06-01T00:10")]
    assert status(world)["lastScheduleTime"] == "2030-06-01T00:10:00Z"
    assert [ref["name"] for ref in status(world)["active"]] == runs(world)


def test_a_job_is_made_from_the_template_and_says_when_it_was_due_in_the_zone(world: World):
    obj = cron("0 9 * * *", timeZone="Asia/Shanghai")
    obj["metadata"]["annotations"] = {"basalt.dev/owner": "mei"}
    obj["spec"]["jobTemplate"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "n", "basalt.dev/owner": "eve"}}
    made = make(world, obj)
    go_to(world, "2030-06-01T01:00:00")
    child = world.job(name("2030-06-01T01:00"))
    assert labels(child) == {"team": "a"}
    assert annotations(child)["volcano.sh/cronjob-scheduled-timestamp"] == "2030-06-01T09:00:00+08:00"
    assert (annotations(child)["note"], annotations(child)["basalt.dev/owner"]) == ("n", "mei")
    owner = child["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CronJob", made["metadata"]["uid"], True)


def test_allow_lets_runs_overlap(world: World):
    make(world, cron())
    go_to(world, "2030-06-01T00:15:00")
    assert len(status(world)["active"]) == 3


def test_forbid_waits_for_the_run_before_and_makes_up_for_the_latest(world: World):
    make(world, cron(concurrencyPolicy="Forbid"))
    go_to(world, "2030-06-01T00:17:00")
    assert runs(world) == [name("2030-06-01T00:05")]
    assert "ForbidConcurrent" in reasons(world)
    end(world, runs(world)[0])
    assert runs(world) == [name("2030-06-01T00:05"), name("2030-06-01T00:15")]
    assert status(world)["lastScheduleTime"] == "2030-06-01T00:15:00Z"


def test_an_aborted_run_still_forbids(world: World):
    make(world, cron(concurrencyPolicy="Forbid"))
    go_to(world, "2030-06-01T00:05:00")
    end(world, runs(world)[0], "Aborted")
    go_to(world, "2030-06-01T00:15:00")
    assert runs(world) == [name("2030-06-01T00:05")]


def test_replace_deletes_what_runs_first(world: World):
    make(world, cron(concurrencyPolicy="Replace"))
    go_to(world, "2030-06-01T00:10:00")
    assert runs(world) == [name("2030-06-01T00:10")]
    assert [ref["name"] for ref in status(world)["active"]] == runs(world)
    assert {"ReplaceConcurrent", "SuccessfulDelete"} <= set(reasons(world))


def test_suspended_makes_nothing_and_resumed_makes_up_for_the_latest_alone(world: World):
    make(world, cron(suspend=True))
    go_to(world, "2030-06-01T00:17:00")
    assert runs(world) == []
    world.cluster.patch(CRON_JOB, "c", "default", {"spec": {"suspend": False}})
    world.settle()
    assert runs(world) == [name("2030-06-01T00:15")]


@pytest.mark.parametrize(("late", "made"), [(59, 1), (60, 0), (61, 0)])
def test_a_run_begins_at_most_so_many_seconds_late(world: World, late: int, made: int):
    make(world, cron("0 * * * *", startingDeadlineSeconds=60))
    world.manager.close()
    world.clock.advance(3570 + late)
    world.restart()
    world.settle()
    assert len(runs(world)) == made
    assert ("MissSchedule" in reasons(world)) == (not made)


def test_a_deadline_of_nothing_still_lets_a_run_begin_on_time(world: World):
    make(world, cron(startingDeadlineSeconds=0))
    go_to(world, "2030-06-01T00:05:00")
    assert len(runs(world)) == 1


@pytest.mark.parametrize(("missed", "told"), [(100, False), (101, True)])
def test_of_many_missed_runs_the_latest_is_made_and_very_many_are_told(world: World, missed: int, told: bool):
    make(world, cron("* * * * *"))
    world.manager.close()
    world.clock.advance(60 * missed)
    world.restart()
    world.settle()
    assert len(runs(world)) == 1
    assert ("TooManyMissedTimes" in reasons(world)) == told


def test_history_limits_remove_the_oldest(world: World):
    make(world, cron(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1))
    for number, phase in enumerate(["Completed", "Failed", "Completed", "Terminated", "Completed"], 1):
        go_to(world, f"2030-06-01T00:{5 * number:02}:00")
        end(world, name(f"2030-06-01T00:{5 * number:02}"), phase)
    assert runs(world) == [name(f"2030-06-01T00:{m}") for m in ("15", "20", "25")]
    assert status(world)["lastSuccessfulTime"] == "2030-06-01T00:25:00Z"


def test_history_is_kept_short_while_suspended(world: World):
    make(world, cron(successfulJobsHistoryLimit=0))
    go_to(world, "2030-06-01T00:05:00")
    world.cluster.patch(CRON_JOB, "c", "default", {"spec": {"suspend": True}})
    end(world, runs(world)[0])
    assert (runs(world), status(world)["active"]) == ([], [])


@pytest.mark.parametrize("field", ["active", "lastScheduleTime"])
def test_a_field_that_is_lost_doubles_no_run(world: World, field: str):
    make(world, cron("0 * * * *", concurrencyPolicy="Forbid"))
    go_to(world, "2030-06-01T01:10:00")
    first = world.job(runs(world)[0])["metadata"]["uid"]
    world.cluster.patch_status(CRON_JOB, "c", "default", {field: None})
    world.settle()
    assert [world.job(run)["metadata"]["uid"] for run in runs(world)] == [first]
    assert status(world)["lastScheduleTime"] == "2030-06-01T01:00:00Z"
    assert len(status(world)["active"]) == 1
    end(world, runs(world)[0])
    world.cluster.delete(JOB, runs(world)[0], "default")
    world.cluster.patch_status(CRON_JOB, "c", "default", {field: None})
    world.settle()
    assert runs(world) == []


def test_a_job_of_that_name_that_is_somebody_elses_is_left_alone(world: World):
    foreign = world.submit(job(name("2030-06-01T00:05")))
    make(world, cron())
    go_to(world, "2030-06-01T00:05:00")
    assert world.job(name("2030-06-01T00:05"))["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert "ForeignJob" in reasons(world)
    go_to(world, "2030-06-01T00:10:00")
    assert runs(world) == [name("2030-06-01T00:10")]


def test_a_refused_run_is_told_and_tried_again(world: World, caplog: pytest.LogCaptureFixture):
    world.make_queue("night")
    world.settle()
    obj = cron()
    obj["spec"]["jobTemplate"]["spec"]["queue"] = "night"
    make(world, obj)
    world.cluster.patch_status(QUEUE, "night", "", {"state": "Closed"})
    go_to(world, "2030-06-01T00:06:00")
    assert (runs(world), "FailedCreate" in reasons(world)) == ([], True)
    assert [record for record in caplog.records if record.exc_info] == []  # a queue that is closed is no fault of ours
    world.cluster.patch_status(QUEUE, "night", "", {"state": "Open"})
    go_to(world, "2030-06-01T00:08:00")
    assert runs(world) == [name("2030-06-01T00:05")]


def test_a_new_schedule_makes_up_for_nothing_that_lay_before_it(world: World):
    make(world, cron("0 12 * * *"))
    go_to(world, "2030-06-01T10:00:00")
    world.cluster.patch(CRON_JOB, "c", "default", {"spec": {"schedule": "0 9 * * *"}})
    world.settle()
    assert runs(world) == []
    go_to(world, "2030-06-02T09:00:00")
    assert runs(world) == [name("2030-06-02T09:00")]


def test_periods_are_counted_from_the_last_run_also_below_a_minute(world: World):
    make(world, cron("@every 20s"))
    go_to(world, "2030-06-01T00:01:31")
    assert [int(run.removeprefix("c-")) % 60 for run in runs(world)] == [50, 10, 30]


def test_a_run_that_comes_twice_a_day_when_the_clocks_go_back_is_made_once(world: World):
    go_to(world, "2030-10-26T12:00:00")
    make(world, cron("30 2 * * *", timeZone="Europe/Berlin"))
    go_to(world, "2030-10-27T12:00:00")
    assert runs(world) == [name("2030-10-27T00:30")]


def test_a_deleted_cron_job_takes_its_jobs_with_it(world: World):
    make(world, cron())
    go_to(world, "2030-06-01T00:10:00")
    world.cluster.delete(CRON_JOB, "c", "default")
    world.turn()
    assert world.cluster.list(JOB).items == []


def test_a_zone_that_is_no_more_is_told_and_nothing_runs(world: World, monkeypatch: Any):
    made = make(world, cron())
    broken = {**made, "spec": {**made["spec"], "timeZone": "Nowhere/City"}}
    monkeypatch.setattr(world.manager.informer, "get", lambda kind, key: broken if kind == CRON_JOB else None)
    assert world.manager._controllers["cron"].reconcile("default/c") is None
    assert "InvalidTimeZone" in reasons(world)


def test_a_run_out_of_turn_is_no_scheduled_one_and_holds_none_up(world: World):
    make(world, cron(concurrencyPolicy="Forbid"))
    go_to(world, "2030-06-01T00:04:00")
    by_hand = operations.act(world.cluster, "default", "c", "trigger", at=world.clock.now(), user="mei")
    go_to(world, "2030-06-01T00:06:00")
    end(world, by_hand["metadata"]["name"])
    assert runs(world) == [name("2030-06-01T00:05"), by_hand["metadata"]["name"]]
    assert status(world)["lastScheduleTime"] == "2030-06-01T00:05:00Z"
    assert annotations(by_hand)["basalt.dev/triggered-by"] == "mei"
    world.cluster.patch_status(CRON_JOB, "c", "default", {"lastScheduleTime": None})
    end(world, name("2030-06-01T00:05"))
    assert status(world)["lastScheduleTime"] == "2030-06-01T00:05:00Z"


def test_a_new_schedule_makes_up_for_nothing_also_after_a_restart(world: World):
    make(world, cron("0 12 * * *"))
    go_to(world, "2030-06-01T10:00:00")
    world.cluster.patch(CRON_JOB, "c", "default", {"spec": {"schedule": "0 9 * * *"}})
    world.restart()
    world.settle()
    world.restart()
    world.settle()
    assert runs(world) == []
