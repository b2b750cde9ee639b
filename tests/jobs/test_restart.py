"""The controller may die at any write: what began anew over the same objects ends in the same place, nothing lost or doubled."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.errors import ApiError
from cluster.kinds import COMMAND, JOB, POD, POD_GROUP
from cluster.objects import is_deleting, name
from jobs import operations
from jobs.lifecycle import FINAL
from tests.jobs.world import World, job, task

WRITES = ("create", "create_many", "replace", "patch", "patch_many", "patch_status", "delete", "delete_many")


class Killed(BaseException):
    """The process is no more; nothing may catch this."""


class DeathTrap:
    """A cluster whose user dies at its n-th write, before the write or right after it."""

    def __init__(self, cluster: Any, at: int, *, after: bool) -> None:
        self._cluster, self._left, self._after = cluster, at, after

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._cluster, verb)
        return self._guarded(method) if verb in WRITES else method

    def _guarded(self, method: Any) -> Any:
        def write(*arguments: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Killed
            result = method(*arguments, **more)
            if self._left == 0:
                raise Killed
            return result

        return write


def dies_once(world: World, at: int, after: bool) -> bool:
    """Let the controllers work until they die or the world rests; then begin anew and work to the end. Whether they died."""
    world.restart(DeathTrap(world.cluster, at, after=after))
    died = False
    try:
        world.turn()
    except Killed:
        died = True
    world.restart()
    world.turn()
    return died


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("RestartJob", {"phase": "Running", "retries": 1, "pods": 3}),
        ("AbortJob", {"phase": "Aborted", "retries": 0, "pods": 0}),
        ("TerminateJob", {"phase": "Terminated", "retries": 0, "pods": 0}),
        ("CompleteJob", {"phase": "Completed", "retries": 0, "pods": 0}),
    ],
)
def test_a_command_survives_death_at_any_write_and_is_carried_out_once(action, expected, after):
    deaths = 0
    for at in range(1, 60):
        world = World()
        world.started(job("train", task(replicas=3)))
        world.command(action)
        died = dies_once(world, at, after)
        status = world.status()
        found = {"phase": world.phase(), "retries": status["retryCount"], "pods": len(world.pods())}
        assert found == expected, f"after dying at write {at}"
        assert world.cluster.list(COMMAND).items == []
        assert len(world.cluster.list(POD_GROUP).items) == (expected["pods"] > 0)
        if not died:
            break
        deaths += 1
    assert deaths >= 8


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
def test_resuming_spares_what_has_finished_whenever_the_controller_dies(after):
    for at in range(1, 60):
        world = World()
        world.started(job("train", task(replicas=3)))
        world.end("train-worker-0")
        world.command("AbortJob")
        world.turn()
        finished = world.pod("train-worker-0")["metadata"]["uid"]
        assert world.phase() == "Aborted"
        world.command("ResumeJob")
        died = dies_once(world, at, after)
        assert (world.phase(), world.status()["running"], world.status()["succeeded"]) == ("Running", 2, 1)
        assert world.pod("train-worker-0")["metadata"]["uid"] == finished, f"after dying at write {at}"
        if not died:
            break
    assert at > 5


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
def test_a_new_job_survives_death_at_any_write(after):
    deaths = 0
    for at in range(1, 60):
        world = World()
        world.submit(job("train", task(replicas=3)))
        died = dies_once(world, at, after)
        assert (world.phase(), world.pod_names()) == ("Running", [f"train-worker-{i}" for i in range(3)])
        assert len(world.cluster.list(POD_GROUP).items) == 1
        if not died:
            break
        deaths += 1
    assert deaths >= 5


def test_a_policy_survives_death_at_any_write():
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    for at in range(1, 60):
        world = World()
        world.started(job("train", task(replicas=3), policies=policies))
        world.end("train-worker-1", exit_code=1)
        died = dies_once(world, at, after=True)
        assert world.phase() == "Running"
        assert (world.status()["running"], world.status()["retryCount"]) == (3, 1)
        if not died:
            break
    assert at > 8


class Lives(RuleBasedStateMachine):
    """Users, scheduler, kubelets and dying controllers in any order."""

    manifest = job("train", task(replicas=3, minAvailable=1), task("helper", 1), minAvailable=2)

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.submit(self.manifest)
        self.final = ""

    @rule(action=st.sampled_from(sorted(operations.ACTIONS)))
    def act(self, action: str) -> None:
        try:
            operations.act(self.world.cluster, "default", "train", action)
        except ApiError:
            assert action not in operations.allowed_actions(self.world.phase())

    @rule(at=st.integers(1, 12), after=st.booleans())
    def die(self, at: int, after: bool) -> None:
        self.world.restart(DeathTrap(self.world.cluster, at, after=after))
        with contextlib.suppress(Killed):
            self.world.settle()
        self.world.restart()

    @rule()
    def settle(self) -> None:
        self.world.settle()

    @rule()
    def schedule(self) -> None:
        self.world.schedule()

    @rule()
    def kubelet(self) -> None:
        self.world.run_kubelet()

    @rule(replicas=st.integers(1, 4))
    def scale(self, replicas: int) -> None:
        tasks = [{**t} for t in self.world.job()["spec"]["tasks"]]
        tasks[0]["replicas"] = replicas
        self.world.cluster.patch(JOB, "train", "default", {"spec": {"tasks": tasks}})

    @precondition(lambda self: self.world.pods())
    @rule(data=st.data())
    def take_away(self, data: Any) -> None:
        victim = data.draw(st.sampled_from(self.world.pod_names()))
        self.world.cluster.delete(POD, victim, "default", grace_seconds=0)

    @precondition(lambda self: any(p["status"]["phase"] == "Running" for p in self.world.pods()))
    @rule(data=st.data(), code=st.sampled_from([0, 1]))
    def end(self, data: Any, code: int) -> None:
        running = [name(p) for p in self.world.pods() if p["status"]["phase"] == "Running" and not is_deleting(p)]
        if running:
            self.world.end(data.draw(st.sampled_from(running)), code)

    @invariant()
    def no_pod_beyond_the_spec_is_running_work(self) -> None:
        names = [name(p) for p in self.world.pods()]
        assert len(names) == len(set(names))
        assert len(self.world.cluster.list(POD_GROUP).items) <= 1

    @invariant()
    def pods_never_outnumber_what_was_asked_for(self) -> None:
        most = sum(max(4, int(t["replicas"])) for t in self.manifest["spec"]["tasks"])
        assert len(self.world.pods()) <= most
        assert int((self.world.job().get("status") or {}).get("retryCount") or 0) <= 3

    @invariant()
    def a_final_phase_is_for_ever(self) -> None:
        if self.final:
            assert self.world.phase() == self.final
        elif self.world.phase() in FINAL:
            self.final = self.world.phase()

    def teardown(self) -> None:
        """Left alone, the world comes to rest where status and pods agree."""
        self.world.turn(40)
        status, pods = self.world.status(), self.world.pods("train")
        phase = self.world.phase()
        assert phase not in ("Restarting", "Aborting", "Terminating", "Completing")
        assert status["terminating"] == 0
        assert status["retryCount"] <= 3
        assert self.world.cluster.list(COMMAND).items == []
        running = [p for p in pods if p["status"]["phase"] == "Running"]
        assert status["running"] == len(running)
        if phase in FINAL or phase == "Aborted":
            assert not running
            assert self.world.cluster.list(POD_GROUP).items == []
        else:
            wanted = sum(t["replicas"] for t in self.world.job()["spec"]["tasks"])
            assert len(pods) == wanted


class LivesWithPolicies(Lives):
    """The same with policies for whatever happens."""

    manifest = job(
        "train",
        task(replicas=3, minAvailable=1, policies=[{"event": "PodFailed", "action": "RestartPod"}]),
        task("helper", 1, policies=[{"event": "TaskCompleted", "action": "CompleteJob"}], dependsOn={"name": ["worker"]}),
        minAvailable=2,
        policies=[{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}],
    )


class LivesOfTwo(Lives):
    """With policies for everything, time-outs that run, gangs that break, nodes that go, and a second controller process whose
    local copy lags behind: it began earlier and sees what happened only when it works."""

    manifest = job(
        "train",
        task(
            replicas=4,
            minAvailable=2,
            partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1},
            policies=[
                {"event": "PodFailed", "action": "RestartPartition"},
                {"event": "PodPending", "action": "RestartTask", "timeout": "60s"},
            ],
        ),
        task("helper", 1, policies=[{"event": "TaskCompleted", "action": "ResumeJob"}]),
        minAvailable=2,
        policies=[
            {"event": "PodEvicted", "action": "RestartPod", "timeout": "30s"},
            {"event": "Unknown", "action": "RestartJob"},
            {"exitCode": 7, "action": "AbortJob"},
        ],
    )

    def __init__(self) -> None:
        super().__init__()
        self.other = self.world.new_manager()
        self.other.settle()

    @rule(replicas=st.sampled_from([2, 4]))
    def scale(self, replicas: int) -> None:
        """Partitions stay whole: what admission refuses is no change."""
        with contextlib.suppress(ApiError):
            tasks = [{**t} for t in self.world.job()["spec"]["tasks"]]
            tasks[0]["replicas"] = replicas
            self.world.cluster.patch(JOB, "train", "default", {"spec": {"tasks": tasks}})

    @rule()
    def the_other_works(self) -> None:
        self.other.settle()

    @rule(seconds=st.sampled_from([1, 20, 45]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @precondition(lambda self: self.world.cluster.list(POD_GROUP).items)
    @rule()
    def the_gang_breaks(self) -> None:
        group = self.world.cluster.list(POD_GROUP).items[0]
        self.world.cluster.patch_status(POD_GROUP, name(group), "default", {"phase": "Unknown"})

    @precondition(lambda self: any(p["spec"].get("nodeName") for p in self.world.pods()))
    @rule(data=st.data())
    def a_node_goes(self, data: Any) -> None:
        victim = data.draw(st.sampled_from([name(p) for p in self.world.pods() if p["spec"].get("nodeName")]))
        self.world.pod_status(self.world.pod(victim), {"phase": "Failed", "reason": "NodeLost"})
        self.world.cluster.delete(POD, victim, "default", grace_seconds=0)

    def teardown(self) -> None:
        """Both come to rest together, and then the world does as with one."""
        for _ in range(3):
            self.world.turn(40)
            self.other.settle()
        self.world.clock.advance(600)
        self.other.settle()
        super().teardown()
        self.other.close()


Lives.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
LivesWithPolicies.TestCase.settings = LivesOfTwo.TestCase.settings = Lives.TestCase.settings
TestLives = Lives.TestCase
TestLivesWithPolicies = LivesWithPolicies.TestCase
TestLivesOfTwo = LivesOfTwo.TestCase
