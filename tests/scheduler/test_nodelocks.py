"""Locks on nodes: taken with a bind, respected by everybody, given back, and void in time."""

from __future__ import annotations

import pytest

from cluster.clock import ManualClock
from cluster.embedded.kubelet import Kubelet
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Conflict
from cluster.kinds import NODE, POD
from cluster.objects import annotations, stamp
from scheduler import conf
from scheduler.framework.explain import Code
from scheduler.locker import Locker
from scheduler.loop import SchedulerLoop
from scheduler.model.nodelocks import NodeLock, is_locked
from tests.scheduler.plugins.test_deviceshare import Shared, box, many
from tests.scheduler.plugins.test_deviceshare import conf as sharing
from tests.scheduler.test_loop import cluster_with

NOW = 1_900_000_000.0
LOCKING = sharing(VGPUEnable=True, NodeLockEnable=True)


@pytest.mark.parametrize(
    ("mark", "locked"),
    [
        (None, False),
        (stamp(NOW), True),
        (stamp(NOW - 300), True),
        (stamp(NOW - 301), False),
        ("yesterday", True),
    ],
)
def test_a_lock_stands_for_five_minutes(mark: str | None, locked: bool) -> None:
    assert is_locked({} if mark is None else {"hamivgpu": mark}, "hamivgpu", NOW) is locked


def test_a_node_gives_cards_to_one_pod_after_the_other() -> None:
    world = Shared(box("g", 4), box("h", 4), many(3, {"memory": 1000}, least=1), conf=LOCKING).cycle()
    assert sorted(world.bound.values()) == ["g", "h"]
    assert world.cycles[0].locks.keys() == {"pod-a-w-0", "pod-a-w-1"}
    assert [(lock.node, lock.key) for lock in world.cycles[0].locks.values()] == [("g", "hamivgpu"), ("h", "hamivgpu")]


def test_a_locked_node_is_refused_by_its_own_cause() -> None:
    locked = box("g", 4)
    locked["metadata"]["annotations"]["hamivgpu"] = stamp(1_000_000.0 - 10)
    world = Shared(locked, many(1, {"memory": 1000}), conf=LOCKING).cycle()
    assert (world.verdicts["a"].code, world.verdicts["a"].rejected) == (Code.NODES_REFUSED, {"node_lock": 1})
    world = Shared(locked, many(1, {"memory": 1000}), conf=sharing(VGPUEnable=True)).cycle()
    assert world.started() == {"a": 1}


def test_a_gang_that_needs_two_on_one_node_is_taken_back_with_its_lock() -> None:
    world = Shared(box("g", 4), many(2, {"memory": 1000}, least=2), conf=LOCKING).cycle()
    assert (world.bound, world.cycles[0].locks) == ({}, {})


def test_a_lock_is_written_before_the_bind_and_taken_away_when_the_pod_has_its_cards() -> None:
    clock = ManualClock(NOW)
    cluster = cluster_with(box("g", 4), many(2, {"memory": 1000}, least=1))
    kubelet, loop = Kubelet(cluster, clock), SchedulerLoop(cluster, conf.load(LOCKING), clock)
    loop.step()
    assert annotations(cluster.get(NODE, "g"))["hamivgpu"] == stamp(NOW)
    assert bound(cluster) == ["a-w-0"]
    loop.step()
    assert bound(cluster) == ["a-w-0"]
    clock.advance(60)
    kubelet.settle()
    first = cluster.get(POD, "a-w-0", "default")
    assert (first["status"]["phase"], annotations(first)["volcano.sh/bind-phase"]) == ("Running", "success")
    assert "hamivgpu" not in annotations(cluster.get(NODE, "g"))
    loop.step()
    assert bound(cluster) == ["a-w-0", "a-w-1"]


def test_a_bind_waits_while_somebody_else_has_the_lock() -> None:
    clock = ManualClock(NOW)
    cluster = cluster_with(box("g", 4), many(1, {"memory": 1000}))
    loop = SchedulerLoop(cluster, conf.load(LOCKING), clock)
    loop._take_in(None, None)
    Locker(cluster).take(NodeLock("g", "hamivgpu", NOW))  # behind the loop's back
    done = loop._cycle()
    loop._reports.append(loop._writer.decide(done.binds, done.evictions, done.supplies, done.locks))
    assert bound(cluster) == []
    loop.step()
    assert bound(cluster) == []
    Locker(cluster).give_back(NodeLock("g", "hamivgpu", NOW))
    loop.step()
    assert bound(cluster) == ["a-w-0"]


def test_a_failed_bind_gives_its_lock_back() -> None:
    clock = ManualClock(NOW)
    cluster = cluster_with(box("g", 4), many(1, {"memory": 1000}))
    loop = SchedulerLoop(cluster, conf.load(LOCKING), clock)
    loop._take_in(None, None)
    done = loop._cycle()
    cluster.delete(POD, "a-w-0", "default")
    report = loop._writer.decide(done.binds, done.evictions, done.supplies, done.locks)
    assert report.failed_binds == [done.binds[0].uid]
    assert "hamivgpu" not in annotations(cluster.get(NODE, "g"))


def test_only_one_of_two_takes_a_lock_and_an_old_one_is_taken_over() -> None:
    cluster = cluster_with(box("g", 4))
    Locker(cluster).take(NodeLock("g", "gpu", NOW))
    with pytest.raises(Conflict, match="locked"):
        Locker(cluster).take(NodeLock("g", "gpu", NOW + 300))
    Locker(cluster).take(NodeLock("g", "gpu", NOW + 301))
    assert annotations(cluster.get(NODE, "g"))["gpu"] == stamp(NOW + 301)


def bound(cluster: EmbeddedCluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in cluster.list(POD).items if pod["spec"].get("nodeName"))
