"""What a job remembers: events that leave no trace survive a controller that dies, and none is answered twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.informer import Change
from cluster.kinds import EVENT, JOB, POD, POD_GROUP
from cluster.objects import name
from jobs import keys
from jobs.controller import job as controllers
from jobs.controller.base import Context
from jobs.controller.memory import Memory, _expand, _ranges
from jobs.keys import group_name
from tests.jobs.test_restart import DeathTrap, Killed
from tests.jobs.world import World, job, task


def policy(event: str, action: str, **more: str) -> dict[str, str]:
    return {"event": event, "action": action, **more}


def lose(world: World, pod: str) -> None:
    world.cluster.delete(POD, pod, "default", grace_seconds=0)


def said(world: World) -> list[str]:
    return [e["message"] for e in world.cluster.list(EVENT).items if e["reason"] == "ExecuteAction"]


def memory(world: World) -> str:
    return (world.status().get("controlledResources") or {}).get(keys.MEMORY, "")


@given(st.sets(st.integers(0, 300)))
def test_ranges_say_exactly_which_indices(indices):
    assert set(_expand(_ranges(indices))) == indices if indices else _ranges(indices) == ""


def test_a_job_without_policies_about_evictions_remembers_nothing(world: World):
    world.started(job(policies=[policy("PodFailed", "AbortJob")]))
    assert memory(world) == ""


def test_what_cannot_be_read_is_as_if_nothing_were_remembered():
    for text in ("", "{", "[]", '{"pods": 3}', '{"pods": {"a": "x"}}', '{"waiting": [["odd"]]}'):
        assert (
            Memory.of({"metadata": {"uid": "u"}, "spec": {}, "status": {"controlledResources": {keys.MEMORY: text}}}) == Memory()
        )


@pytest.mark.parametrize(
    ("action", "phase", "retries"),
    [("RestartJob", "Running", 1), ("AbortJob", "Aborted", 0), ("TerminateJob", "Terminated", 0), ("RestartTask", "Running", 1)],
)
def test_a_pod_that_goes_while_no_controller_lives_was_evicted(world: World, action, phase, retries):
    world.started(job("train", task(replicas=3), policies=[policy("PodEvicted", action)]))
    world.manager.close()
    lose(world, "train-worker-1")
    world.restart()
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == (phase, retries)
    assert "PodEvicted (train-worker-1)" in said(world)[0]


def test_a_gang_that_breaks_while_no_controller_lives_is_answered_once(world: World):
    world.started(job(policies=[policy("Unknown", "RestartTask")]))
    world.manager.close()
    world.cluster.patch_status(POD_GROUP, group_name(world.job()), "default", {"phase": "Unknown"})
    for _ in range(3):
        world.restart()
        world.settle()
    assert world.status()["retryCount"] == 1
    assert len(said(world)) == 1


def test_a_gang_may_break_again_in_a_later_generation(world: World):
    world.started(job(policies=[policy("Unknown", "RestartJob")]))
    for retries in (1, 2):
        world.cluster.patch_status(POD_GROUP, group_name(world.job()), "default", {"phase": "Unknown"})
        world.turn()
        assert (world.phase(), world.status()["retryCount"]) == ("Running", retries)


def test_a_delay_goes_on_over_restarts_of_the_controller(world: World):
    world.started(job(policies=[policy("PodEvicted", "AbortJob", timeout="10m")]))
    lose(world, "train-worker-0")
    world.settle()
    for _ in range(3):
        world.clock.advance(190)
        world.restart()
        world.turn(schedule=False)
        assert world.phase() != "Aborted"
    world.clock.advance(31)
    world.restart()
    world.turn(schedule=False)
    assert world.phase() == "Aborted"


def test_an_action_makes_waiting_ones_of_its_level_void(world: World):
    roles = [policy("PodEvicted", "RestartTask", timeout="10m"), policy("PodFailed", "RestartTask")]
    world.started(job("train", task("a", 2, policies=roles), task("b", 1, policies=roles[:1])))
    for pod in ("train-a-0", "train-b-0"):
        lose(world, pod)
    world.settle()
    assert memory(world).count("PodEvicted") == 2
    world.end("train-a-1", 1)
    world.settle()
    assert memory(world).count("PodEvicted") == 1
    assert '"b"' in memory(world)


def test_an_event_that_stays_visible_is_answered_once(world: World):
    world.started(job(policies=[policy("PodFailed", "ResumeJob")]))
    world.end("train-worker-0", 1)
    world.turn()
    world.restart()
    world.turn()
    assert (world.phase(), len(said(world))) == ("Running", 1)
    world.end("train-worker-1", 1)
    world.turn()
    assert (world.phase(), len(said(world))) == ("Failed", 2)


def test_a_completed_task_restarts_the_pod_that_completed_it(world: World):
    world.started(job("train", task("a", 2, policies=[policy("TaskCompleted", "RestartPod")]), task("b", 1)))
    before = {name(pod): pod["metadata"]["uid"] for pod in world.pods()}
    world.end("train-a-1")
    world.clock.advance(5)
    world.end("train-a-0")
    world.turn()
    after = {name(pod): pod["metadata"]["uid"] for pod in world.pods()}
    assert {pod for pod in after if after[pod] != before[pod]} == {"train-a-0"}
    assert world.status()["retryCount"] == 1


def test_a_partition_that_is_not_there_restarts_nothing(world: World):
    world.started(job(policies=[policy("PodFailed", "RestartPartition")]))
    world.end("train-worker-0", 1)
    world.turn()
    world.command("RestartPartition")
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 0)
    assert len(world.pods()) == 2


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("what", ["RestartJob", "suspend and resume", "scale down and up"])
def test_what_the_controllers_delete_is_never_taken_for_an_eviction_wherever_they_die(what, after):
    at = 0
    while True:
        at += 1
        world = World()
        world.started(
            job("train", task(replicas=3, minAvailable=1), minAvailable=1, policies=[policy("PodEvicted", "TerminateJob")])
        )
        if what == "scale down and up":
            scale(world, 1)
        else:
            world.command("RestartJob" if what == "RestartJob" else "AbortJob")
        world.restart(DeathTrap(world.cluster, at, after=after))
        died = False
        try:
            world.turn()
        except Killed:
            died = True
        if what == "scale down and up":
            scale(world, 3)
        world.restart()
        world.turn()
        if what == "suspend and resume":
            world.command("ResumeJob")
            world.turn()
        assert (world.phase(), len(world.pods())) == ("Running", 3), f"after dying at write {at}"
        if not died:
            break
    assert at > 3


def scale(world: World, replicas: int) -> None:
    tasks = [{**world.job()["spec"]["tasks"][0], "replicas": replicas}]
    world.cluster.patch(JOB, "train", "default", {"spec": {"tasks": tasks}})


@pytest.mark.parametrize("dies", [False, True])
def test_a_pod_that_failed_and_went_before_any_pass_failed_too(world: World, dies):
    policies = [policy("PodFailed", "AbortJob"), policy("PodEvicted", "RestartJob")]
    world.started(job(policies=policies))
    world.end("train-worker-0", 137)
    lose(world, "train-worker-0")
    if dies:  # then only that it is gone is known
        world.restart()
    world.turn()
    assert world.phase() == ("Running" if dies else "Aborted")


def test_a_process_that_only_hears_of_pods_keeps_so_many_of_the_newest_jobs(world: World, monkeypatch):
    monkeypatch.setattr(controllers, "MOST_VANISHED", 2)
    monkeypatch.setattr(controllers, "MOST_OF_ONE", 3)
    world.started(job())
    pod = {**world.pod("train-worker-0"), "status": {"phase": "Failed"}}
    dispatcher = controllers.JobController(Context(world.cluster, world.manager.informer, world.clock), None)
    for number in range(4):
        owner = {**pod["metadata"]["ownerReferences"][0], "name": f"train-{number}"}
        gone = {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}
        for _ in range(5):
            assert dispatcher.keys(Change(POD, gone, None)) == [f"default/train-{number}"]
    assert {key: len(pods) for key, pods in dispatcher._vanished.items()} == {"default/train-2": 3, "default/train-3": 3}


def test_pods_that_do_not_say_what_they_are_to_the_job_are_let_alone(world: World):
    world.started(job())
    stray = {**world.pod("train-worker-0"), "metadata": {"name": "stray", "namespace": "default"}}
    stray["metadata"]["ownerReferences"] = world.pod("train-worker-0")["metadata"]["ownerReferences"]
    world.cluster.create(POD, {key: stray[key] for key in ("metadata", "spec")})
    world.turn()
    assert world.status()["pending"] + world.status()["running"] == 2
    world.command("RestartJob")
    world.turn()
    assert "stray" in [name(pod) for pod in world.pods()]
    assert world.phase() == "Running"


def test_a_role_whose_pods_are_refused_keeps_no_other_from_being_made(world: World):
    bad = task("bad", 1)
    bad["template"]["spec"]["priorityClassName"] = "missing"
    world.submit(job("train", bad, task("good", 2)))
    world.turn()
    assert world.pod_names() == ["train-good-0", "train-good-1"]
    assert "FailedCreate" in world.reasons()


@pytest.mark.parametrize("event", ["PodFailed", "PodEvicted", "*"])
@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_a_loop_of_restarts_ends_by_maxretry(world: World, event, action):
    world.started(job(policies=[policy(event, action)], maxRetry=4))
    for _ in range(12):
        if world.phase() == "Failed":
            break
        lose(world, "train-worker-0") if event == "PodEvicted" else world.end("train-worker-0", 1)
        world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Failed", 4)
