"""Events told in measure, by the numbers of client-go's correlator."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.admission import Admission
from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Unavailable
from cluster.events import event_about
from cluster.kinds import EVENT
from cluster.port import Obj, Outcome
from cluster.recorder import Budget, Correlator, EventRecorder

START = 1_900_000_000.0


class World:
    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.cluster = EmbeddedCluster(clock=self.clock, admission=Admission())
        self.recorder = EventRecorder(self.cluster, self.clock.now)
        self.number = 0

    def event(self, message: str, *, name: str = "p", reason: str = "FailedScheduling", component: str = "sched") -> Obj:
        self.number += 1
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"}}
        stamp = f"2030-01-01T00:00:{self.number % 60:02}Z"
        return event_about(about, "Warning", reason, message, stamp=stamp, component=component, name=f"{name}.{self.number:x}")

    def tell(self, *messages: str, **more: str) -> None:
        for message in messages:
            self.recorder.record([self.event(message, **more)])

    def told(self) -> list[tuple[str, int]]:
        found = sorted(self.cluster.list(EVENT).items, key=lambda e: int(e["metadata"]["name"].rpartition(".")[2], 16))
        return [(e["message"], e["count"]) for e in found]


@pytest.fixture
def world() -> World:
    return World()


def test_the_same_again_raises_the_count_of_the_event_that_is_there(world: World) -> None:
    world.tell("no room", "no room", "no room")
    (event,) = world.cluster.list(EVENT).items
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        3, "2030-01-01T00:00:01Z", "2030-01-01T00:00:03Z",
    )  # fmt: skip


def test_the_same_within_one_batch_is_one_event(world: World) -> None:
    world.recorder.record([world.event("no room") for _ in range(3)])
    assert world.told() == [("no room", 3)]


def test_another_object_reason_or_source_is_another_event(world: World) -> None:
    world.tell("x")
    world.tell("x", name="q")
    world.tell("x", reason="Evict")
    world.tell("x", component="other")
    assert world.told() == [("x", 1)] * 4


def test_the_tenth_message_in_ten_minutes_and_what_follows_are_combined(world: World) -> None:
    world.tell(*(f"m{n}" for n in range(12)))
    told = world.told()
    assert told[:9] == [(f"m{n}", 1) for n in range(9)]
    assert told[9:] == [("(combined from similar events): m11", 3)]


def test_after_ten_quiet_minutes_messages_are_told_by_themselves_again(world: World) -> None:
    world.tell(*(f"m{n}" for n in range(10)))
    world.clock.advance(601)
    world.tell("later")
    assert world.told()[-1] == ("later", 1)


def test_a_source_tells_of_an_object_25_events_at_once_then_one_in_five_minutes(world: World) -> None:
    writes: list[str] = []
    whole = world.cluster.patch_many
    world.cluster.patch_many = lambda kind, patches, **more: (writes.append("patch"), whole(kind, patches, **more))[1]
    world.tell(*["no room"] * 100)
    assert (len(writes), world.recorder.dropped) == (24, 75)
    assert world.told() == [("no room", 25)]
    world.clock.advance(299)
    world.tell("no room")
    assert len(writes) == 24
    world.clock.advance(1)
    world.tell("no room")
    assert len(writes) == 25
    assert world.told() == [("no room", 102)], "what was not told is counted all the same"
    world.tell("x", name="other")
    assert world.told()[-1] == ("x", 1), "another object has a budget of its own"


def test_whatever_happens_to_however_many_objects_there_is_a_bound(world: World) -> None:
    correlator = Correlator(world.clock.now)
    told = sum(correlator.correlate(world.event("x", name=f"p{n}")) is not None for n in range(7000))
    assert (told, correlator.dropped) == (5000, 2000)
    world.clock.advance(2)
    told = sum(correlator.correlate(world.event("x", name=f"q{n}")) is not None for n in range(1000))
    assert told == 100
    assert max(len(kept._kept) for kept in (correlator._told, correlator._budgets, correlator._alike)) == 4096


def test_an_event_that_the_server_has_forgotten_is_made_anew(world: World) -> None:
    world.tell("no room")
    (event,) = world.cluster.list(EVENT).items
    world.cluster.delete(EVENT, event["metadata"]["name"], "default")
    world.tell("no room")
    assert world.told() == [("no room", 2)]


def test_one_that_was_refused_is_not_tried_again_and_hinders_no_later_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: Any, objects: list[Obj], **_: Any) -> list[Outcome]:
        return [Outcome("", "", Unavailable("away")) for _ in objects]

    with monkeypatch.context() as away:
        away.setattr(world.cluster, "create_many", refuse)
        world.tell("no room")
    world.tell("no room")
    assert world.told() == [("no room", 1)]


def test_a_budget_is_filled_by_time_and_never_beyond_its_burst() -> None:
    budget = Budget(2, 0.5, 0.0)
    assert [budget.take(at) for at in (0, 0, 0, 1, 2, 2)] == [True, True, False, False, True, False]
    assert [budget.take(1000) for _ in range(3)] == [True, True, False]
    assert not budget.take(0), "a clock that goes back gives nothing"
