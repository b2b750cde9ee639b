"""The scheduler's bench counts what it says, at a small size."""

from __future__ import annotations

from bench import scenarios, scheduler, worlds
from bench.worlds import Job, Template
from scheduler.conf import DEFAULT
from scheduler.snapshot import Offline, Snapshot


def test_gangs_are_placed_whole() -> None:
    found = scenarios.gangs(20, 4, 5, DEFAULT)(None)
    assert (found.pods, found.said) == (20, "20 bound in 1 cycle")
    assert found.busy > 0


def test_a_running_job_holds_its_nodes_and_a_waiting_one_does_not() -> None:
    names = worlds.node_names(2)
    jobs = [Job("a", 2, Template(4, 8), 2, nodes=names), Job("b", 1, Template(4, 8, 1), 1)]
    offline = Offline(Snapshot.of([*worlds.nodes(2), *(obj for job in jobs for obj in job.objects())]))
    assert offline.cache.nodes.used[:2, 0].tolist() == [4000, 4000]
    assert [bind.name for bind in offline.cycle().binds] == ["b-w-0"]


def test_every_aim_of_the_table_can_be_missed() -> None:
    for scenario in scheduler.SCENARIOS.values():
        assert not scenario.reached(scheduler.Measure(1e6, 1e6, pods=1, ahead=-0.1))
        assert scenario.reached(scheduler.Measure(0.001, 0.001, pods=10**6))
        assert len(scheduler.cells(scenario, scheduler.Measure(1, 1))) == len(scheduler.HEADS)
