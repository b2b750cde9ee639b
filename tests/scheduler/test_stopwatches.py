"""Each plugin's time by action: what its functions take, less what they spend in others'."""

from __future__ import annotations

import pytest

from scheduler.framework import stopwatches
from scheduler.framework.registrations import Allocatable, Predicate
from scheduler.framework.stopwatches import EVERY, EXACTLY, Stopwatches
from scheduler.framework.turns import Hierarchy
from scheduler.snapshot import Offline, Snapshot
from tests.scheduler.world import CONF, gang, node, queue


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch):
    found = Time()
    monkeypatch.setattr(stopwatches, "perf_counter", found)
    return found


def works(time: Time, seconds: float, answer: object = None):
    def ask(*given):
        time.now += seconds
        return answer

    return ask


def test_a_function_answers_as_before_and_its_time_is_its_plugins(time):
    watches = Stopwatches()
    assert watches.watched("gang", works(time, 0.25, "yes"))("job") == "yes"
    assert watches.taken() == {"gang": 250.0}
    assert watches.taken() == {}


def test_what_is_spent_in_another_plugin_counts_for_that_one_alone(time):
    watches = Stopwatches()
    inner = watches.watched("drf", works(time, 0.125))

    def outer(job):
        time.now += 0.5
        inner(job)
        inner(job)

    watches.watched("gang", outer)("job")
    assert watches.taken() == {"gang": 500.0, "drf": 250.0}


def test_a_function_that_is_asked_very_often_is_timed_now_and_then_and_that_counts_for_all(time):
    watches = Stopwatches()
    ask = watches.watched("priority", works(time, 0.5))
    for _ in range(EXACTLY + 10 * EVERY):
        ask("job")
    assert watches.taken() == {"priority": (EXACTLY + 10 * EVERY) * 500.0}


def test_bundles_are_watched_function_by_function_and_stay_what_they_are(time):
    watches = Stopwatches()
    item = watches.watched(
        "predicates",
        Predicate("taint", works(time, 1.0), True, False, works(time, 9.0, True), lambda cls: works(time, 0.5, cls == "a")),
    )
    assert item.applies("cls")
    assert watches.taken() == {}
    item.check("cls", "block")
    assert item.alone("a")("node") is True
    assert watches.taken() == {"predicates": 1500.0}
    assert watches.watched("x", Predicate("c", works(time, 0), True, False, None, lambda cls: None)).alone("a") is None
    assert watches.watched("x", Allocatable(works(time, 0), works(time, 0))).gate is None
    assert isinstance(watches.watched("x", Hierarchy(works(time, 0), works(time, 0))), Hierarchy)


def test_a_cycle_tells_the_plugins_of_each_action_and_never_more_than_the_action_took():
    objs = [*(node(f"n{i}", gpu=8) for i in range(4)), queue("q0"), queue("default")]
    for name in ("a", "b", "c"):
        objs += gang(name, 4, cpu=1, gpu=2)
    record = Offline(Snapshot.of(objs, CONF)).cycle().record
    assert list(record.hooks) == list(record.actions) == ["enqueue", "allocate", "backfill"]
    assert {"gang", "predicates", "nodeorder", "proportion", "drf"} <= record.hooks["allocate"].keys()
    assert "nodeorder" not in record.hooks["enqueue"]
    for action, plugins in record.hooks.items():
        assert all(spent > 0 for spent in plugins.values())
        assert sum(plugins.values()) <= record.actions[action]
