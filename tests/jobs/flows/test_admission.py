"""What flows and templates are refused for, where, and what may change later."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.errors import Forbidden, Invalid
from cluster.kinds import JOB_FLOW, JOB_TEMPLATE
from cluster.port import Obj
from jobs import operations
from tests.jobs.flows.world import finish, flow, make, template
from tests.jobs.world import World, task


def refused(world: World, obj: Obj) -> dict[str, str]:
    kind = JOB_FLOW if obj["kind"] == "JobFlow" else JOB_TEMPLATE
    with pytest.raises(Invalid) as refusal:
        operations.submit_kind(world.cluster, kind, obj)
    return {fault.pointer: fault.message for fault in refusal.value.fields}


@pytest.fixture
def world(world: World) -> World:
    make(world, template("a"), template("b"), template("c"))
    return world


def probe(**question: Any) -> dict[str, Any]:
    return {"name": "b", "dependsOn": {"targets": ["a"], "probe": question}}


@pytest.mark.parametrize(
    ("parts", "where", "said"),
    [
        (["a<a"], "/spec/flows/0/dependsOn/targets", "each waits for the next: a, a"),
        (["a<b", "b<c", "c<a"], "/spec/flows/0/dependsOn/targets", "each waits for the next: a, b, c, a"),
        (["a", "b<nowhere"], "/spec/flows/1/dependsOn/targets/0", "there is no 'nowhere' in this flow: name one of a, b"),
        (["a", "zzz"], "/spec/flows/1/name", "there is no JobTemplate 'zzz' in namespace 'default'"),
        (["a", "b", "a"], "/spec/flows/2/name", "job 0 is made from 'a' too"),
        ([], "/spec/flows", "must have at least one job"),
        ([{"name": ""}], "/spec/flows/0/name", "must not be empty"),
        ([{"name": 3}], "/spec/flows/0/name", "must be text"),
        (
            ["a", {"name": "b", "dependsOn": {"probe": {"tcpSocketList": [{"port": 1}]}}}],
            "/spec/flows/1/dependsOn/targets",
            "required",
        ),
        (["a", probe(tcpSocketList=[{"port": 0}])], "/spec/flows/1/dependsOn/probe/tcpSocketList/0/port", "must be 1 or more"),
        (["a", probe(tcpSocketList=[{}])], "/spec/flows/1/dependsOn/probe/tcpSocketList/0/port", "is required"),
        (
            ["a", probe(tcpSocketList=[{"port": 1, "taskName": "boss"}])],
            "/spec/flows/1/dependsOn/probe/tcpSocketList/0/taskName",
            "no target has a task 'boss': name one of worker",
        ),
        (
            ["a", probe(httpGetList=[{"port": 1, "path": "x"}])],
            "/spec/flows/1/dependsOn/probe/httpGetList/0/path",
            "begin with '/'",
        ),
        (
            ["a", probe(httpGetList=[{"port": 1, "httpHeader": {"name": "a\r\nHost", "value": "x"}}])],
            "/spec/flows/1/dependsOn/probe/httpGetList/0/httpHeader",
            "printable ASCII",
        ),
        (
            ["a", probe(taskStatusList=[{"phase": "Ready"}])],
            "/spec/flows/1/dependsOn/probe/taskStatusList/0/phase",
            "must be one of",
        ),
    ],
)
def test_a_faulty_flow_is_refused_where_it_is_wrong(world: World, parts: list[Any], where: str, said: str):
    assert said in refused(world, flow("f", *parts))[where]


def test_all_faults_are_told_at_once(world: World):
    faults = refused(world, flow("F!", "a<b", "b<a", "zzz<q"))
    assert set(faults) == {
        "/metadata/name",
        "/spec/flows/2/name",
        "/spec/flows/2/dependsOn/targets/0",
        "/spec/flows/0/dependsOn/targets",
    }


def test_a_name_that_makes_too_long_pod_names_is_refused(world: World):
    assert "too long" in refused(world, flow("f" * 55, "a"))["/spec/flows/0/name"]
    with pytest.raises(Invalid, match="no job name"):
        make(world, flow("f" * 62, "a"))


def test_retain_policy_is_retain_unless_said_and_nothing_else(world: World):
    made = operations.submit_kind(world.cluster, JOB_FLOW, flow("f", "a"))
    assert made["spec"]["jobRetainPolicy"] == "retain"
    assert "must be one of" in refused(world, flow("g", "a", jobRetainPolicy="keep"))["/spec/jobRetainPolicy"]


def test_once_made_only_the_retain_policy_of_a_flow_can_change(world: World):
    make(world, flow("f", "a"))
    changed = world.cluster.patch(JOB_FLOW, "f", "default", {"spec": {"jobRetainPolicy": "delete"}})
    assert changed["spec"]["jobRetainPolicy"] == "delete"
    with pytest.raises(Invalid) as refusal:
        world.cluster.patch(JOB_FLOW, "f", "default", {"spec": {"flows": [{"name": "b"}]}})
    assert [fault.pointer for fault in refusal.value.fields] == ["/spec/flows"]
    assert "cannot change once the flow is made" in refusal.value.message


def test_a_template_is_held_to_the_rules_of_jobs(world: World):
    faults = refused(world, template("t", task(replicas=1, minAvailable=2), plugins={"nope": []}))
    assert set(faults) == {"/spec/minAvailable", "/spec/tasks/0/minAvailable", "/spec/plugins/nope"}
    assert "no task" not in refused(world, {**template("t"), "spec": {"tasks": []}})["/spec/tasks"]
    assert "must be a mapping" in refused(world, {**template("t"), "spec": "x"})["/spec"]


def test_a_template_stays_as_it_was_written(world: World):
    stored = world.cluster.get(JOB_TEMPLATE, "a", "default")
    assert set(stored["spec"]) == {"tasks"}
    with pytest.raises(Invalid, match="/spec/tasks"):
        world.cluster.patch(JOB_TEMPLATE, "a", "default", {"spec": {"tasks": []}})


def test_a_template_cannot_go_while_an_unfinished_flow_is_made_from_it(world: World):
    make(world, flow("f", "a"))
    world.turn()
    with pytest.raises(Forbidden, match="job template default/a is used by flow f"):
        world.cluster.delete(JOB_TEMPLATE, "a", "default")
    world.cluster.delete(JOB_TEMPLATE, "b", "default")
    finish(world, "f-a")
    world.cluster.delete(JOB_TEMPLATE, "a", "default")


# --- patches ------------------------------------------------------------------------------------------------------


def patched(world: World, patch: dict[str, Any], field: str = "spec", **spec: Any) -> dict[str, Any]:
    make(world, template("t", task("boss", 1), task("worker", 2), **spec), flow("f", {"name": "t", "patch": {field: patch}}))
    world.settle()
    return world.job("f-t")["spec"]


@pytest.mark.parametrize("field", ["spec", "jobSpec"])
def test_a_patch_changes_the_task_of_its_name_and_adds_others(world: World, field: str):
    container = {"name": "main", "image": "better", "env": [{"name": "A", "value": "1"}]}
    patch = {
        "maxRetry": 7,
        "tasks": [
            {"name": "worker", "replicas": 5, "template": {"spec": {"containers": [container]}}},
            task("extra", 1),
        ],
    }
    spec = patched(world, patch, field)
    assert [(t["name"], t["replicas"]) for t in spec["tasks"]] == [("boss", 1), ("worker", 5), ("extra", 1)]
    worker = spec["tasks"][1]["template"]["spec"]["containers"]
    assert (len(worker), worker[0]["image"], worker[0]["resources"]["requests"]["cpu"]) == (1, "better", "1")
    assert spec["maxRetry"] == 7


def test_a_patch_replaces_policies_and_merges_plugins(world: World):
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    patch = {"policies": [{"event": "PodEvicted", "action": "AbortJob"}], "plugins": {"svc": []}}
    spec = patched(world, patch, policies=policies, plugins={"env": []})
    assert [policy["event"] for policy in spec["policies"]] == ["PodEvicted"]
    assert set(spec["plugins"]) == {"env", "svc"}


def test_the_template_stays_as_it_is_when_it_is_patched(world: World):
    patched(world, {"tasks": [{"name": "worker", "replicas": 9}]})
    assert world.cluster.get(JOB_TEMPLATE, "t", "default")["spec"]["tasks"][1]["replicas"] == 2


def test_an_item_without_a_name_is_meant_for_the_only_one(world: World):
    make(world, flow("f", {"name": "a", "patch": {"spec": {"tasks": [{"replicas": 3}]}}}))
    world.settle()
    assert [(t["name"], t["replicas"]) for t in world.job("f-a")["spec"]["tasks"]] == [("worker", 3)]


def test_a_patch_that_does_not_say_what_it_changes_is_refused(world: World):
    make(world, template("t", task("boss", 1), task("worker", 2)))
    faults = refused(world, flow("f", {"name": "t", "patch": {"spec": {"tasks": [{"replicas": 3}]}}}))
    assert "which of the template's 2 it changes" in faults["/spec/flows/0/patch/spec/tasks/0/name"]


def test_a_patch_that_makes_a_faulty_job_is_refused_at_its_place(world: World):
    faults = refused(world, flow("f", {"name": "a", "patch": {"spec": {"tasks": [{"name": "worker", "minAvailable": 9}]}}}))
    assert "/spec/flows/0/patch/spec/tasks/0/minAvailable" in faults
    both = {"name": "a", "patch": {"spec": {"maxRetry": 1}, "jobSpec": {"maxRetry": 2}}}
    assert "give one of the two" in refused(world, flow("f", both))["/spec/flows/0/patch/jobSpec"]
