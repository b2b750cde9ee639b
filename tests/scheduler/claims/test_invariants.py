"""What holds of claims for every cluster: plans leave no trace when they are undone, and nothing is given twice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import conf
from scheduler.dynamic.allocator import allocate
from scheduler.dynamic.asks import Ask, Constraint, Request
from scheduler.dynamic.catalog import Device, allocation_of
from scheduler.framework.statement import Cause, Statement
from tests.scheduler.claims.make import (
    allocated,
    claim,
    device_class,
    mounting,
    request,
    resource_claim,
    slice_of,
    storage_class,
    using,
    volume,
)
from tests.scheduler.world import CONF, World, gang, node, pod

LOCAL = "kubernetes.io/no-provisioner"


def cluster(sizes: list[tuple[int, int]]) -> World:
    """Three nodes with volumes and devices, a pod that holds one of each, and jobs that want some."""
    held = pod("old", "w", 0, {"cpu": 1}, nodeName="n0", **using("held"))
    held["status"]["phase"] = "Running"
    parts: list[Any] = [node(f"n{i}") for i in range(3)]
    parts += [storage_class("fast", LOCAL), storage_class("made"), device_class()]
    parts += [volume(f"pv{i}", f"{1 + i % 2}Gi", on=f"n{i % 3}") for i in range(4)]
    parts += [slice_of(f"n{i}", 2) for i in range(3)]
    parts += [*gang("old", 0, 0, at=0), held, resource_claim("held", status=allocated("n0", "gpu-0", users=("old-w-0",)))]
    for i, (size, count) in enumerate(sizes):
        of = "made" if i % 3 == 2 else "fast"
        parts += [claim(f"d{i}", f"{size}Gi", of=of), resource_claim(f"c{i}", request("req", count))]
        parts += gang(f"j{i}", 1, cpu=1, pod_spec={**mounting(f"d{i}"), **using(f"c{i // 2}")}, at=i)
    return World(parts)


def picture(ssn: Any) -> Any:
    estate = ssn.estate
    promises = {key: (each.choice, sorted(each.holders)) for key, each in estate.storage.promises.items()}
    grants = {key: (str(each.choice), sorted(each.holders)) for key, each in estate.devices.grants.items()}
    taken = {f"pv{i}": estate.storage.owner_of(f"pv{i}") for i in range(4)}
    supplies = {uid: (task.supply, task.status, task.node) for uid, task in estate.tasks.items()}
    return promises, grants, taken, supplies, ssn.nodes.used.tolist(), ssn.nodes.pipelined.tolist()


def answers(ssn: Any) -> Any:
    """What every check says of every waiting task now."""
    found = {}
    for job in ssn.jobs.values():
        for task in job.pending():
            standing = ssn.evaluator.standing(task.cls)
            open_ = standing.views.idle | standing.views.future
            ssn.evaluator.task_refusals(task, open_)
            found[task.uid] = (open_.tolist(), ssn.evaluator.task_ready(task, open_).tolist())
    return found


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), min_size=1, max_size=5), st.data())
def test_plans_undone_in_any_order_leave_everything_as_it_was(sizes: list[tuple[int, int]], data: Any) -> None:
    world = cluster(sizes)
    ssn = world.offline.cache.open_session("s", conf.load(CONF), now=0.0, random=Random(0))
    before, said = picture(ssn), answers(ssn)
    statements = []
    tasks = [task for job in ssn.jobs.values() for task in job.pending()]
    old = next(task for task in ssn.estate.tasks.values() if task.name == "old-w-0")
    if data.draw(st.booleans()):
        statements.append(Statement(ssn))
        statements[-1].evict(old, Cause("test"))
    for task in data.draw(st.permutations(tasks)):
        standing = ssn.evaluator.standing(task.cls)
        open_ = standing.views.idle.copy()
        ssn.evaluator.task_refusals(task, open_)
        ready = ssn.evaluator.task_ready(task, open_)
        rows = [row for row in range(3) if open_[row]]
        if rows:
            row = data.draw(st.sampled_from(rows))
            statement = Statement(ssn)
            (statement.allocate if ready[row] else statement.pipeline)([task], [row])
            assert task.supply.devices
            statements.append(statement)
    for statement in data.draw(st.permutations(statements)):
        statement.discard()
    assert picture(ssn) == before
    assert answers(ssn) == said


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), min_size=1, max_size=6))
def test_no_volume_and_no_device_is_given_twice(sizes: list[tuple[int, int]]) -> None:
    world = cluster(sizes).cycle(3)
    estate = world.offline.cache.estate
    volumes = Counter(estate.storage.claim(f"default/d{i}")["spec"].get("volumeName") for i in range(len(sizes)))
    del volumes[None]
    assert all(count == 1 for count in volumes.values())
    devices: Counter[tuple[str, str]] = Counter()
    for each in estate.devices.claims().values():
        found = allocation_of(each) or {"devices": {"results": []}}
        devices.update((result["pool"], result["device"]) for result in found["devices"]["results"])
    assert all(count == 1 for count in devices.values())
    assert not estate.storage.promises
    for i in range(len(sizes)):
        where = world.bound.get(f"j{i}-w-0")
        assert (where is not None) is (estate.storage.claim(f"default/d{i}")["spec"].get("volumeName") is not None)


attributes = st.fixed_dictionaries({"m": st.sampled_from(["a", "b"]), "n": st.integers(0, 1)})


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(attributes, st.booleans()), max_size=5),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["", "m", "n", "!m", "!n"])), min_size=1, max_size=2),
)
def test_the_search_finds_devices_whenever_some_choice_of_them_does(devices: Any, wanted: Any) -> None:
    listed = [Device(("d", "p", str(i)), values, {}) for i, (values, _) in enumerate(devices)]
    taken = {("d", "p", str(i)) for i, (_, is_taken) in enumerate(devices) if is_taken}
    asks = []
    for count, about in wanted:
        rule = (Constraint(f"d/{about.lstrip('!')}", frozenset(), about.startswith("!")),) if about else ()
        asks.append(Ask(((Request("r", "c", (), count),),), rule))
    found = allocate(asks, listed, taken.__contains__)
    assert (found is not None) is _possible(asks, listed, taken)
    if found is not None:
        given_ = [device.key for result in found for _, device in result]
        assert len(given_) == len(set(given_))
        assert not taken & set(given_)
        assert all(_holds(ask, [device for _, device in result]) for ask, result in zip(asks, found, strict=True))


def _possible(asks: list[Ask], devices: list[Device], taken: Any) -> bool:
    """Every choice of devices for each ask, one after the other."""
    from itertools import combinations

    if not asks:
        return True
    (request,) = asks[0].requests[0]
    free = [device for device in devices if device.key not in taken]
    if request.wants_all:
        choices = [tuple(devices)] if devices and len(free) == len(devices) else []
    else:
        choices = list(combinations(free, request.count))
    return any(
        _holds(asks[0], list(chosen)) and _possible(asks[1:], devices, taken | {device.key for device in chosen})
        for chosen in choices
    )


def _holds(ask: Ask, chosen: list[Device]) -> bool:
    for constraint in ask.constraints:
        values = [device.attribute(constraint.attribute) for device in chosen]
        if len(set(values)) != (len(values) if constraint.distinct else min(len(values), 1)):
            return False
    return True
