"""What becomes of a job when pods of it are evicted: its policies and its gang, as its controller would have it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import disrupted, keys
from jobs.lifecycle import Action

PODS = ("a-0", "a-1", "b-0", "b-1")


def pod(name: str, phase: str = "Running", *, partition: str = "", version: int = 0, **meta: Any) -> Any:
    role = name[0]
    notes = {keys.TASK_SPEC: role, keys.JOB_VERSION: str(version), keys.JOB_NAME: "j"}
    labels = {keys.PARTITION_ID: partition} if partition else {}
    body = {"name": name, "namespace": "default", "uid": name, "annotations": notes, "labels": labels, **meta}
    return {"metadata": body, "status": {"phase": phase}}


def job(*policies: Any, least: int = 4, tasks: Any = None, phase: str = "Running", **status: Any) -> Any:
    listed = tasks or [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 2}]
    spec = {"minAvailable": least, "maxRetry": 3, "tasks": listed, "policies": list(policies)}
    meta = {"name": "j", "namespace": "default", "uid": "j"}
    return {"metadata": meta, "spec": spec, "status": {"state": {"phase": phase}, **status}}


def on(action: str, event: str = "PodEvicted", **more: Any) -> Any:
    return {"event": event, "action": action, **more}


def of(obj: Any, *evicted: str, pods: Any = None) -> disrupted.Disruption:
    return disrupted.of(obj, pods or [pod(name) for name in PODS], evicted)


@pytest.mark.parametrize(
    ("action", "leaving", "again"),
    [
        ("RestartJob", set(PODS), True), ("RestartTask", {"a-0", "a-1"}, True), ("RestartPod", {"a-0"}, True),
        ("AbortJob", set(PODS), False), ("TerminateJob", set(PODS), False), ("CompleteJob", set(PODS), False),
    ],
)  # fmt: skip
def test_who_leaves_by_which_policy(action, leaving, again):
    found = of(job(on(action)), "a-0")
    assert (found.choice.action, found.leaving, found.again) == (Action(action), leaving, again)


def test_a_partition_goes_together():
    pods = [pod("a-0", partition="0"), pod("a-1", partition="0"), pod("a-2", partition="1")]
    assert of(job(on("RestartPartition")), "a-0", pods=pods).leaving == {"a-0", "a-1"}


def test_without_a_policy_only_the_evicted_leave():
    found = of(job(), "a-0", "b-0")
    assert (found.choice.action, found.leaving, found.again) == (Action.SYNC, {"a-0", "b-0"}, True)


def test_a_roles_policy_comes_before_the_jobs_and_the_heaviest_counts():
    tasks = [{"name": "a", "replicas": 2, "policies": [on("RestartPod")]}, {"name": "b", "replicas": 2}]
    both = job(on("AbortJob"), tasks=tasks)
    assert of(both, "a-0").choice.action is Action.RESTART_POD
    assert of(both, "a-0", "b-0").choice.action is Action.ABORT
    assert of(both, "a-0", "b-0").leaving == set(PODS)


def test_a_policy_for_anything_answers_and_its_delay_is_told():
    found = of(job(on("RestartJob", event="*", timeout="90s")), "a-0")
    assert (found.choice.action, found.choice.delay) == (Action.RESTART, 90.0)


@pytest.mark.parametrize(("least", "below"), [(4, True), (3, False)])
def test_a_gang_falls_below_its_minimum_if_it_was_complete(least, below):
    found = of(job(least=least), "a-0")
    assert (found.standing, found.left, found.minimum, found.is_below) == (4, 3, least, below)


def test_a_roles_own_minimum_counts_too():
    tasks = [{"name": "a", "replicas": 2, "minAvailable": 2}, {"name": "b", "replicas": 2, "minAvailable": 1}]
    found = of(job(least=3, tasks=tasks), "a-0")
    assert (found.is_below, found.short) == (True, {"a": (1, 2)})


def test_roles_minima_do_not_count_where_the_jobs_own_is_below_their_sum():
    tasks = [{"name": "a", "replicas": 2, "minAvailable": 2}, {"name": "b", "replicas": 2, "minAvailable": 2}]
    found = of(job(least=2, tasks=tasks), "a-0")
    assert (found.is_below, found.short) == (False, {})


def test_pods_that_have_succeeded_stand_and_those_that_are_deleted_do_not():
    pods = [pod("a-0"), pod("a-1", "Succeeded"), pod("b-0", "Failed"), pod("b-1", deletionTimestamp="2026-01-01T00:00:00Z")]
    found = of(job(on("RestartJob"), least=2), "a-0", pods=pods)
    assert (found.standing, found.left, found.is_below, found.leaving) == (2, 1, True, {"a-0"})


@pytest.mark.parametrize(("used", "fails"), [(0, False), (1, False), (2, True)])
def test_a_restart_without_a_retry_left_fails(used, fails):
    assert of(job(on("RestartJob"), retryCount=used), "a-0").fails is fails
    assert of(job(on("AbortJob"), retryCount=used), "a-0").fails is False


def test_what_heavier_may_come_on_top():
    found = of(job(on("RestartPod"), on("RestartJob", event="PodFailed"), on("AbortJob", event="Unknown")), "a-0")
    assert (found.if_fails, found.if_broken) != (None, None)
    assert found.if_fails.action is Action.RESTART
    assert found.if_broken.action is Action.ABORT
    by_code = {"exitCode": 143, "action": "TerminateJob"}
    assert of(job(by_code), "a-0").if_fails.action is Action.TERMINATE
    assert of(job(on("TerminateJob"), on("RestartJob", event="PodFailed")), "a-0").if_fails is None


@pytest.mark.parametrize("phase", ["Restarting", "Aborting", "Completed"])
def test_a_job_on_its_way_elsewhere_asks_no_policy(phase):
    assert of(job(on("RestartJob"), phase=phase), "a-0").choice.action is Action.SYNC


def test_a_pod_of_an_older_generation_asks_none_either():
    assert of(job(on("RestartJob"), version=1), "a-0").choice.action is Action.SYNC
