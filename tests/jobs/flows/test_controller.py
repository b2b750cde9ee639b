"""The JobFlow controller: order, ends, what stays, what is made again."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from cluster.kinds import EVENT, JOB, JOB_FLOW, JOB_TEMPLATE
from cluster.objects import annotations, labels
from queues import operations
from tests.jobs.flows.world import finish, flow, jobs, make, phase, status, template
from tests.jobs.world import World, job, task


def events(world: World, kind: str = "JobFlow") -> list[str]:
    return [f"{e['reason']}: {e['message']}" for e in world.cluster.list(EVENT).items if e["involvedObject"]["kind"] == kind]


def test_jobs_start_when_all_that_they_wait_for_is_completed(world: World):
    make(world, *(template(name) for name in "abcde"))
    make(world, flow("f", "a", "b<a", "c<b", "d<b", "e<c,d"))
    world.turn()
    assert jobs(world) == ["f-a"]
    assert phase(world) == "Running"
    finish(world, "f-a")
    assert jobs(world) == ["f-a", "f-b"]
    finish(world, "f-b")
    assert jobs(world) == ["f-a", "f-b", "f-c", "f-d"]
    finish(world, "f-c")
    assert "f-e" not in jobs(world)
    finish(world, "f-d")
    finish(world, "f-e")
    assert phase(world) == "Succeed"
    assert status(world)["completedJobs"] == ["f-a", "f-b", "f-c", "f-d", "f-e"]


def test_a_flow_is_pending_until_a_job_runs(world: World):
    make(world, template("a"), flow("f", "a"))
    world.settle()
    assert (phase(world), status(world)["pendingJobs"]) == ("Pending", ["f-a"])
    world.turn()
    assert (phase(world), status(world)["runningJobs"], status(world)["pendingJobs"]) == ("Running", ["f-a"], [])


def test_a_child_says_what_made_it_and_belongs_to_the_flows_owner(world: World):
    make(world, template("a"))
    obj = flow("f", "a")
    obj["metadata"]["annotations"] = {"basalt.dev/owner": "mei"}
    make(world, obj)
    world.settle()
    made = world.job("f-a")
    for told in (labels(made), annotations(made)):
        assert told["volcano.sh/createdByJobTemplate"] == "default.a"
        assert told["volcano.sh/createdByJobFlow"] == "default.f"
    assert annotations(made)["basalt.dev/owner"] == "mei"
    owner = made["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("JobFlow", "f", True)
    assert world.cluster.get(JOB_TEMPLATE, "a", "default")["status"]["jobDependsOnList"] == ["f-a"]


@pytest.mark.parametrize(("action", "ended"), [("TerminateJob", "Terminated"), ("AbortJob", "Aborted")])
def test_a_child_that_is_ended_by_an_action_fails_the_flow(world: World, action: str, ended: str):
    make(world, template("a"), template("b"), flow("f", "a", "b<a"))
    world.turn()
    world.command(action, "f-a")
    world.turn()
    assert (world.phase("f-a"), phase(world)) == (ended, "Failed")
    assert status(world)["terminatedJobs" if ended == "Terminated" else "unKnowJobs"] == ["f-a"]
    assert jobs(world) == ["f-a"]
    assert f"FlowFailed: f-a is {ended}: no more jobs are started" in events(world)


def test_a_failed_child_fails_the_flow_and_its_sisters_go_on(world: World):
    make(world, template("a"), template("b"), template("c"), flow("f", "a", "b", "c<b"))
    world.turn()
    finish(world, "f-a", 1)
    assert (world.phase("f-a"), phase(world), world.phase("f-b")) == ("Failed", "Failed", "Running")
    finish(world, "f-b")
    assert (phase(world), jobs(world)) == ("Failed", ["f-a", "f-b"])
    assert status(world)["completedJobs"] == ["f-b"]


def test_retain_policy_delete_takes_the_jobs_away_after_success_alone(world: World):
    make(world, template("a"), template("b"), flow("f", "a", "b<a", jobRetainPolicy="delete"))
    world.turn()
    finish(world, "f-a")
    assert jobs(world) == ["f-a", "f-b"]
    finish(world, "f-b")
    assert (phase(world), jobs(world)) == ("Succeed", [])
    assert [entry["state"] for entry in status(world)["jobStatusList"]] == ["Completed", "Completed"]


def test_retain_policy_delete_keeps_the_jobs_of_a_failed_flow(world: World):
    make(world, template("a"), flow("f", "a", jobRetainPolicy="delete"))
    world.turn()
    finish(world, "f-a", 1)
    assert (phase(world), jobs(world)) == ("Failed", ["f-a"])


def test_a_child_that_was_deleted_before_its_end_is_made_again(world: World):
    make(world, template("a"), template("b"), flow("f", "a", "b<a"))
    world.turn()
    first = world.job("f-a")["metadata"]["uid"]
    world.cluster.delete(JOB, "f-a", "default")
    world.turn()
    assert world.job("f-a")["metadata"]["uid"] != first
    assert phase(world) == "Running"


@pytest.mark.parametrize("ttl", [0, 5])
def test_a_completed_child_whose_time_is_over_is_not_made_again(world: World, ttl: int):
    make(world, template("a", ttlSecondsAfterFinished=ttl), template("b"), flow("f", "a", "b<a"))
    world.turn()
    finish(world, "f-a")
    world.clock.advance(6)
    world.turn()
    assert jobs(world) == ["f-b"]
    finish(world, "f-b")
    assert (phase(world), jobs(world)) == ("Succeed", ["f-b"])


def test_a_childs_end_is_written_down_although_it_passed_while_nobody_looked(world: World):
    make(world, template("a", ttlSecondsAfterFinished=1), template("b"), flow("f", "a", "b<a"))
    world.turn()
    world.end("f-a-worker-0")
    flows = world.manager._controllers.pop("flow")
    world.turn()
    world.clock.advance(5)
    world.turn()
    assert world.job("f-a")["metadata"]["deletionTimestamp"]
    world.manager._controllers["flow"] = flows
    world.restart()
    world.turn()
    assert jobs(world) == ["f-b"]


def test_a_deleted_flow_takes_its_jobs_with_it(world: World):
    make(world, template("a", ttlSecondsAfterFinished=60), template("b"), flow("f", "a", "b"))
    world.turn()
    world.cluster.delete(JOB_FLOW, "f", "default")
    world.turn()
    assert (jobs(world), world.pods()) == ([], [])


def test_a_flow_deleted_in_the_foreground_is_terminating_until_its_jobs_have_gone(world: World):
    make(world, template("a", ttlSecondsAfterFinished=60), flow("f", "a"))
    world.turn()
    world.cluster.delete(JOB_FLOW, "f", "default", propagation="Foreground")
    assert jobs(world) == ["f-a"]
    world.settle()
    assert phase(world) == "Terminating"
    world.turn()
    assert (jobs(world), world.cluster.list(JOB_FLOW).items) == ([], [])


def test_a_job_of_somebody_else_is_left_alone_and_waited_for(world: World):
    make(world, template("a"))
    foreign = world.submit(job("f-a"))
    make(world, flow("f", "a"))
    world.turn()
    assert world.job("f-a")["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert any("FailedCreate: f-a: a job of this name is there already" in line for line in events(world))
    world.cluster.delete(JOB, "f-a", "default")
    world.turn()
    assert labels(world.job("f-a"))["volcano.sh/createdByJobFlow"] == "default.f"


def test_a_template_that_went_is_told_and_waited_for_without_holding_up_others(world: World):
    make(world, template("a"), template("b"), flow("f", "a", "b"))
    hold = world.cluster
    hold.patch_status(JOB_FLOW, "f", "default", {"state": {"phase": "Failed"}})
    hold.delete(JOB_TEMPLATE, "a", "default")
    hold.patch_status(JOB_FLOW, "f", "default", {"state": {"phase": "Pending"}})
    world.turn()
    assert jobs(world) == ["f-b"]
    assert any("there is no JobTemplate 'a'" in line for line in events(world))
    make(world, template("a"))
    world.turn()
    assert jobs(world) == ["f-a", "f-b"]


def test_a_job_that_is_refused_is_made_once_it_may_be(world: World, caplog: pytest.LogCaptureFixture):
    world.make_queue("night")
    operations.act(world.cluster, "night", "close")
    world.settle()
    make(world, template("a", queue="night"), flow("f", "a"))
    world.settle()
    assert jobs(world) == []
    assert any("FailedCreate: f-a: Job 'f-a' is invalid: /spec/queue: queue 'night' is Closed" in line for line in events(world))
    assert [record for record in caplog.records if record.exc_info] == []  # a queue that is closed is no fault of ours
    operations.act(world.cluster, "night", "open")
    world.settle()
    world.clock.advance(120)
    world.settle()
    assert jobs(world) == ["f-a"]


@pytest.mark.parametrize("phase", ["Jolly", 1.5, {"a": 1}])
def test_a_phase_that_is_none_is_found_anew(world: World, phase: object):
    make(world, template("a"), flow("f", "a"))
    world.settle()
    world.turn()
    world.cluster.patch_status(JOB_FLOW, "f", "default", {"state": {"phase": phase}})
    world.settle()
    assert status(world)["state"]["phase"] == "Running"


@pytest.mark.parametrize("entries", [[1], "all", [{"name": 5}], [{"name": "f-a", "runningHistories": ["x"]}], [{}]])
def test_entries_out_of_shape_are_found_anew(world: World, entries: object):
    make(world, template("a"), flow("f", "a"))
    world.settle()
    world.turn()
    world.cluster.patch_status(JOB_FLOW, "f", "default", {"jobStatusList": entries})
    world.settle()
    assert [(entry["name"], entry["state"]) for entry in status(world)["jobStatusList"]] == [("f-a", "Running")]


def test_status_tells_each_phase_of_each_job(world: World):
    make(world, template("a"), flow("f", "a"))
    world.settle()
    world.clock.advance(10)
    world.turn()
    world.clock.advance(10)
    finish(world, "f-a")
    entry = status(world)["jobStatusList"][0]
    made = world.job("f-a")
    assert (entry["name"], entry["state"], entry["restartCount"]) == ("f-a", "Completed", 0)
    assert entry["startTimestamp"] == made["metadata"]["creationTimestamp"]
    assert entry["endTimestamp"] == made["status"]["state"]["lastTransitionTime"]
    history = entry["runningHistories"]
    assert [step["state"] for step in history][:2] == ["Pending", "Running"]
    assert all(step["endTimestamp"] == after["startTimestamp"] for step, after in itertools.pairwise(history))
    assert status(world)["conditions"]["f-a"]["phase"] == "Completed"
    assert status(world)["conditions"]["f-a"]["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 1}}}


def probed(question: dict[str, Any]) -> dict[str, Any]:
    return {"name": "client", "dependsOn": {"targets": ["server"], "probe": question}}


class Doors:
    """A prober that knows who answers."""

    def __init__(self) -> None:
        self.open: set[tuple[str, int, str]] = set()
        self.asked: list[tuple[str, str]] = []

    def http(self, pod: Any, port: int, path: str, header: Any) -> bool:
        self.asked.append((pod["metadata"]["name"], path))
        return (pod["metadata"]["name"], port, path) in self.open

    def tcp(self, pod: Any, port: int) -> bool:
        return (pod["metadata"]["name"], port, "") in self.open


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ({"tcpSocketList": [{"taskName": "worker", "port": 8080}]}, ""),
        ({"httpGetList": [{"taskName": "worker", "port": 8080, "path": "/ready"}]}, "/ready"),
    ],
)
def test_a_probe_is_asked_of_as_many_pods_as_the_task_needs(world: World, question: dict[str, Any], path: str):
    make(world, template("server", task(replicas=3, minAvailable=2), minAvailable=2), template("client"))
    make(world, flow("f", "server", probed(question)))
    doors = Doors()
    world.manager._controllers["flow"]._prober = doors
    world.turn()
    assert jobs(world) == ["f-server"]
    doors.open = {("f-server-worker-0", 8080, path)}
    world.clock.advance(2)
    world.turn()
    assert jobs(world) == ["f-server"]
    doors.open |= {("f-server-worker-2", 8080, path)}
    world.clock.advance(2)
    world.turn()
    assert jobs(world) == ["f-client", "f-server"]


def test_a_task_status_probe_waits_for_the_pods_phase(world: World):
    make(world, template("server"), template("client"))
    make(world, flow("f", "server", probed({"taskStatusList": [{"taskName": "worker", "phase": "Running"}]})))
    world.settle()
    assert jobs(world) == ["f-server"]
    world.turn()
    world.clock.advance(2)
    world.turn()
    assert jobs(world) == ["f-client", "f-server"]


def test_a_probed_target_that_has_completed_is_not_asked_any_more(world: World):
    make(world, template("server"), template("client"))
    make(world, flow("f", "server", probed({"tcpSocketList": [{"port": 1}]})))
    world.manager._controllers["flow"]._prober = Doors()
    world.turn()
    finish(world, "f-server")
    assert jobs(world) == ["f-client", "f-server"]
