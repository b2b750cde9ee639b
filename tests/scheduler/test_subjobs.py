"""Parts of gangs."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.kinds import POD, POD_GROUP
from cluster.port import Obj, WatchEvent
from scheduler.cache import SchedulerCache
from scheduler.model.subjobs import Parts, SubJob
from scheduler.model.tasks import TaskStatus
from tests.scheduler.world import group, pod


def labelled(index: int, labels: dict[str, str], role: str = "w", **requests: object) -> Obj:
    made = pod("a", role, index, requests or {"cpu": 1})
    made["metadata"]["labels"] = labels
    return made


def cache(policies: list[dict[str, Any]], pods: list[Obj], **spec: Any) -> SchedulerCache:
    found = SchedulerCache()
    found.apply_all(WatchEvent("ADDED", POD, made) for made in pods)
    found.apply(WatchEvent("ADDED", POD_GROUP, group("a", spec.pop("least", 1), subGroupPolicy=policies, **spec)))
    return found


def parts(policies: list[dict[str, Any]], pods: list[Obj], **spec: Any) -> Parts:
    found = cache(policies, pods, **spec).jobs["default/a"].parts
    assert found is not None
    return found


def by_uid(parts: Parts) -> dict[str, list[str]]:
    return {uid: sorted(task.name for task in sub.tasks.values()) for uid, sub in parts.sub_jobs.items()}


def test_pods_are_parted_by_the_values_of_the_match_keys():
    found = parts([{"name": "p", "matchLabelKeys": ["x", "y"]}], [labelled(i, {"x": str(i // 2), "y": "1"}) for i in range(4)])
    assert by_uid(found) == {"default/a/p-0-1": ["a-w-0", "a-w-1"], "default/a/p-1-1": ["a-w-2", "a-w-3"]}
    assert [sub.match_index for sub in found.sub_jobs.values()] == [0, 1]


def test_the_first_policy_that_takes_a_pod_has_it_and_nobody_s_pods_are_the_default_part():
    policies: list[dict[str, Any]] = [
        {"name": "no-keys", "labelSelector": {"matchLabels": {"x": "1"}}},
        {"name": "b", "labelSelector": {"matchLabels": {"kind": "b"}}, "matchLabelKeys": ["x"]},
        {"name": "any", "matchLabelKeys": ["x"], "subGroupSize": 2},
    ]
    pods = [labelled(0, {"x": "1", "kind": "b"}), labelled(1, {"x": "1"}), labelled(2, {"x": ""}), labelled(3, {})]
    found = parts(policies, pods)
    assert by_uid(found) == {"default/a/b-1": ["a-w-0"], "default/a/any-1": ["a-w-1"], "default/a": ["a-w-2", "a-w-3"]}
    assert {sub.group: sub.min_available for sub in found.sub_jobs.values()} == {"b": 1, "any": 2, "": 1}


def test_a_gang_with_a_topology_alone_is_one_part_with_its_minimum():
    found = parts([], [labelled(i, {}) for i in range(3)], least=2, networkTopology={"mode": "soft"})
    assert {uid: sub.min_available for uid, sub in found.sub_jobs.items()} == {"default/a": 2}


def test_a_plain_gang_has_no_parts():
    assert cache([], [labelled(0, {})]).jobs["default/a"].parts is None


def counts(sub: SubJob) -> tuple[int, bool, bool]:
    return sub.ready_count(), sub.is_ready(), sub.is_pipelined()


def test_counts_follow_the_tasks():
    made = cache(
        [{"name": "p", "matchLabelKeys": ["x"], "subGroupSize": 3, "minSubGroups": 1}],
        [labelled(0, {"x": "1"}), labelled(1, {"x": "1"}), labelled(2, {"x": "1"}, memory=0)],
    )
    job = made.jobs["default/a"]
    assert job.parts is not None
    sub = job.parts.sub_jobs["default/a/p-1"]
    first, second, idle = (made.tasks[f"pod-a-w-{i}"] for i in range(3))
    assert (counts(sub), idle.cls.best_effort, job.parts.enough()) == ((0, False, False), True, False)
    job.move([first], TaskStatus.BINDING)
    job.move([second], TaskStatus.PIPELINED)
    assert (counts(sub), job.parts.enough(), job.parts.enough(pipelined=True)) == ((1, False, True), False, True)
    job.move([second], TaskStatus.RUNNING)
    assert (counts(sub), job.parts.enough()) == ((2, True, True), True)
    job.move([idle], TaskStatus.FAILED)
    assert counts(sub) == (2, False, False)
    for task in (first, second, idle):
        job.remove(task)
    assert job.parts.sub_jobs == {}
    assert sub.counts == [0] * len(TaskStatus)


def test_parts_are_made_anew_when_the_policies_change_and_only_then():
    made = cache([{"name": "p", "matchLabelKeys": ["x"]}], [labelled(0, {"x": "1"})])
    job = made.jobs["default/a"]
    first = job.parts
    same = {**job.obj, "status": {"phase": "Inqueue"}}
    made.apply(WatchEvent("MODIFIED", POD_GROUP, same))
    assert job.parts is first
    other = {**same, "spec": {**same["spec"], "subGroupPolicy": [{"name": "q", "matchLabelKeys": ["x"]}]}}
    made.apply(WatchEvent("MODIFIED", POD_GROUP, other))
    assert job.parts is not None
    assert list(job.parts.sub_jobs) == ["default/a/q-1"]
    made.apply(WatchEvent("DELETED", POD_GROUP, other))
    assert job.parts is None
    assert made.tasks["pod-a-w-0"].sub is None


def test_a_part_has_the_highest_priority_of_its_tasks_and_at_least_0():
    low = labelled(0, {"x": "1"})
    low["spec"]["priority"] = -5
    high = labelled(1, {"x": "2"})
    high["spec"]["priority"] = 7
    found = parts([{"name": "p", "matchLabelKeys": ["x"]}], [low, high])
    assert [sub.priority for sub in found.sub_jobs.values()] == [0, 7]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"subGroupPolicy": {"name": "p"}}, "subGroupPolicy must be a list"),
        ({"subGroupPolicy": ["p"]}, r"subGroupPolicy\[0\] must be a mapping"),
        ({"subGroupPolicy": [{"name": "p", "subGroupSize": "2"}]}, "subGroupSize must be a whole number"),
        ({"networkTopology": {"mode": "near"}}, "networkTopology.mode must be hard or soft, not 'near'"),
        ({"networkTopology": {"highestTierAllowed": "1"}}, "highestTierAllowed must be a whole number"),
    ],
)
def test_what_makes_no_sense_sets_the_podgroup_aside(spec: dict[str, Any], reason: str):
    made = SchedulerCache()
    made.apply(WatchEvent("ADDED", POD_GROUP, group("a", 1, **spec)))
    with pytest.raises(ValueError, match=reason):
        raise ValueError(made.aside["PodGroup", "default/a"].reason)
    assert "default/a" not in made.jobs
