"""Simulated time: when jobs start and end, what preemption costs, and that a course can be gone on with."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.simulation.accounts import Outcome
from scheduler.simulation.engine import Simulation
from scheduler.simulation.options import Options
from scheduler.simulation.workload import Job, Workload
from tests.scheduler.simulation.worlds import ALONE, PREEMPT, job, workload


def by_name(simulation: Simulation) -> dict[str, Outcome]:
    simulation.run()
    return {outcome.name: outcome for outcome in simulation.outcomes()}


def test_a_job_is_admitted_then_placed_and_runs_for_its_time() -> None:
    found = by_name(Simulation(workload(job("a", 100.0, 60.0))))
    assert (found["a"].start, found["a"].finish, found["a"].held) == (101.0, 161.0, 60.0)


def test_a_gang_waits_for_all_its_room() -> None:
    found = by_name(Simulation(workload(job("a", 0, 50, pods=1, gpus=5), job("b", 1, 10, pods=2, gpus=4))))
    assert found["a"].start == 1.0
    assert (found["b"].first_pod, found["b"].start, found["b"].finish) == (52.0, 52.0, 62.0)  # admitted at 51, when there is room


def test_time_without_events_costs_no_cycle() -> None:
    simulation = Simulation(workload(job("a", 0, 10_000_000)))
    simulation.run()
    assert simulation.totals.cycles == 4  # arrival, pods, phase, and that nothing more moved
    assert simulation.now == 10_000_001.0


def test_events_of_one_period_are_seen_by_one_cycle() -> None:
    jobs = [job(f"j{i}", i / 100, 5.0) for i in range(8)]
    found = by_name(Simulation(workload(*jobs), options=Options(period=1.0)))
    assert [found[j.name].start for j in jobs] == [1.0, *[2.0] * 7]


def test_a_preempted_gang_loses_its_work_and_begins_again() -> None:
    low = job("low", 0, 100, pods=2, gpus=4, priority_class="low")
    high = job("high", 50, 20, pods=2, gpus=4, priority_class="high")
    found = by_name(Simulation(workload(low, high, low=1, high=9), PREEMPT))
    assert found["low"].preempted == 2
    assert found["low"].starts == 2
    assert found["low"].lost == pytest.approx(8 * 50, abs=8 * 2)
    assert found["high"].start < found["low"].finish
    assert found["low"].held == pytest.approx(8 * 100 + found["low"].lost)


def test_a_job_that_saves_its_work_loses_only_what_came_after() -> None:
    low = job("low", 0, 100, pods=2, gpus=4, priority_class="low", saves=20.0)
    high = job("high", 50, 20, pods=2, gpus=4, priority_class="high")
    found = by_name(Simulation(workload(low, high, low=1, high=9), PREEMPT))
    assert 0 < found["low"].lost <= 8 * 20


def test_an_elastic_job_goes_on_slower_with_fewer_pods() -> None:
    found = by_name(Simulation(workload(job("a", 0, 100, pods=4, gpus=2, least=2), nodes=1, gpus=4)))
    assert (found["a"].start, found["a"].finish) == (1.0, 201.0)


def interleaved() -> list[Job]:
    """Two jobs of six pods; a pod of one, a pod of the other, and so on."""
    late = {"a": 0.0, "b": 0.01}
    return [job(n, 0, 10, pods=6, apart=True, delays=tuple(i / 50 + late[n] for i in range(6))) for n in late]


def test_pods_apart_can_hold_each_other_up_for_ever() -> None:
    jobs = interleaved()
    simulation = Simulation(workload(*jobs, gpus=8), ALONE)
    found = by_name(simulation)
    assert simulation.totals.deadlocks == 1
    assert [found[name].finish for name in "ab"] == [None, None]
    assert simulation.is_over


def test_pods_apart_that_give_up_come_again_at_the_end_of_the_line() -> None:
    jobs = interleaved()
    simulation = Simulation(workload(*jobs, gpus=8), ALONE, Options(patience=30, pause=20))
    found = by_name(simulation)
    assert all(found[name].finish is not None for name in "ab")
    assert simulation.totals.deadlocks >= 1
    assert simulation.totals.locked > 0
    assert found["a"].gave_up + found["b"].gave_up >= 4


def test_a_job_larger_than_the_cluster_never_starts_and_nothing_waits_for_it() -> None:
    simulation = Simulation(workload(job("huge", 0, 5, pods=9), job("small", 1, 5)))
    found = by_name(simulation)
    assert found["huge"].start is None
    assert found["small"].finish is not None


def test_failing_nodes_take_their_pods_along() -> None:
    options = Options(mtbf=400, repair=50, seed=3)
    simulation = Simulation(workload(*(job(f"j{i}", i * 10, 200, gpus=4) for i in range(12)), nodes=3), options=options)
    found = by_name(simulation)
    assert sum(outcome.failed for outcome in found.values()) > 0
    assert all(outcome.finish is not None for outcome in found.values())


def test_a_node_that_is_away_counts_for_nothing() -> None:
    simulation = Simulation(workload(job("a", 0, 100)), options=Options(mtbf=10, repair=1e9, seed=1, until=50_000))
    simulation.run()
    assert simulation.totals.capacity == 0
    assert simulation.totals.used == 0


def test_periods_must_be_numbers_of_seconds() -> None:
    with pytest.raises(ValueError, match="period is a number of seconds above 0"):
        Options(period=0)
    with pytest.raises(ValueError, match="grace is a number of seconds from 0 on, not -1"):
        Options(grace=-1)


JOBS = st.lists(
    st.builds(
        lambda arrival, duration, pods, gpus, least, priority, queue, saves: {
            "arrival": arrival, "duration": duration, "pods": pods, "gpus": gpus, "least": min(least, pods),
            "priority_class": priority, "queue": queue, "saves": saves,
        },
        st.integers(0, 60).map(float), st.integers(1, 40).map(float), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4),
        st.sampled_from(["low", "high"]), st.sampled_from(["q1", "q2"]), st.sampled_from([0.0, 7.0]),
    ),
    min_size=1, max_size=10,
)  # fmt: skip


def drawn(given_jobs: list[dict[str, Any]]) -> Workload:
    jobs: list[Job] = [job(f"j{i}", **each) for i, each in enumerate(given_jobs)]
    return workload(*jobs, nodes=2, gpus=4, queues=("q1", "q2"), low=1, high=9)


@settings(max_examples=40)
@given(JOBS, st.integers(0, 3))
def test_the_books_balance(jobs: list[dict[str, Any]], seed: int) -> None:
    simulation = Simulation(drawn(jobs), PREEMPT, Options(seed=seed, mtbf=150, repair=20, until=5_000))
    while simulation.step():
        assert 0 <= simulation.totals.used <= 8_000
        assert simulation.jobs.pending == sum(len(run.pods) - len(run.up) for run in simulation.jobs.runs.values())
        assert simulation.totals.used == sum(sum(run.up.values()) for run in simulation.jobs.runs.values())
    outcomes = simulation.outcomes()
    assert simulation.totals.used_area / 1000 == pytest.approx(sum(outcome.held for outcome in outcomes))
    for outcome in outcomes:
        if outcome.finish is not None:
            assert outcome.arrival <= outcome.start <= outcome.finish
            assert outcome.held >= outcome.size * outcome.duration - 1e-6


@settings(max_examples=25)
@given(JOBS, st.integers(1, 40))
def test_a_course_that_was_interrupted_goes_on_as_if_it_had_not_been(jobs: list[dict[str, Any]], after: int) -> None:
    options = Options(seed=1, mtbf=200, repair=20, until=3_000, grace=2)
    whole = Simulation(drawn(jobs), PREEMPT, options)
    whole.run()
    first = Simulation(drawn(jobs), PREEMPT, options)
    for _ in range(after):
        first.step()
    kept = orjson.loads(orjson.dumps(first.state()))
    second = Simulation(drawn(jobs), PREEMPT, options, state=kept)
    second.run()
    assert [o.as_dict() for o in second.outcomes()] == [o.as_dict() for o in whole.outcomes()]
    assert second.totals == whole.totals
    assert second.course == whole.course
