"""What is told of one object is bounded: so much at once, then ever less."""

from __future__ import annotations

from cluster.kinds import EVENT
from jobs.controller.events import EventRecorder
from tests.jobs.world import World, job


def test_the_twenty_sixth_event_of_an_object_waits_for_its_turn_and_others_are_told(world: World) -> None:
    first, second = world.submit(job("first")), world.submit(job("second"))
    recorder = EventRecorder(world.cluster, world.clock)
    for number in range(40):
        recorder.normal(first, "ExecuteAction", f"RestartJob {number}")
    recorder.normal(second, "ExecuteAction", "RestartJob")

    def told(name: str) -> int:
        return sum(event["involvedObject"]["name"] == name for event in world.cluster.list(EVENT).items)

    assert (told("first"), told("second")) == (25, 1)
    world.clock.advance(300.0)
    for number in range(40, 43):
        recorder.normal(first, "ExecuteAction", f"RestartJob {number}")
    assert told("first") == 26
