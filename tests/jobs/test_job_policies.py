"""Policies at work: what happens to pods leads to actions on the job."""

from __future__ import annotations

import pytest

from cluster.kinds import POD, POD_GROUP
from cluster.objects import name
from jobs.keys import group_name
from tests.jobs.world import World, job, task


def policy(event: str, action: str, **more: str) -> dict[str, str]:
    return {"event": event, "action": action, **more}


@pytest.mark.parametrize(
    ("action", "phase", "pods"),
    [
        ("AbortJob", "Aborted", 1),
        ("TerminateJob", "Terminated", 1),
        ("CompleteJob", "Completed", 1),
        ("RestartJob", "Running", 3),
    ],
)
def test_a_failed_pod_leads_to_the_action_of_the_policy(world: World, action, phase, pods):
    world.started(job("train", task(replicas=3), policies=[policy("PodFailed", action)]))
    world.end("train-worker-1", exit_code=1)
    world.turn()
    assert (world.phase(), len(world.pods())) == (phase, pods)
    assert world.status()["retryCount"] == (1 if action == "RestartJob" else 0)


def test_restarting_a_task_leaves_the_others_and_the_group_alone(world: World):
    bad = task("bad", 2, policies=[policy("PodFailed", "RestartTask")])
    world.started(job("train", bad, task("good", 1)))
    before = {name(p): p["metadata"]["uid"] for p in world.pods()}
    group = world.group()["metadata"]["uid"]
    world.end("train-bad-0", exit_code=1)
    world.turn()
    after = {name(p): p["metadata"]["uid"] for p in world.pods()}
    assert {n for n in after if after[n] != before[n]} == {"train-bad-0", "train-bad-1"}
    assert world.group()["metadata"]["uid"] == group
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 1)


def test_restarting_a_pod_makes_only_that_one_anew(world: World):
    world.started(job("train", task(replicas=3), policies=[policy("PodFailed", "RestartPod")]))
    before = {name(p): p["metadata"]["uid"] for p in world.pods()}
    world.end("train-worker-2", exit_code=1)
    world.turn()
    after = {name(p): p["metadata"]["uid"] for p in world.pods()}
    assert {n for n in after if after[n] != before[n]} == {"train-worker-2"}


def test_restarting_a_partition_makes_its_pods_anew(world: World):
    parts = task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
    parts["policies"] = [policy("PodFailed", "RestartPartition")]
    world.started(job("train", parts))
    before = {name(p): p["metadata"]["uid"] for p in world.pods()}
    world.end("train-worker-3", exit_code=1)
    world.turn()
    after = {name(p): p["metadata"]["uid"] for p in world.pods()}
    assert {n for n in after if after[n] != before[n]} == {"train-worker-2", "train-worker-3"}


@pytest.mark.parametrize(("code", "phase"), [(137, "Aborted"), (1, "Running")])
def test_an_exit_code_has_a_policy_of_its_own(world: World, code, phase):
    world.started(job(policies=[{"exitCode": 137, "action": "AbortJob"}]))
    world.end("train-worker-0", exit_code=code)
    world.turn()
    assert world.phase() == phase


def test_a_completed_task_completes_the_job_and_stops_the_rest(world: World):
    master = task("master", 1, policies=[policy("TaskCompleted", "CompleteJob")])
    world.started(job("train", master, task("worker", 2)))
    world.end("train-master-0")
    world.turn()
    assert (world.phase(), world.pod_names()) == ("Completed", ["train-master-0"])
    assert world.status()["succeeded"] == 1


def test_a_pod_that_is_taken_away_restarts_the_job_but_the_controllers_own_deletions_do_not(world: World):
    world.started(job(policies=[policy("PodEvicted", "RestartJob")]))
    world.cluster.evict("default", "train-worker-0", reason="Preempted")
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 1)
    world.command("AbortJob")
    world.turn()
    world.command("ResumeJob")
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 1)


def test_a_broken_gang_restarts_the_job_once(world: World):
    world.started(job(policies=[policy("Unknown", "RestartJob")]))
    world.cluster.patch_status(POD_GROUP, group_name(world.job()), "default", {"phase": "Unknown"})
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 1)


def test_restarts_in_place_reach_the_tasks_limit(world: World):
    world.started(job("train", task(replicas=2, maxRetry=2), policies=[policy("TaskFailed", "TerminateJob")]))
    for index in (0, 1):
        status = {"name": "main", "ready": True, "restartCount": 1, "state": {"running": {}}}
        world.pod_status(world.pod(f"train-worker-{index}"), {"phase": "Running", "containerStatuses": [status]})
    world.turn()
    assert world.phase() == "Terminated"


def test_a_pod_that_stays_pending_too_long_aborts_the_job_also_after_a_restart_of_the_controller(world: World):
    world.submit(job(policies=[policy("PodPending", "AbortJob", timeout="1m")]))
    world.settle()
    world.cluster.patch_status(POD_GROUP, group_name(world.job()), "default", {"phase": "Inqueue"})
    world.settle()
    world.clock.advance(30)
    world.restart()
    world.settle()
    assert world.phase() == "Pending"
    world.clock.advance(31)
    world.turn(schedule=False)
    assert world.phase() == "Aborted"


def test_pods_that_start_in_time_cancel_the_wait(world: World):
    world.started(job(policies=[policy("PodPending", "AbortJob", timeout="1m")]))
    world.clock.advance(600)
    world.turn()
    assert world.phase() == "Running"


def test_a_delayed_eviction_policy_waits_and_is_called_off_when_the_pod_runs_again(world: World):
    world.started(job(policies=[policy("PodEvicted", "AbortJob", timeout="10m")]))
    world.cluster.delete(POD, "train-worker-0", "default", grace_seconds=0)
    world.settle()
    assert world.manager.next_due() is not None
    world.turn()
    world.clock.advance(601)
    world.turn()
    assert world.phase() == "Running"


def test_a_delayed_eviction_policy_acts_when_the_pod_does_not_come_back(world: World):
    world.started(job(policies=[policy("PodEvicted", "AbortJob", timeout="10m")]))
    world.cluster.delete(POD, "train-worker-0", "default", grace_seconds=0)
    world.turn(schedule=False)
    world.clock.advance(601)
    world.turn(schedule=False)
    assert world.phase() == "Aborted"


def test_the_reason_of_an_action_is_told_on_the_job(world: World):
    world.started(job(policies=[policy("PodFailed", "AbortJob")]))
    world.end("train-worker-1", exit_code=1)
    world.turn()
    from cluster.kinds import EVENT

    messages = [e["message"] for e in world.cluster.list(EVENT).items if e["reason"] == "ExecuteAction"]
    assert messages == ["AbortJob because of PodFailed (train-worker-1) in phase Running"]
