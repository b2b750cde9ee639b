"""Whatever is put anywhere into a flow, a template or a cron job: it is taken, or refused by faults with a place."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.errors import AlreadyExists, ApiError, BadRequest, Invalid
from cluster.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE
from cluster.pointers import pointer
from jobs import operations
from tests.jobs.cron.world import cron
from tests.jobs.flows.world import flow, make, template
from tests.jobs.world import World, job, task

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=12),
    st.sampled_from(["a", "b", "*", "@every 1ns", "0 0 30 2 *", "\x00", "retain", "Local", "x" * 300, "/", "1e999"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.just([{}]),
    st.just([None]),
)

PROBE = {
    "httpGetList": [{"taskName": "worker", "port": 80, "path": "/", "httpHeader": {"name": "A", "value": "b"}}],
    "tcpSocketList": [{"port": 80}],
    "taskStatusList": [{"taskName": "worker", "phase": "Running"}],
}
PARTS = ["a", {"name": "b", "dependsOn": {"targets": ["a"], "probe": PROBE}, "patch": {"spec": {"tasks": [task(replicas=2)]}}}]
KINDS = {"Job": JOB, "JobFlow": JOB_FLOW, "JobTemplate": JOB_TEMPLATE, "CronJob": CRON_JOB}
CRON = cron(timeZone="Asia/Shanghai", startingDeadlineSeconds=5, concurrencyPolicy="Forbid", suspend=False)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a manifest, but for what says which kind it is."""
    found = [path] if path and path[0] not in ("apiVersion", "kind") else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, item in inner for place in places(item, (*path, key))]


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@contextmanager
def stumbles() -> Iterator[list[str]]:
    """What controllers log as errors: faults of ours, which refusals are not."""
    handler = _Errors()
    logging.getLogger().addHandler(handler)
    try:
        yield handler.told
    finally:
        logging.getLogger().removeHandler(handler)


def taken(world: World, obj: dict[str, Any]) -> ApiError | None:
    """Why an object is refused; one that is not is lived with for a day, and nobody stumbles over it."""
    try:
        operations.submit_kind(world.cluster, KINDS[obj["kind"]], obj)
    except (AlreadyExists, BadRequest, Invalid) as error:
        return error
    with stumbles() as told:
        world.settle()
        world.clock.advance(86_400)
        world.settle()
    assert told == []
    return None


@pytest.mark.parametrize(
    ("obj", "path"),
    [(obj, path) for obj in (flow("f", *PARTS), template("t"), CRON, job()) for path in places(obj)],
    ids=lambda value: value["kind"] if isinstance(value, dict) else pointer(*value),
)
def test_a_null_anywhere_is_taken_or_refused_with_its_place(obj: dict[str, Any], path: tuple[Any, ...]):
    world, obj = World(nodes=1), copy.deepcopy(obj)
    make(world, template("a"), template("b"))
    *way, last = path
    holder = obj
    for step in way:
        holder = holder[step]
    holder[last] = None
    refusal = taken(world, obj)
    assert refusal is None or refusal.fields or isinstance(refusal, BadRequest)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_junk_anywhere_is_taken_or_refused_with_its_place(data: st.DataObject):
    world = World(nodes=0)
    make(world, template("a"), template("b"))
    obj = copy.deepcopy(data.draw(st.sampled_from([flow("f", *PARTS), template("t"), CRON])))
    for _ in range(data.draw(st.integers(1, 2))):
        *path, last = data.draw(st.sampled_from(places(obj)))
        holder = obj
        for step in path:
            holder = holder[step]
        holder[last] = copy.deepcopy(data.draw(JUNK))
    refusal = taken(world, obj)
    if refusal is not None:
        assert refusal.fields or isinstance(refusal, AlreadyExists | BadRequest)
        assert all(fault.pointer.startswith("/") and fault.message for fault in refusal.fields)
