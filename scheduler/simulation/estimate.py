"""When waiting jobs are likely to start: many futures of the same cluster, each played by the same simulator.

In a future, running jobs end when jobs like them ended, waiting ones run as long as jobs like them ran, and new jobs come
as they came in some stretch of the past. What half of the futures agree on is P50, what nine of ten do is P90.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Any

from scheduler.simulation.engine import DONE, Simulation
from scheduler.simulation.options import Options
from scheduler.simulation.runtimes import Likeness, RunTimes, prefix_of
from scheduler.simulation.workload import Job, Workload

FUTURES = 24
HORIZON = 30 * 86_400.0
"""Seconds that a future is played for at most."""
RECENT, LEAST = 80, 10
"""Past estimates that tell by how much P90 was missed, and how few of them say nothing."""
UNKNOWN = 1.5
"""By what P90 is multiplied while no past estimate says better: futures are drawn from the past, and the world changes."""
WIDEST = 20.0
MOST_NEW = 4000
"""New jobs in a future at most: what comes after so many of them decides nothing any more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds from now; infinity: not within the horizon. `raw` is P90 before what past misses taught was heeded."""

    p50: float
    p90: float
    raw: float
    by: str = ""


@dataclass(slots=True)
class Past:
    """What is known of jobs up to now: their run times, and when which jobs came."""

    times: RunTimes = field(default_factory=RunTimes)
    arrivals: list[Job] = field(default_factory=list)


@dataclass(slots=True)
class Misses:
    """How far starts were from what was foretold: (wait, raw P90) in seconds, the newest last."""

    known: list[tuple[float, float]] = field(default_factory=list)

    def add(self, waited: float, raw: float) -> None:
        """A start that was foretold has come, or is so late already that it counts."""
        self.known.append((waited, raw))
        del self.known[:-RECENT]

    def factor(self, late: Sequence[tuple[float, float]] = ()) -> float:
        """By what a raw P90 is multiplied so that nine of ten of the known starts would have been within it.

        `late` are those still awaited: they count where they are already later than foretold.
        """
        ratios = [ratio(*each) for each in self.known]
        ratios += [found for each in late if (found := ratio(*each)) > 1]
        if len(ratios) < LEAST:
            return UNKNOWN
        ratios.sort()
        return min(WIDEST, max(1 / WIDEST, ratios[min(len(ratios) - 1, int(0.9 * (len(ratios) + 1)))]))


def ratio(waited: float, raw: float) -> float:
    """How a wait was to what was foretold; a foretold wait of moments is not held to the second."""
    return (waited + 30.0) / (raw + 30.0)


def likeness(job: Job) -> Likeness:
    """What a job has in common with others."""
    return Likeness(job.owner, job.queue, job.kind or prefix_of(job.name), job.gpus)


def estimate(
    now: Simulation,
    past: Past,
    wanted: Sequence[int],
    *,
    futures: int = FUTURES,
    horizon: float = HORIZON,
    period: float = 120.0,
    factor: float = 1.0,
    seed: int = 0,
    steps: int = 1_000_000,
    stop: Callable[[], bool] = lambda: False,
) -> dict[int, Estimate]:
    """Estimates for waiting jobs, by index, from a simulation as it stands now (it is left as it is).

    A future ends when all of them have started, at the horizon, or after so many steps. `stop` is asked before each future.
    """
    state, starts = now.state(), {index: list[float]() for index in wanted}
    by: dict[int, str] = {}
    for number in range(futures):
        if stop():
            break
        chance = Random(f"{seed}/{number}")  # noqa: S311 - futures, nothing secret
        future = _future(now, state, past, chance, replace(now.options, period=period, until=now.now + horizon, mtbf=0.0), by)
        awaited = set(wanted)
        while awaited and future.totals.cycles - now.totals.cycles < steps and future.step():
            arrived = {i for i in awaited if _start_of(future, i) is not None}
            for index in arrived:
                starts[index].append((_start_of(future, index) or 0.0) - now.now)
            awaited -= arrived
        for index in awaited:
            starts[index].append(inf)
    found = {}
    for index, times in starts.items():
        if times:
            times.sort()
            raw = quantile(times, 0.9)
            found[index] = Estimate(quantile(times, 0.5), max(raw * factor + 30.0 * (factor - 1), 0.0), raw, by.get(index, ""))
    return found


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below or at which a share of them is, counted so that it holds for one more of their kind."""
    return ordered[min(len(ordered) - 1, max(0, int(share * (len(ordered) + 1)) - (1 if share <= 0.5 else 0)))]


def _start_of(simulation: Simulation, index: int) -> float | None:
    run = simulation.jobs.runs.get(index)
    if run is not None:
        return run.outcome.start
    return simulation.jobs.starts_of_finished.get(index)


def _future(
    now: Simulation, state: Mapping[str, Any], past: Past, chance: Random, options: Options, by: dict[int, str]
) -> Simulation:
    """A simulation that goes on from a state, with drawn run times and drawn arrivals."""
    jobs = now.workload.jobs[: now.arrived]
    new = _arrivals(past, now.now, options.until - now.now, chance, len(jobs))
    workload = Workload(
        now.workload.name, now.workload.objects, [], now.workload.base, now.now, scheduler_names=now.workload.scheduler_names
    )
    workload.jobs = [*jobs, *new]  # those that arrived keep their places
    durations = {}
    for index, run in now.jobs.runs.items():
        like = likeness(run.job)
        done = run.done + run.rate * (now.now - run.since)
        drawn, name = past.times.draw(like, done, chance)
        durations[index] = max(drawn, done + 1.0)
        by.setdefault(index, name)
    runs, heap, number = [], [list(event) for event in state["heap"] if event[1] != DONE], state["numbers"][0]
    for kept in state["jobs"]["runs"]:
        index = kept["index"]
        run = now.jobs.runs[index]
        runs.append({**kept, "pods": dict(kept["pods"]), "up": dict(kept["up"]), "duration": durations[index]})
        if run.rate > 0:
            left = (durations[index] - (run.done + run.rate * (now.now - run.since))) / run.rate
            number += 1
            heap.append([now.now + left, DONE, number, index, str(run.version)])
    heap.sort()
    changed = {
        **state,
        "heap": heap,
        "jobs": {**state["jobs"], "runs": runs, "finished": []},
        "numbers": [number, len(jobs), 0],
        "course": {"step": 1e18, "samples": state["course"]["samples"][:1]},
    }
    return Simulation(workload, now.conf, options, state=changed)


def _arrivals(past: Past, now: float, span: float, chance: Random, first: int) -> list[Job]:
    """Jobs as they came in a stretch of the past that begins anywhere, as often as it fits into the time ahead."""
    known = past.arrivals
    if len(known) < 2 or known[-1].arrival <= known[0].arrival:
        return []
    begin, length = known[0].arrival, known[-1].arrival - known[0].arrival
    offset, found = chance.uniform(0, length), list[Job]()
    for turn in range(min(int(span / length) + 2, MOST_NEW // len(known) + 2)):
        for number, job in enumerate(known):
            at = job.arrival - begin - offset + turn * length
            if 0 <= at <= span:
                drawn, _ = past.times.draw(likeness(job), 0.0, chance)
                name = f"next-{first + len(found):06}-{turn}-{number}"
                found.append(replace(job, name=name, arrival=now + at, duration=drawn, group={}, made=(), ran=0.0))
    found.sort(key=lambda job: job.arrival)
    return found
