"""Watch events become changes of the model, and a fresh model over the same objects is the same."""

from __future__ import annotations

import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.kinds import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from cluster.port import WatchEvent
from scheduler.cache import SchedulerCache
from scheduler.model.tasks import NO_NODE, TaskStatus
from tests.scheduler.world import group, node, pod, queue

KINDS = {"Node": NODE, "Pod": POD, "PodGroup": POD_GROUP, "Queue": QUEUE, "PriorityClass": PRIORITY_CLASS}


def feed(cache, *objs, type="MODIFIED"):
    for obj in objs:
        cache.apply(WatchEvent(type, KINDS[obj["kind"]], obj))


def with_status(obj, phase, node="", deleting=False, gpus=""):
    found = copy.deepcopy(obj)
    found["status"]["phase"] = phase
    if node:
        found["spec"]["nodeName"] = node
    if deleting:
        found["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if gpus:
        found["metadata"]["annotations"]["basalt.dev/gpu-indices"] = gpus
    return found


def assume(cache, uid, name):
    task = cache.tasks[uid]
    cache.pods.move(task, TaskStatus.BINDING)
    cache.nodes.place([task], [cache.nodes.index[name]])
    return task


def test_a_pod_may_come_before_its_node_and_its_group():
    cache = SchedulerCache()
    feed(cache, with_status(pod("a", "w", 0, {"cpu": 2}), "Running", "n0"))
    task = cache.tasks["pod-a-w-0"]
    assert task.node == NO_NODE
    feed(cache, node("n0"), group("a", 1))
    assert task.node == cache.nodes.index["n0"]
    assert cache.nodes.used[task.node, 0] == 2000
    assert cache.jobs["default/a"].ready_count() == 1


def test_tasks_of_one_template_share_a_class_until_the_last_is_gone():
    cache = SchedulerCache()
    first, second, other = pod("a", "w", 0, {"cpu": 2}), pod("b", "w", 0, {"cpu": 2}), pod("a", "w", 1, {"cpu": 3})
    feed(cache, first, second, other)
    classes = {uid: task.cls for uid, task in cache.tasks.items()}
    assert classes["pod-a-w-0"] is classes["pod-b-w-0"]
    assert classes["pod-a-w-0"] is not classes["pod-a-w-1"]
    feed(cache, first, second, type="DELETED")
    assert list(cache.classes.count) == [classes["pod-a-w-1"]]


def test_an_assumed_bind_outlives_events_that_do_not_know_of_it_and_is_confirmed_by_the_one_that_does():
    cache = SchedulerCache()
    waiting = pod("a", "w", 0, {"cpu": 2, "gpu": 1})
    feed(cache, node("n0", gpu=2), group("a", 1), waiting)
    task = assume(cache, "pod-a-w-0", "n0")
    old = copy.deepcopy(waiting)
    old["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
    old["metadata"]["annotations"]["some"] = "thing"
    feed(cache, old)
    task = cache.tasks["pod-a-w-0"]
    assert (task.status, task.node, task.gpus) == (TaskStatus.BINDING, 0, (0,))
    feed(cache, with_status(waiting, "Pending", "n0", gpus="0"))
    assert cache.tasks["pod-a-w-0"].status is TaskStatus.BOUND
    assert cache.nodes.used[0, 0] == 2000
    assert cache.nodes.gpu_free[0] == 0b10


def test_a_failed_bind_gives_everything_back():
    cache = SchedulerCache()
    feed(cache, node("n0", gpu=2), group("a", 1), pod("a", "w", 0, {"cpu": 2, "gpu": 1}))
    task = assume(cache, "pod-a-w-0", "n0")
    cache.bind_failed(task.uid)
    assert (task.status, task.node, task.gpus) == (TaskStatus.PENDING, NO_NODE, ())
    assert not cache.nodes.used.any()
    assert cache.nodes.gpu_free[0] == 0b11


def test_a_pod_bound_elsewhere_moves():
    cache = SchedulerCache()
    waiting = pod("a", "w", 0, {"cpu": 2})
    feed(cache, node("n0"), node("n1"), waiting)
    assume(cache, "pod-a-w-0", "n0")
    feed(cache, with_status(waiting, "Running", "n1"))
    assert cache.nodes.used[:2, 0].tolist() == [0, 2000]


def test_finished_pods_leave_their_node_and_stay_in_their_job():
    cache = SchedulerCache()
    feed(cache, node("n0"), group("a", 1), with_status(pod("a", "w", 0, {"cpu": 2}), "Running", "n0"))
    feed(cache, with_status(pod("a", "w", 0, {"cpu": 2}), "Succeeded", "n0"))
    assert not cache.nodes.used.any()
    assert cache.jobs["default/a"].count(TaskStatus.SUCCEEDED) == 1


def test_a_leaving_pod_is_releasing():
    cache = SchedulerCache()
    feed(cache, node("n0"), with_status(pod("a", "w", 0, {"cpu": 2}), "Running", "n0", deleting=True))
    assert cache.nodes.releasing[0, 0] == cache.nodes.used[0, 0] == 2000


def test_a_node_that_comes_back_has_its_pods_again():
    cache = SchedulerCache()
    feed(cache, node("n0"), node("n1"), with_status(pod("a", "w", 0, {"cpu": 2}), "Running", "n0"))
    feed(cache, node("n0"), type="DELETED")
    assert len(cache.nodes) == 1
    assert not cache.nodes.used.any()
    feed(cache, node("n2"), node("n0"))
    assert cache.nodes.used[cache.nodes.index["n0"], 0] == 2000
    assert cache.nodes.index["n2"] == 0


def test_a_heartbeat_changes_nothing():
    cache = SchedulerCache()
    feed(cache, node("n0"))
    version = cache.nodes.static_version
    beat = node("n0")
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2030-01-01T00:00:05Z"
    feed(cache, beat)
    assert cache.nodes.static_version == version
    feed(cache, node("n0", labels={"new": "label"}))
    assert cache.nodes.static_version > version


def test_a_vanished_group_leaves_orphans_that_only_use_their_nodes():
    cache = SchedulerCache()
    feed(cache, node("n0"), group("a", 1), with_status(pod("a", "w", 0, {"cpu": 2}), "Running", "n0"))
    feed(cache, group("a", 1), type="DELETED")
    assert not cache.jobs["default/a"].obj
    feed(cache, pod("a", "w", 0, {"cpu": 2}), type="DELETED")
    assert not cache.jobs
    assert not cache.nodes.used.any()


def test_pods_of_other_schedulers_that_wait_are_not_ours():
    cache = SchedulerCache()
    other = pod("a", "w", 0, {"cpu": 2})
    other["spec"]["schedulerName"] = "default-scheduler"
    feed(cache, other)
    assert not cache.tasks


def test_the_priority_is_the_classes_else_the_global_defaults_else_zero():
    cache = SchedulerCache()
    default = {"kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    named = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    feed(cache, group("a", 1), group("b", 1, priorityClassName="high"))
    assert [cache.jobs[f"default/{name}"].priority for name in "ab"] == [0, 0]
    feed(cache, default, named)
    assert [cache.jobs[f"default/{name}"].priority for name in "ab"] == [5, 100]


def test_more_resources_than_columns_widen_everything():
    cache = SchedulerCache()
    feed(cache, node("n0"), queue("default", capability={"cpu": "4"}), group("a", 1, minResources={"cpu": "1"}))
    wide = pod("a", "w", 0, {"cpu": 1} | {f"example.com/r{i}": 1 for i in range(20)})
    feed(cache, wide, with_status(pod("b", "w", 0, {"cpu": 1}), "Running", "n0"))
    width = cache.dims.width
    assert width >= 23
    assert cache.nodes.used.shape[1] == cache.jobs["default/a"].requested.shape[0] == width
    assert len(cache.queues["default"].capability.values) == width
    assert {len(task.cls.request) for task in cache.tasks.values()} == {width}


def test_a_mended_object_comes_back_from_aside():
    cache = SchedulerCache()
    bad = group("a", 1, minResources={"cpu": "lots"})
    feed(cache, bad)
    assert cache.aside[("PodGroup", "default/a")].reason.startswith("minResources")
    feed(cache, group("a", 1))
    assert not cache.aside
    assert cache.jobs["default/a"].obj


phases = st.sampled_from(["Pending", "Bound", "Running", "Leaving", "Succeeded", "Failed", "Gone"])


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 4), phases, st.sampled_from(["n0", "n1"])), max_size=30), st.data())
def test_any_history_ends_in_the_model_of_its_last_objects(history, data):
    cache, last = SchedulerCache(), {}
    feed(cache, node("n0", gpu=8), node("n1", gpu=8), group("a", 2))
    for index, phase, where in history:
        base = pod("a", "w", index, {"cpu": index + 1, "gpu": index % 2})
        if phase == "Gone":
            feed(cache, base, type="DELETED")
            last.pop(index, None)
            continue
        status = {"Bound": "Pending", "Leaving": "Running"}.get(phase, phase)
        last[index] = with_status(base, status, "" if phase == "Pending" else where, phase == "Leaving", "0" if index % 2 else "")
        feed(cache, last[index])
    fresh = SchedulerCache()
    feed(fresh, node("n0", gpu=8), node("n1", gpu=8), group("a", 2), *last.values())
    for name in ("used", "releasing", "pipelined", "listed", "nonzero", "pod_count", "gpu_free"):
        assert np.array_equal(getattr(cache.nodes, name), getattr(fresh.nodes, name)), name
    left, right = cache.jobs["default/a"], fresh.jobs["default/a"]
    assert (left.allocated == right.allocated).all()
    assert (left.requested == right.requested).all()
    assert [sorted(tasks) for tasks in left.by_status] == [sorted(tasks) for tasks in right.by_status]
    assert cache.nodes.unsettled == fresh.nodes.unsettled
