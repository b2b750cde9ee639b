"""What people do with jobs, through the one door."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from cluster.clock import SystemClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from cluster.kinds import COMMAND, JOB, NODE, POD, QUEUE
from cluster.objects import annotations, clone
from cluster.port import Binding
from jobs import keys, operations
from jobs.choices import JobPhase
from jobs.controller import ControllerManager
from tests.jobs.world import SCHEDULERS, World, all_rules, job, task


def test_the_owner_is_whom_the_portal_says_and_never_what_the_manifest_says(world: World):
    forged = job()
    forged["metadata"]["annotations"] = {keys.OWNER: "root", "team": "a"}
    assert annotations(world.submit(forged, owner="ada")) == {keys.OWNER: "ada", "team": "a"}
    forged["metadata"]["name"] = "second"
    assert annotations(world.submit(forged)) == {"team": "a"}


def test_replacing_a_job_keeps_its_owner(world: World):
    world.submit(job(), owner="ada")
    stored = clone(world.job())
    stored["spec"]["priorityClassName"] = "high"
    stored["metadata"]["annotations"] = {keys.OWNER: "eve"}
    operations.replace(world.cluster, stored)
    assert annotations(world.job())[keys.OWNER] == "ada"
    assert world.job()["spec"]["priorityClassName"] == "high"


def test_the_same_manifest_again_is_no_change_and_a_new_one_changes_what_may_change(world: World):
    made = world.submit(job())
    again = operations.replace(world.cluster, job())
    assert again["spec"] == made["spec"]
    assert operations.replace(world.cluster, job("train", task(replicas=5)))["spec"]["tasks"][0]["replicas"] == 5
    with pytest.raises(Invalid, match="cannot change"):
        operations.replace(world.cluster, job(queue="other"))


def test_a_dry_run_says_what_would_be_and_keeps_nothing(world: World):
    answer = world.submit(job(), dry_run=True)
    assert answer["spec"]["maxRetry"] == 3
    with pytest.raises(NotFound):
        world.job()


@pytest.mark.parametrize("manifest", [None, [], "job", {}, {"apiVersion": "v1", "kind": "Pod"}, job() | {"metadata": 3}])
def test_what_is_no_job_manifest_is_refused_with_words(world: World, manifest):
    with pytest.raises((BadRequest, Invalid)):
        operations.submit(world.cluster, manifest)


def test_a_faulty_job_is_refused_whole(world: World):
    with pytest.raises(Invalid) as refused:
        world.submit(job(minAvailable=9, queue="nowhere"))
    assert {fault.pointer for fault in refused.value.fields} == {"/spec/minAvailable", "/spec/queue"}
    assert world.cluster.list(JOB).items == []


def test_of_two_submissions_of_one_name_one_wins(world: World):
    outcomes: list[str] = []
    barrier = threading.Barrier(8)

    def submit() -> None:
        barrier.wait()
        try:
            operations.submit(world.cluster, job())
            outcomes.append("won")
        except AlreadyExists:
            outcomes.append("taken")

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["taken"] * 7 + ["won"]


@pytest.mark.parametrize("phase", list(JobPhase))
@pytest.mark.parametrize("action", sorted(operations.ACTIONS))
def test_an_action_that_the_phase_does_not_answer_to_is_refused(world: World, phase, action):
    world.submit(job())
    world.cluster.patch_status(JOB, "train", "default", {"state": {"phase": str(phase)}})
    if action in operations.allowed_actions(phase):
        made = operations.act(world.cluster, "default", "train", action)
        assert made is not None
        assert (made["action"], made["target"]["name"]) == (operations.ACTIONS[action], "train")
    elif operations.is_done(action, phase):
        assert operations.act(world.cluster, "default", "train", action) is None
        assert world.cluster.list(COMMAND).items == []
    else:
        with pytest.raises(Conflict, match=str(phase)):
            operations.act(world.cluster, "default", "train", action)


REACHED = {
    "suspend": {"Aborting", "Aborted"},
    "resume": {"Pending", "Running", "Restarting"},
    "restart": {"Restarting"},
    "terminate": {"Terminating", "Terminated"},
    "complete": {"Completing", "Completed"},
}


@pytest.mark.parametrize("action", sorted(operations.ACTIONS))
def test_where_an_action_has_been_done_already(action):
    assert {str(phase) for phase in JobPhase if operations.is_done(action, phase)} == REACHED[action]


def test_what_is_so_already_is_not_when_the_contrary_waits(world: World):
    world.submit(job())
    world.cluster.patch_status(JOB, "train", "default", {"state": {"phase": "Aborted"}})
    assert operations.act(world.cluster, "default", "train", "suspend") is None
    operations.act(world.cluster, "default", "train", "resume")
    with pytest.raises(Conflict, match="Aborted"):
        operations.act(world.cluster, "default", "train", "suspend")


def test_a_double_click_makes_one_command(world: World):
    world.submit(job())
    world.settle()
    first, second = (operations.act(world.cluster, "default", "train", "suspend") for _ in range(2))
    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    assert len(world.cluster.list(COMMAND).items) == 1


def test_unknown_actions_missing_jobs_and_other_uids_are_refused(world: World):
    world.submit(job())
    with pytest.raises(BadRequest, match="suspend"):
        operations.act(world.cluster, "default", "train", "explode")
    with pytest.raises(NotFound):
        operations.act(world.cluster, "default", "other", "suspend")
    with pytest.raises(Conflict):
        operations.act(world.cluster, "default", "train", "suspend", uid="not-this-one")
    with pytest.raises(Conflict):
        operations.delete(world.cluster, "default", "train", uid="not-this-one")
    assert not world.gone()


def test_threads_bring_many_jobs_to_their_end_and_stop_when_told():
    clock = SystemClock()
    cluster = EmbeddedCluster(clock=clock, admission=all_rules())
    stop = threading.Event()
    manager = ControllerManager(cluster, clock, schedulers=SCHEDULERS)
    controllers = threading.Thread(target=manager.run, args=(stop,))
    controllers.start()
    world = World.over(cluster, clock)
    try:
        wait_for(lambda: len(cluster.list(QUEUE).items) == 2)
        cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}})
        titles = [f"job-{n}" for n in range(10)]
        for title in titles:
            operations.submit(cluster, job(title, task(replicas=4)))

        def all_done() -> bool:
            world.schedule()
            world.run_kubelet()
            for pod in cluster.list(POD).items:
                if pod["status"]["phase"] == "Running" and world.phase(pod["metadata"]["labels"][keys.JOB_NAME]) == "Running":
                    world.end(pod["metadata"]["name"])
            return all(world.phase(title) == "Completed" for title in titles)

        wait_for(all_done)
        assert all(world.status(title)["succeeded"] == 4 for title in titles)
    finally:
        stop.set()
        controllers.join(timeout=10)
    assert not controllers.is_alive()


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def test_binding_a_pod_of_a_job_twice_is_refused_by_the_cluster(world: World):
    world.started(job())
    pod = world.pod("train-worker-0")
    with pytest.raises(Conflict):
        world.cluster.bind(Binding("default", "train-worker-0", pod["metadata"]["uid"], "node-1"))


def test_owners_and_finalizers_are_not_taken_from_a_manifest(world: World):
    forged = job()
    forged["metadata"]["finalizers"] = ["example.com/stay"]
    forged["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]
    with pytest.raises(Invalid) as refused:
        operations.submit(world.cluster, forged)
    assert [fault.pointer for fault in refused.value.fields] == ["/metadata/ownerReferences", "/metadata/finalizers"]
    operations.submit(world.cluster, job())
    changed = operations.replace(world.cluster, {**forged, "metadata": {**forged["metadata"]}})
    assert "finalizers" not in changed["metadata"]
