"""Cycles over a model that is afterwards as it was."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.kinds import POD, POD_GROUP, QUEUE
from cluster.port import WatchEvent
from scheduler import conf as configuration
from scheduler.cache import SchedulerCache
from scheduler.snapshot import Snapshot
from scheduler.whatif import Sandbox, compare, largest
from tests.scheduler.world import CONF, gang, node, queue

EVICTING = CONF.replace("enqueue, allocate, backfill", "enqueue, allocate, preempt, reclaim, backfill")
NOW = 1_000_000.0


def sandbox(*parts: Any, conf: str = EVICTING) -> Sandbox:
    objs = [obj for part in parts for obj in (part if isinstance(part, list) else [part])]
    return Sandbox(Snapshot.of(objs, conf).cache(), configuration.load(conf), now=NOW)


def traits(cache: SchedulerCache) -> Any:
    """Everything that a session reads of a model."""
    nodes = cache.nodes
    rows = {
        name: (
            nodes.allocatable[row].tolist(), nodes.used[row].tolist(),
            nodes.releasing[row].tolist(), nodes.pipelined[row].tolist(),
            int(nodes.gpu_free[row]), int(nodes.pod_count[row]), sorted(nodes.tasks[row]),
        )
        for name, row in nodes.index.items()
    }  # fmt: skip
    tasks = {uid: (task.status, task.node, task.gpus, task.role, task.job and task.job.uid) for uid, task in cache.tasks.items()}
    jobs = {
        uid: (
            job.phase,
            job.min_available,
            job.queue,
            job.priority,
            job.allocated.tolist(),
            job.requested.tolist(),
            job.admitted_at,
        )
        for uid, job in cache.jobs.items()
    }
    roster = cache.groups.roster
    roster.settle()
    held = {
        name: [part.tolist() for part in (roster.holdings(name).allocated, roster.holdings(name).inqueue)]
        for name in cache.queues
    }
    return rows, tasks, jobs, held, sorted(roster.active)


def outcome(played: Any) -> Any:
    binds = {uid: [(each.name, each.node, each.annotations) for each in found] for uid, found in played.binds.items()}
    return binds, [each.victim for each in played.evictions], played.admitted, played.line, played.verdicts


def running(name: str, count: int, place: str, **more: Any) -> list[dict[str, Any]]:
    objs = gang(name, count, at=1, **more)
    objs[0]["status"]["phase"] = "Running"
    for pod in objs[1:]:
        pod["spec"]["nodeName"] = place
        pod["status"]["phase"] = "Running"
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = "true"
    return objs


@st.composite
def worlds(draw: Any) -> tuple[list[Any], list[WatchEvent]]:
    nodes = [node(f"n{i}", cpu=draw(st.integers(2, 8)), gpu=8) for i in range(draw(st.integers(1, 3)))]
    queues = [queue("a"), queue("b", weight=draw(st.integers(1, 4)))]
    parts: list[Any] = [*nodes, *queues]
    names = st.sampled_from(["a", "b"])
    for i in range(draw(st.integers(0, 3))):
        parts.append(running(f"r{i}", 1, f"n{i % len(nodes)}", cpu=1, gpu=draw(st.integers(1, 3)), queue=draw(names)))
    waiting = [
        gang(f"w{i}", draw(st.integers(1, 3)), cpu=1, gpu=draw(st.integers(1, 6)), queue=draw(names), at=10 + i)
        for i in range(draw(st.integers(1, 4)))
    ]
    parts += waiting
    group, *pods = waiting[0]
    changes = draw(
        st.sampled_from(
            [
                [WatchEvent("MODIFIED", POD_GROUP, {**group, "spec": {**group["spec"], "minMember": 1, "queue": "b"}})],
                [WatchEvent("DELETED", POD, pods[-1])],
                [*(WatchEvent("DELETED", POD, pod) for pod in pods), WatchEvent("DELETED", POD_GROUP, group)],
                [WatchEvent("MODIFIED", QUEUE, queue("a", weight=9, capability={"nvidia.com/gpu": "2"}))],
                [WatchEvent("ADDED", kind, obj) for kind, obj in zip([POD_GROUP, POD], gang("new", 1, cpu=1, gpu=2, queue="a"))],
            ]
        )
    )
    return parts, changes


@settings(deadline=None, max_examples=60)
@given(worlds(), st.booleans())
def test_a_trial_leaves_no_trace(made: Any, alone: bool):
    parts, changes = made
    box = sandbox(*parts)
    before, first = traits(box.cache), outcome(box.play())
    assert traits(box.cache) == before
    box.play(changes, only={"default/w0"} if alone else None)
    assert traits(box.cache) == before
    assert outcome(box.play()) == first
    assert outcome(sandbox(*parts).play()) == first


def test_pods_that_left_in_a_trial_hold_the_same_gpus_afterwards():
    parts = [running(f"r{i}", 1, "n0", cpu=1, gpu=1 + i) for i in range(3)]
    box = sandbox(node("n0", cpu=8, gpu=8), *parts)
    before = traits(box.cache)
    assert [box.cache.tasks[f"pod-r{i}-w-0"].gpus for i in range(3)] == [(0,), (1, 2), (3, 4, 5)]
    box.play([WatchEvent("DELETED", POD, pods[1]) for pods in parts])
    assert traits(box.cache) == before


def test_it_says_what_would_be_placed_and_in_which_line():
    box = sandbox(node("n0", gpu=8), gang("a", 2, gpu=3, at=1), gang("b", 1, gpu=4, at=2))
    played = box.play()
    assert [bind.name for bind in played.binds["default/a"]] == ["a-w-0", "a-w-1"]
    assert played.started == {"default/a"}
    assert played.line == ["default/a", "default/b"]
    verdict = played.verdicts["default/b"]
    assert verdict is not None
    assert (verdict.asked, verdict.free, verdict.short) == (4000, 2000, 2000)


def test_with_a_change_another_job_starts_and_the_first_waits():
    parts = node("n0", gpu=8), gang("a", 2, gpu=3, at=1), gang("b", 1, gpu=8, at=2)
    box = sandbox(*parts)
    group, *pods = gang("a", 2, gpu=3, at=1)
    later = [
        WatchEvent(
            "MODIFIED", POD_GROUP, {**group, "metadata": {**group["metadata"], "creationTimestamp": "2031-01-01T00:00:00Z"}}
        )
    ]
    told = compare(box.play(), box.play(later))
    assert (told.starts, told.delayed) == (["default/b"], ["default/a"])
    assert len(pods) == 2


def test_only_some_are_served():
    box = sandbox(node("n0", gpu=8), gang("a", 1, gpu=8, at=1), gang("b", 1, gpu=8, at=2))
    assert box.play(only={"default/b"}).started == {"default/b"}
    assert box.play().started == {"default/a"}


def test_it_ends_when_the_job_has_started():
    box = sandbox(node("n0", gpu=8), gang("a", 1, gpu=1, at=1))
    assert box.play(until="default/a").cycles == 1
    assert box.play().cycles == 2


@given(st.integers(-3, 40), st.integers(-3, 40))
def test_the_largest_number_that_is_enough(limit: int, high: int):
    tried: list[int] = []

    def try_(number: int) -> str | None:
        tried.append(number)
        return f"found {number}" if number <= limit else None

    best = min(limit, high)
    assert largest(1, high, try_) == ((best, f"found {best}") if best >= 1 else None)
    assert len(tried) <= 8
