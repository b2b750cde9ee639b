"""What is kept by changed jobs only is what a fresh count finds, whatever happened."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from cluster.port import Obj, WatchEvent
from scheduler.actions.backfill import Backfill
from scheduler.model.jobs import JobInfo
from scheduler.model.tasks import ALLOCATED_SET, TaskStatus
from scheduler.placement.oversize import Oversize
from scheduler.snapshot import Offline
from scheduler.status import StatusKeeper
from scheduler.topology.places import Places
from tests.scheduler.world import World, gang, node, queue

EVICTING = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
KINDS = {"Node": NODE, "Pod": POD, "PodGroup": POD_GROUP, "Queue": QUEUE}
QUEUES = ("default", "q", "gone")
STEPS = ("cycle", "failed", "broken", "pod", "end", "drop", "group", "regroup", "queue", "unqueue", "node", "unnode")


class History:
    """A cluster to which things happen, drawn by number; `offline` is what they happen to."""

    def __init__(self, gangs: list[tuple[int, int, int, str, bool]]) -> None:
        nodes = [node(f"n{i}", cpu=4) for i in range(3)]
        parts = []
        for i, (replicas, least, cpu, where, close) in enumerate(gangs):
            extra: Any = {"networkTopology": {"mode": "soft"}} if close else {}
            found = gang(
                f"j{i}", replicas, min(least, replicas), cpu=cpu, queue=where, at=i, minResources={"cpu": str(cpu * least)}
            )
            found[0]["spec"] |= extra
            parts += found
        self.world = World(nodes, queue("q", 2), parts, conf=EVICTING)
        self.offline: Offline = self.world.offline
        self.groups = [obj for obj in parts if obj["kind"] == "PodGroup"]

    @property
    def cache(self) -> Any:
        return self.offline.cache

    def apply(self, obj: Obj, gone: bool = False) -> None:
        self.cache.apply(WatchEvent("DELETED" if gone else "MODIFIED", KINDS[obj["kind"]], copy.deepcopy(obj)))

    def happen(self, step: str, number: int) -> Any:
        tasks = sorted(self.cache.tasks.values(), key=lambda task: task.uid)
        task = tasks[number % len(tasks)] if tasks else None
        group = self.groups[number % len(self.groups)]
        match step:
            case "cycle":
                done = self.offline.cycle()
                return done.writes.statuses, done.writes.verdicts, done.binds, done.evictions
            case "failed":
                done = self.offline.decide()
                for binding in done.binds:
                    self.cache.bind_failed(binding.uid)
                for eviction in done.evictions:
                    self.cache.evict_failed(eviction.uid)
                for write in done.writes.statuses:
                    if write.kind == POD_GROUP and (job := self.cache.jobs.get(f"{write.namespace}/{write.name}")) is not None:
                        job.sent = None
                        job.touch()
                        job.phase = str(job.obj["status"].get("phase"))
                        self.offline._keeper.forget(job.uid)
            case "broken":
                self._break()
            case "pod" if task is not None and task.pod["spec"].get("nodeName"):
                self.apply({**task.pod, "status": {"phase": "Running"}})
            case "end" if task is not None and task.pod["spec"].get("nodeName"):
                self.apply({**task.pod, "status": {"phase": ("Succeeded", "Failed")[number % 2]}})
            case "drop" if task is not None:
                self.apply(task.pod, gone=True)
            case "group":
                self.apply(group, gone=True)
            case "regroup":
                self.apply({**group, "spec": {**group["spec"], "queue": QUEUES[number % 3], "minMember": number % 4}})
            case "queue":
                self.apply(queue(QUEUES[number % 3], 1 + number % 5))
            case "unqueue":
                self.apply(queue(QUEUES[number % 3]), gone=True)
            case "node":
                self.apply(node(f"n{number % 4}", cpu=2 + number % 7))
            case "unnode":
                self.apply(node(f"n{number % 4}"), gone=True)
        return None

    def _break(self) -> None:
        was = Backfill.execute

        def fail(self: Backfill, ssn: Any) -> None:
            raise RuntimeError("broken")

        Backfill.execute = fail  # type: ignore[method-assign]
        try:
            self.offline.decide()
        except RuntimeError:
            pass
        finally:
            Backfill.execute = was  # type: ignore[method-assign]


gangs = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(1, 5), st.sampled_from(QUEUES), st.booleans()),
    min_size=1,
    max_size=5,
)
histories = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), max_size=14)
often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def counted(jobs: list[JobInfo], width: int) -> dict[str, list[int]]:
    """The five sums of some jobs, pod by pod."""
    sums = {name: np.zeros(width, np.int64) for name in ("allocated", "request", "inqueue", "elastic", "reserved")}
    for job in jobs:
        held = sum((task.request for task in job.tasks.values() if task.status in ALLOCATED_SET), np.zeros(width, np.int64))
        pending = sum((task.request for task in job.pending()), np.zeros(width, np.int64))
        running = sum(task.status in ALLOCATED_SET for task in job.tasks.values())
        least, charge = job.min_resources, np.zeros(width, np.int64)
        sums["allocated"] += held
        sums["request"] += held + pending
        sums["elastic"] += held if least is None else np.maximum(held - least.values, 0)
        if least is None or job.impossible is not None:
            continue
        if job.phase == "Inqueue" or (job.phase == "Running" and running >= job.min_available):
            charge = np.where(least.present, np.maximum(least.values - held, 0), 0)
        sums["inqueue"] += charge
        sums["reserved"] += least.values if job.phase == "Inqueue" else charge
    return {name: amount.tolist() for name, amount in sums.items()}


def check(cache: Any) -> None:
    roster, width = cache.groups.roster, cache.dims.width
    with_group = [job for job in cache.jobs.values() if job.obj]
    for name in {*QUEUES, *cache.queues}:
        members = [job for job in with_group if job.queue == name and name in cache.queues]
        found = roster.holdings(name)
        assert {field: getattr(found, field).tolist() for field in found.__slots__} == counted(members, width)
    here = {job.uid for job in with_group if job.queue in cache.queues}
    assert roster.jobs.keys() == here
    assert roster.strays.keys() == {job.uid for job in with_group} - here
    assert {uid for name in cache.queues for uid in cache.queues[name].jobs} == here
    idle = {
        uid for uid in here if cache.jobs[uid].phase in ("Running", "Completed") and not cache.jobs[uid].count(TaskStatus.PENDING)
    }
    assert roster.active.keys() == here - idle
    assert all(roster.jobs[uid] is cache.jobs[uid] for uid in here)


@often
@given(gangs, histories)
def test_sums_and_members_are_those_of_a_fresh_count_after_any_history(drawn, history):
    at = History(drawn)
    for step, number in history:
        at.happen(step, number)
        check(at.cache)


@often
@given(gangs, histories)
def test_at_the_opening_of_a_session_what_is_too_large_and_where_gangs_are_is_as_if_found_anew(drawn, history):
    at = History(drawn)
    for step, number in history:
        at.happen(step, number)
        session = at.cache.open_session("s", at.offline.conf, now=0.0, random=None)
        fresh = Oversize(at.cache.nodes, at.cache.dims)
        kept = {uid: job.impossible for uid, job in session.roster.active.items()}
        fresh.mark(session.roster.active.values())
        assert {uid: job.impossible for uid, job in session.roster.active.items()} == kept
        places = Places(session.places.tree, session.jobs.values())
        assert (session.places.of_job, session.places.of_sub) == (places.of_job, places.of_sub)


class Thorough(StatusKeeper):
    """A keeper that looks at every job in every cycle."""

    def _due(self, ssn: Any) -> list[str]:
        return list(dict.fromkeys([*super()._due(ssn), *ssn.jobs, *self._told]))


@often
@given(gangs, histories)
def test_a_keeper_that_looks_at_changed_jobs_says_what_one_that_looks_at_all_says(drawn, history):
    quick, thorough = History(drawn), History(drawn)
    thorough.offline._keeper = Thorough()
    for step, number in [*history, ("cycle", 0), ("cycle", 0)]:
        found, expected = quick.happen(step, number), thorough.happen(step, number)
        assert bool(found) == bool(expected)
        if found and expected:
            key = lambda write: (write.kind.kind, write.namespace, write.name)  # noqa: E731
            assert sorted(found[0], key=key) == sorted(expected[0], key=key)
            assert found[1:] == expected[1:]
