"""drf with hierarchy: shares of a tree of queues by hand, by Volcano's own tables, and by the rules written out plainly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.port import Obj
from scheduler.framework.plugin import Event
from scheduler.model.tasks import TaskStatus
from scheduler.plugins.fair_tree import FairTree
from tests.scheduler.plugins.world import World as Model
from tests.scheduler.world import World, gang, node, queue

CONF = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - name: drf
    enableHierarchy: true
"""


def placed(name: str, hierarchy: str, weights: str) -> Obj:
    found = queue(name)
    found["metadata"]["annotations"] = {"volcano.sh/hierarchy": hierarchy, "volcano.sh/hierarchy-weights": weights}
    return found


def ask(name: str, where: str, replicas: int, cpu: object, memory: str) -> list[Obj]:
    return gang(name, replicas, 0, queue=where, cpu=cpu, memory=memory)


def test_a_house_whose_teams_want_different_things_gets_both() -> None:
    # sci and eng halve the cluster; dev's cpus and prod's memory together are eng's half.
    world = World(
        node("n", 10, "10G", pods=50), placed("sci", "root/sci", "100/50"), placed("dev", "root/eng/dev", "100/50/50"),
        placed("prod", "root/eng/prod", "100/50/50"), ask("pg1", "sci", 10, 1, "1G"), ask("pg21", "dev", 10, 1, "0"),
        ask("pg22", "prod", 10, 0, "1G"), conf=CONF,
    )  # fmt: skip
    assert world.cycle().started() == {"pg1": 5, "pg21": 5, "pg22": 5}


def test_a_saturated_job_does_not_hold_up_its_siblings() -> None:
    world = World(
        node("n", 30, "30G", pods=500), placed("q1", "root/pg1", "100/25"), placed("q2", "root/pg2", "100/25"),
        placed("q31", "root/pg3/pg31", "100/25/50"), placed("q32", "root/pg3/pg32", "100/25/50"),
        placed("q4", "root/pg4", "100/25"), ask("pg1", "q1", 30, 1, "0"), ask("pg2", "q2", 30, 1, "0"),
        ask("pg31", "q31", 30, 1, "0"), ask("pg32", "q32", 30, 0, "1G"), ask("pg4", "q4", 30, 0, "1G"), conf=CONF,
    )  # fmt: skip
    assert world.cycle().started() == {"pg1": 10, "pg2": 10, "pg31": 10, "pg32": 15, "pg4": 15}


def test_weights_divide() -> None:
    world = World(
        node("n", 9, "90G"), placed("a", "root/a", "1/2"), placed("b", "root/b", "1/1"), ask("a", "a", 9, 1, "1G"),
        ask("b", "b", 9, 1, "1G"), conf=CONF,
    )  # fmt: skip
    assert world.cycle().started() == {"a": 6, "b": 3}


@pytest.mark.parametrize("weights", ["", "1", "x/y", "1/0.5", "1/-3", "1/nan", "1/inf", "//", "1/1e999"])
def test_a_weight_that_is_none_is_one(weights: str) -> None:
    world = World(
        node("n", 8, "80G"), placed("a", "root/a", weights), placed("b", "root/b", "1/1"), ask("a", "a", 8, 1, "1G"),
        ask("b", "b", 8, 1, "1G"), conf=CONF,
    )  # fmt: skip
    assert world.cycle().started() == {"a": 4, "b": 4}


def test_queues_without_a_path_leave_the_order_to_others() -> None:
    world = World(node("n", 2, "8G"), queue("a"), queue("b"), ask("x", "b", 2, 1, "1G"), ask("y", "a", 2, 1, "1G"), conf=CONF)
    assert world.cycle().started() == {"y": 2}


# -- reclaiming ----------------------------------------------------------------------------------------------------------


def reclaim(weights: dict[str, int], held: dict[str, int], mine: str) -> dict[str, int]:
    """Victims by queue when a queue of one level wants one more cpu of ten that are taken."""
    at = Model()
    at.node("n", cpu=10, memory="100Gi")
    tasks = []
    for name, weight in weights.items():
        at.queue(name, annotations={"volcano.sh/hierarchy": f"root/{name}", "volcano.sh/hierarchy-weights": f"1/{weight}"})
        job = at.job(f"{name}-job", name)
        tasks += [at.task(job, at.cls({"cpu": 1}), node=0) for _ in range(held[name])]
        for _ in range(3):
            at.task(job, at.cls({"cpu": 1}))
    session = at.session("drf", enableHierarchy=True)
    reclaimer = next(iter(at.jobs[f"ns/{mine}-job"].by_status[TaskStatus.PENDING].values()))
    before = dump(at, session)
    (rule,) = session.functions("reclaimable")
    others = [task for task in tasks if task.job is not reclaimer.job]
    found: dict[str, int] = {}
    for task in rule(reclaimer, others):
        found[task.job.queue] = found.get(task.job.queue, 0) + 1
    assert dump(at, session) == before
    return found


def dump(at: Model, session: Any) -> list[Any]:
    return [session.queue_key(queue) for queue in at.queues.values()]


def test_the_queue_that_would_still_come_first_may_reclaim() -> None:
    # b goes from 2 to 3 and a from 8 to 7: still first, for each of a's tasks alone.
    assert reclaim({"a": 1, "b": 1}, {"a": 8, "b": 2}, "b") == {"a": 8}
    # From 4 to 5, against 6 to 5: no longer strictly first.
    assert reclaim({"a": 1, "b": 1}, {"a": 6, "b": 4}, "b") == {}
    # Twice the weight: b deserves two thirds.
    assert reclaim({"a": 1, "b": 2}, {"a": 6, "b": 4}, "b") == {"a": 6}
    assert reclaim({"a": 1, "b": 1, "c": 1}, {"a": 6, "b": 1, "c": 3}, "b") == {"a": 6}


# -- the rules written out -----------------------------------------------------------------------------------------------


class Plain:
    """The tree in exact fractions, computed anew at each question, child by child."""

    def __init__(self, total: list[int], jobs: dict[str, tuple[tuple[str, ...], list[int], list[int]]]) -> None:
        self.total, self.jobs = total, jobs
        allocated = [sum(held[i] for _, held, _ in jobs.values()) for i in range(len(total))]
        self.exhausted = [have >= most for have, most in zip(allocated, total)]

    def share(self, held: Any) -> Fraction:
        return max((Fraction(have) / most for have, most in zip(held, self.total) if most), default=Fraction(0))

    def node(self, path: tuple[str, ...]) -> tuple[bool, Fraction, list[Fraction]]:
        """(saturated, share, held) of an inner node."""
        children = []
        for where, held, request in self.jobs.values():
            if where == path:
                full = any(h and r and (h >= r or out) for h, r, out in zip(held, request, self.exhausted))
                children.append((full, self.share(held), [Fraction(h) for h in held]))
        below = {
            where[: len(path) + 1] for where, _, _ in self.jobs.values() if len(where) > len(path) and where[: len(path)] == path
        }
        children += [self.node(each) for each in sorted(below)]
        least = min((share for full, share, _ in children if share and not full), default=Fraction(1))
        least = min(least, Fraction(1))
        held = [Fraction(0)] * len(self.total)
        for full, share, amounts in children:
            if share:
                scale = Fraction(1) if full else least / share
                held = [have + more * scale for have, more in zip(held, amounts)]
        return all(full for full, _, _ in children), self.share(held), held


@st.composite
def trees(draw: Any) -> Any:
    total = [draw(st.integers(1, 40)), draw(st.integers(1, 40)), draw(st.integers(1, 60))]
    jobs = {}
    for i in range(draw(st.integers(1, 6))):
        path = tuple(draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=3)))
        held = [draw(st.integers(0, 8)) for _ in total]
        request = [have + draw(st.integers(0, 3)) for have in held]
        jobs[f"j{i}"] = (path, held, request)
    changes = draw(
        st.lists(st.tuples(st.sampled_from(sorted(jobs)), st.lists(st.integers(0, 3), min_size=3, max_size=3)), max_size=4)
    )
    return total, jobs, changes


@settings(deadline=None)
@given(trees())
def test_shares_and_saturation_follow_the_rules_after_every_change(drawn: Any) -> None:
    total, jobs, changes = drawn
    at = Model()
    infos = {}
    for name, (path, _, _) in jobs.items():
        where = "-".join(path)
        if where not in at.queues:
            annotations = {"volcano.sh/hierarchy": "root/" + "/".join(path), "volcano.sh/hierarchy-weights": "1/2/3/4"}
            at.queue(where, annotations=annotations)
        infos[name] = at.job(name, where)
    capacity = vector(at, total)
    tree = FairTree(capacity, np.flatnonzero(capacity > 0))
    for name, (_, held, request) in jobs.items():
        tree.add(at.queues[infos[name].queue], infos[name], vector(at, held), vector(at, request))
    tree.settle()
    for step in [None, *changes]:
        if step is not None:
            name, more = step
            path, held, request = jobs[name]
            jobs[name] = (path, [have + add for have, add in zip(held, more)], request)
            tree.take(at.queues[infos[name].queue], infos[name], vector(at, more))
        oracle = Plain(total, jobs)
        for place in at.queues.values():
            for depth, found in enumerate(tree.path(place), 1):
                saturated, share, _ = oracle.node(tuple(place.name.split("-")[:depth]))
                assert found.saturated == saturated
                assert found.share == pytest.approx(float(share), rel=1e-12)


def vector(at: Model, values: list[int]) -> Any:
    """(cpu in milli, memory in bytes, pods)."""
    return at.dims.amounts(dict(zip(("cpu", "memory", "pods"), values))).values


def test_events_keep_the_tree_up_to_date() -> None:
    at = Model()
    at.node("n", cpu=10, memory="10Gi")
    annotations = {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"}
    queue = at.queue("q", annotations=annotations)
    job = at.job("j", "q")
    task = at.task(job, at.cls({"cpu": 5}))
    at.task(job, at.cls({"cpu": 5}))
    session = at.session("drf", enableHierarchy=True)
    session.allocated(Event(job, [task], task.request))
    assert session.queue_key(queue)[0] == (0, (False, 0.25))
    session.deallocated(Event(job, [task], task.request))
    assert session.queue_key(queue)[0] == (0, (False, 0.0))
