"""resourcequota: what a namespace's quotas leave decides who is admitted."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.port import Obj
from scheduler.framework.explain import Code, Stage
from tests.scheduler.world import World, gang, group, node

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: resourcequota
  - name: predicates
"""


def quota(hard: dict[str, Any], used: dict[str, Any] | None = None, name: str = "q", *, reported: bool = True) -> Obj:
    status = {"hard": hard, "used": used or dict.fromkeys(hard, "0")} if reported else {}
    return {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": "default", "uid": f"quota-{name}"},
        "spec": {"hard": hard}, "status": status,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("hard", "used", "admitted"),
    [
        ({"cpu": "2"}, {"cpu": "1"}, True),
        ({"cpu": "2"}, {"cpu": "1500m"}, False),
        ({"requests.cpu": "2"}, {"requests.cpu": "1500m"}, False),
        ({"pods": "3"}, {"pods": "3"}, True),  # not in minResources
        ({"limits.cpu": "1"}, {"limits.cpu": "1"}, True),
        ({"requests.nvidia.com/gpu": "1"}, {"requests.nvidia.com/gpu": "1"}, True),
        ({"memory": "1Gi"}, {"memory": "512Mi"}, False),
        ({"services.nodeports": "1", "count/configmaps": "1"}, {}, True),
    ],
)
def test_used_and_asked_must_stay_within_hard(hard: Any, used: Any, admitted: bool) -> None:
    objs = gang("a", 1, minResources={"cpu": "1", "memory": "1Gi"}, cpu=1, memory="1Gi")
    world = World(node("n"), quota(hard, used), objs, conf=CONF).cycle()
    assert world.phase("a") == ("Inqueue" if admitted else "Pending")


def test_the_verdict_has_the_numbers() -> None:
    world = World(node("n"), quota({"cpu": "4"}, {"cpu": "3"}), group("a", 1, minResources={"cpu": "2"}), conf=CONF).cycle()
    verdict = world.verdicts["a"]
    assert (verdict.stage, verdict.code, verdict.resource) == (Stage.ADMISSION, Code.RESOURCE_QUOTA, "cpu")
    assert (verdict.asked, verdict.free, verdict.short, verdict.limit) == (2000, 1000, 1000, 4000)


def test_what_a_cycle_admits_counts_for_the_next_job_of_the_namespace() -> None:
    groups = [group(name, 1, minResources={"cpu": "2"}) for name in ("a", "b", "c")]
    world = World(node("n"), quota({"cpu": "5"}), groups, conf=CONF).cycle()
    assert [world.phase(name) for name in ("a", "b", "c")] == ["Inqueue", "Inqueue", "Pending"]


def test_every_quota_of_the_namespace_is_asked_and_no_other() -> None:
    other = quota({"cpu": "0"}, name="other")
    other["metadata"]["namespace"] = "elsewhere"
    world = World(node("n"), quota({"cpu": "5"}), other, group("a", 1, minResources={"cpu": "2"}), conf=CONF).cycle()
    assert world.phase("a") == "Inqueue"
    world = World(
        node("n"), quota({"cpu": "5"}), quota({"cpu": "1"}, name="r"), group("a", 1, minResources={"cpu": "2"}), conf=CONF
    )
    assert world.cycle().phase("a") == "Pending"


def test_without_a_count_the_pods_that_exist_are_counted() -> None:
    old = gang("old", 2, cpu=2, memory="1Gi")
    for obj in old:
        obj["status"] = {"phase": "Running"}
        if obj["kind"] == "Pod":
            obj["spec"]["nodeName"] = "n"
    new = group("new", 1, minResources={"cpu": "2"})
    uncounted = [quota({"cpu": hard}, reported=False) for hard in ("6", "5")]
    assert World(node("n"), uncounted[0], old, new, conf=CONF).cycle().phase("new") == "Inqueue"
    assert World(node("n"), uncounted[1], old, new, conf=CONF).cycle().phase("new") == "Pending"


def test_a_job_that_names_no_minimum_is_not_held() -> None:
    assert World(node("n"), quota({"cpu": "0"}), group("a", 1), conf=CONF).cycle().phase("a") == "Inqueue"


@pytest.mark.parametrize("hard", [{"cpu": "much"}, {"cpu": "-1"}, "all"])
def test_a_quota_that_cannot_be_read_is_set_aside_by_name(hard: Any) -> None:
    world = World(node("n"), quota(hard, {"cpu": "1"}), group("a", 1, minResources={"cpu": "2"}), conf=CONF).cycle()
    assert world.phase("a") == "Inqueue"
    assert "hard" in world.offline.cache.aside["ResourceQuota", "default/q"].reason
