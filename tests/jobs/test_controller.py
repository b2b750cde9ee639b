"""The Job controller over the embedded store: what a job goes through."""

from __future__ import annotations

import pytest

from cluster.errors import NotFound, Unavailable
from cluster.kinds import COMMAND, JOB, NODE, POD, POD_GROUP
from cluster.objects import annotations, is_deleting, labels, name
from jobs import keys
from tests.jobs.world import World, job, task


def test_a_job_waits_without_pods_until_its_gang_is_admitted(world: World):
    world.submit(job())
    world.settle()
    assert world.phase() == "Pending"
    assert world.pods() == []
    assert world.group()["spec"] == {
        "queue": "default",
        "minMember": 2,
        "minTaskMember": {"worker": 2},
        "minResources": {"cpu": "2", "memory": "2Gi", "pods": "2"},
    }


def test_a_job_runs_to_its_end_and_keeps_its_counts(world: World):
    world.started(job())
    assert (world.phase(), world.status()["running"]) == ("Running", 2)
    world.end("train-worker-0")
    world.end("train-worker-1")
    world.turn()
    status = world.status()
    assert (status["state"]["phase"], status["succeeded"], status["running"]) == ("Completed", 2, 0)
    assert [c["status"] for c in status["conditions"]] == ["Pending", "Running", "Completed"]
    with pytest.raises(NotFound):
        world.group()


def test_final_counts_survive_when_the_pods_are_cleared_away(world: World):
    world.started(job())
    world.end("train-worker-0")
    world.end("train-worker-1", exit_code=1)
    world.turn()
    assert world.phase() == "Failed"
    for pod in world.pods():
        world.cluster.delete(POD, name(pod), "default", grace_seconds=0)
    world.turn()
    assert (world.status()["succeeded"], world.status()["failed"]) == (1, 1)


def test_a_pod_carries_what_ties_it_to_its_job(world: World):
    manifest = job()
    manifest["metadata"]["annotations"] = {keys.PREEMPTABLE: "true"}
    world.started(manifest)
    pod, uid = world.pod("train-worker-1"), world.job()["metadata"]["uid"]
    assert annotations(pod)[keys.GROUP_NAME] == f"train-{uid}"
    assert annotations(pod)[keys.TASK_INDEX] == "1"
    assert annotations(pod)[keys.PREEMPTABLE] == "true"
    assert labels(pod)[keys.QUEUE_NAME] == "default"
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == uid


@pytest.mark.parametrize(
    ("action", "between", "after"),
    [
        ("suspend", "Aborting", "Aborted"),
        ("terminate", "Terminating", "Terminated"),
        ("complete", "Completing", "Completed"),
    ],
)
def test_an_ending_action_stops_the_pods_that_have_not_finished(world: World, action, between, after):
    from jobs.operations import act

    world.started(job("train", task(replicas=3)))
    world.end("train-worker-0")
    world.turn()
    act(world.cluster, "default", "train", action)
    world.settle()
    assert world.phase() == between
    world.turn()
    assert world.phase() == after
    assert world.pod_names() == ["train-worker-0"]
    assert world.status()["succeeded"] == 1
    assert world.cluster.list(COMMAND).items == []
    assert "ExecuteAction" in world.reasons()
    with pytest.raises(NotFound):
        world.group()


def test_a_hundred_rounds_of_suspending_and_resuming_use_up_no_retry(world: World):
    from jobs.operations import act

    world.started(job(maxRetry=3))
    for _ in range(100):
        for action, phase in (("suspend", "Aborted"), ("resume", "Running")):
            act(world.cluster, "default", "train", action)
            act(world.cluster, "default", "train", action)  # twice is once
            world.turn()
            assert (world.phase(), world.status()["retryCount"]) == (phase, 0)
            assert act(world.cluster, "default", "train", action) is None  # it is so already
        assert len(world.pods("train")) == 2
    assert world.cluster.list(COMMAND).items == []
    act(world.cluster, "default", "train", "restart")
    world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Running", 1)


def test_restarting_makes_all_pods_anew_and_counts(world: World):
    from jobs.operations import act

    world.started(job())
    before = {pod["metadata"]["uid"] for pod in world.pods()}
    act(world.cluster, "default", "train", "restart")
    world.turn()
    assert world.phase() == "Running"
    assert world.status()["retryCount"] == 1
    assert not before & {pod["metadata"]["uid"] for pod in world.pods()}
    assert {annotations(pod)[keys.JOB_VERSION] for pod in world.pods()} == {"1"}


def test_the_third_restart_of_three_fails_the_job(world: World):
    world.started(job())
    for _ in range(3):
        world.command("RestartJob")
        world.turn()
    assert (world.phase(), world.status()["retryCount"]) == ("Failed", 3)


@pytest.mark.parametrize("action", ["ResumeJob", "AbortJob", "RestartJob", "TerminateJob", "CompleteJob"])
def test_a_finished_job_ignores_every_command(world: World, action):
    world.started(job())
    world.end("train-worker-0")
    world.end("train-worker-1")
    world.turn()
    before = world.pod_names()
    world.command(action)
    world.turn()
    assert (world.phase(), world.pod_names()) == ("Completed", before)
    assert world.cluster.list(COMMAND).items == []


def test_a_command_for_an_earlier_job_of_the_name_does_nothing(world: World):
    first = world.started(job())
    stale = {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {"name": "stale", "namespace": "default"},
        "action": "TerminateJob",
        "target": {"apiVersion": JOB.api_version, "kind": "Job", "name": "train", "uid": first["metadata"]["uid"]},
    }
    world.cluster.delete(JOB, "train", "default")
    world.turn()
    world.started(job())
    world.cluster.create(COMMAND, stale)
    world.turn()
    assert world.phase() == "Running"
    assert world.cluster.list(COMMAND).items == []


def test_deleting_a_job_takes_its_pods_and_its_group(world: World):
    world.started(job())
    world.cluster.delete(JOB, "train", "default")
    world.turn()
    assert world.gone()
    assert world.pods() == []
    assert world.cluster.list(POD_GROUP).items == []


def test_scaling_up_adds_and_scaling_down_takes_the_highest_indices(world: World):
    world.started(job("train", task(replicas=2, minAvailable=1), minAvailable=1))
    up = {"spec": {"tasks": [{**task(replicas=4, minAvailable=1), "maxRetry": 3}]}}
    world.cluster.patch(JOB, "train", "default", up)
    world.turn()
    assert len(world.pods()) == 4
    assert (world.status()["running"], world.phase()) == (4, "Running")
    down = {"spec": {"tasks": [{**task(replicas=1, minAvailable=1), "maxRetry": 3}]}}
    world.cluster.patch(JOB, "train", "default", down)
    world.turn()
    assert world.pod_names() == ["train-worker-0"]
    assert (world.status()["running"], world.phase()) == (1, "Running")


def test_the_group_follows_an_update_of_the_job(world: World):
    world.started(job("train", task(replicas=3), minAvailable=3))
    lower = {"spec": {"minAvailable": 1, "tasks": [{**task(replicas=3), "minAvailable": 1, "maxRetry": 3}]}}
    world.cluster.patch(JOB, "train", "default", lower)
    world.turn()
    spec = world.group()["spec"]
    assert (spec["minMember"], spec["minTaskMember"], spec["minResources"]["cpu"]) == (1, {"worker": 1}, "1")


def test_a_lost_pod_is_made_again(world: World):
    world.started(job())
    world.cluster.delete(POD, "train-worker-0", "default", grace_seconds=0)
    world.turn()
    assert world.pod_names() == ["train-worker-0", "train-worker-1"]
    assert world.phase() == "Running"


def test_minsuccess_completes_while_pods_run_and_then_stops_them(world: World):
    world.started(job("train", task(replicas=3), minSuccess=1))
    world.end("train-worker-2")
    world.turn()
    assert world.phase() == "Completed"
    assert world.pod_names() == ["train-worker-2"]
    assert world.status()["succeeded"] == 1


@pytest.mark.parametrize(("exit_codes", "phase"), [((0, 0), "Completed"), ((0, 1), "Failed"), ((1, 1), "Failed")])
def test_the_verdict_waits_until_all_pods_have_finished(world: World, exit_codes, phase):
    world.started(job())
    world.end("train-worker-0", exit_codes[1])
    world.turn()
    assert world.phase() == "Running"
    world.end("train-worker-1", exit_codes[0])
    world.turn()
    assert world.phase() == phase


@pytest.mark.parametrize("how", ["complete", "suspend"])
def test_a_job_is_deleted_when_its_time_to_live_is_over(world: World, how):
    world.started(job(ttlSecondsAfterFinished=60))
    if how == "suspend":
        world.command("AbortJob")
    else:
        world.end("train-worker-0")
        world.end("train-worker-1")
    world.turn()
    world.clock.advance(59)
    world.turn()
    assert not world.gone()
    world.restart()  # the timer is not lost with the process
    world.clock.advance(1)
    world.turn()
    assert world.gone()
    assert world.pods() == []


def test_a_task_starts_when_those_it_depends_on_are_ready(world: World):
    first, second = task("first", 2), task("second", 1, dependsOn={"name": ["first"]})
    world.submit(job("train", first, second))
    world.settle()
    assert world.group()["spec"]["minMember"] == 2  # the gang does not count pods that nobody makes yet
    world.schedule()
    world.settle()
    assert world.pod_names() == ["train-first-0", "train-first-1"]
    world.turn()
    assert world.pod_names() == ["train-first-0", "train-first-1", "train-second-0"]
    assert (world.phase(), world.group()["spec"]["minMember"]) == ("Running", 3)


def test_of_several_dependencies_one_is_enough_when_the_task_says_any(world: World):
    slow = task("slow", 1, dependsOn={"name": ["never"]})
    never = task("never", 1)
    last = task("last", 1, dependsOn={"name": ["slow", "never"], "iteration": "any"})
    world.submit(job("train", never, slow, last))
    world.turn()
    assert "train-last-0" in world.pod_names()


def test_a_job_with_a_missing_claim_waits_and_says_so(world: World):
    from cluster.kinds import CLAIM

    world.submit(job(volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]))
    world.turn()
    assert (world.phase(), world.pods()) == ("Pending", [])
    assert "PVCError" in world.reasons()
    metadata = {"name": "data", "namespace": "default"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}
    world.cluster.create(CLAIM, claim)
    world.clock.advance(5)
    world.turn()
    assert world.phase() == "Running"
    mounts = world.pod("train-worker-0")["spec"]["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts] == ["/data"]


def test_a_described_claim_is_made_once_and_owned_by_the_job(world: World):
    from cluster.kinds import CLAIM

    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.started(job(volumes=[{"mountPath": "/data", "volumeClaim": spec}]))
    world.restart()
    world.turn()
    claims = world.cluster.list(CLAIM).items
    assert len(claims) == 1
    assert claims[0]["metadata"]["ownerReferences"][0]["name"] == "train"


def test_the_env_plugin_tells_each_container_its_index(world: World):
    world.started(job(plugins={"env": []}))
    env = world.pod("train-worker-1")["spec"]["containers"][0]["env"]
    assert env == [{"name": "VK_TASK_INDEX", "value": "1"}, {"name": "VC_TASK_INDEX", "value": "1"}]


def test_a_pod_that_cannot_be_made_is_told_on_the_job_and_tried_again(world: World):
    broken = task()
    broken["template"]["spec"]["priorityClassName"] = "missing"
    world.submit(job("train", broken))
    world.turn()
    assert world.pods() == []
    assert "FailedCreate" in world.reasons()
    assert world.manager.next_due() is not None


def test_nothing_is_written_when_nothing_changed(world: World):
    world.started(job())
    world.clock.advance(5)
    world.turn()  # what is written only now and then, such as the counts of queues
    before = world.cluster.list(JOB).resource_version
    world.restart()
    world.settle()
    assert world.cluster.list(JOB).resource_version == before


def test_a_pod_that_the_controller_deletes_is_marked_first(world: World):
    world.started(job())
    world.command("AbortJob")
    world.settle()
    assert all(keys.OUT_OF_SYNC in annotations(pod) and is_deleting(pod) for pod in world.pods())


def test_a_job_that_is_refused_again_and_again_is_terminated(world: World):
    broken = task()
    broken["template"]["spec"]["priorityClassName"] = "missing"
    world.submit(job("train", broken))
    for _ in range(20):
        world.turn()
        world.clock.advance(61)
    assert world.phase() == "Terminated"


def test_a_cluster_that_does_not_answer_terminates_nothing(world: World):
    class Down:
        def __getattr__(self, verb: str):
            if verb == "create":
                raise Unavailable("no answer")
            return getattr(world.cluster, verb)

    world.submit(job())
    world.restart(Down())
    for _ in range(30):
        world.settle()
        world.clock.advance(61)
    world.restart()
    world.turn()
    assert world.phase() == "Running"


def test_an_object_that_makes_no_sense_stops_nothing(world: World):
    from cluster.admission import Admission
    from cluster.embedded.store import EmbeddedCluster

    world.manager.close()
    world.cluster = EmbeddedCluster(clock=world.clock, admission=Admission())  # keeps whatever it is given
    world.restart()
    world.settle()
    world.cluster.create(JOB, {**job("odd"), "spec": {"tasks": [{"name": 3}], "queue": ["x"]}})
    world.cluster.create(JOB, {**job("empty"), "spec": {}})
    metadata = {"name": "odd", "namespace": "default"}
    world.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": None})
    world.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}})
    sound = job("train", {**task(), "minAvailable": 2}, minAvailable=2, queue="default", schedulerName="volcano", maxRetry=3)
    world.cluster.create(JOB, sound)
    for _ in range(5):
        world.settle()
        world.schedule()
        for pod in world.pods("train"):
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                world.pod_status(pod, {"phase": "Running"})
    assert world.phase() == "Running"
