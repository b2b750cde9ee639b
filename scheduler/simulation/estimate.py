"""When waiting jobs are likely to start: many futures of the same cluster, each played by the same simulator.

In a future, running jobs end when jobs like them ended, waiting ones run as long as jobs like them ran, and new jobs come
as they came in some stretch of the past. What half of the futures agree on is P50, what nine of ten do is P90.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from time import thread_time
from typing import Any

from scheduler.simulation.engine import DONE, Simulation
from scheduler.simulation.options import Options
from scheduler.simulation.runtimes import Likeness, RunTimes, prefix_of
from scheduler.simulation.workload import Job, Workload

FUTURES = 24
HORIZON = 30 * 86_400.0
"""Seconds that a future is played for at most."""
RECENT, LEAST = 80, 10
"""Past estimates that tell by how much they were missed, and how few of them say nothing."""
UNKNOWN = 1.5
"""By what P90 is multiplied while no past estimate says better: futures are drawn from the past, and the world changes."""
WIDEST = 20.0
SPREAD = 0.1
"""What one cycle of a future joins, as a share of the time until then: who starts tomorrow is not foretold to the minute."""
ENOUGH = 40
"""Steps that a future has in any case: they reach hours ahead."""
STRETCH = 3600.0
"""Seconds of the past that are repeated at least: what came within minutes does not go on so for days."""
MOST_NEW = 1000
"""New jobs in a future at most: what comes after so many of them decides nothing any more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds from now; infinity: not within the horizon. `raw` and `middle` are P90 and P50 as the futures alone say them."""

    p50: float
    p90: float
    raw: float
    by: str = ""
    middle: float = 0.0


@dataclass(slots=True)
class Past:
    """What is known of jobs up to now: their run times, and when which jobs came."""

    times: RunTimes = field(default_factory=RunTimes)
    arrivals: list[Job] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Factors:
    """By what P50 and P90 of the futures are multiplied, as past estimates were missed."""

    p50: float = 1.0
    p90: float = 1.0


@dataclass(frozen=True, slots=True)
class Miss:
    """How a start was to what was foretold, in seconds: the wait, and P50 and P90 as the futures alone said them."""

    waited: float
    middle: float
    raw: float


@dataclass(slots=True)
class Misses:
    """How far starts were from what was foretold, the newest last."""

    known: list[Miss] = field(default_factory=list)

    def add(self, miss: Miss) -> None:
        """A start that was foretold has come."""
        self.known.append(miss)
        del self.known[:-RECENT]

    def factors(self, late: Sequence[Miss] = ()) -> Factors:
        """By what raw estimates are multiplied so that half of the known starts would have been by P50, nine of ten by P90.

        `late` are those still awaited: they count where they are already later than foretold.
        """
        p50 = _factor(0.5, [(each.waited, each.middle) for each in self.known], [(each.waited, each.middle) for each in late])
        p90 = _factor(0.9, [(each.waited, each.raw) for each in self.known], [(each.waited, each.raw) for each in late])
        return Factors(1.0 if p50 is None else p50, UNKNOWN if p90 is None else p90)


def _factor(share: float, known: Sequence[tuple[float, float]], late: Sequence[tuple[float, float]]) -> float | None:
    ratios = [ratio(*each) for each in known]
    ratios += [found for each in late if (found := ratio(*each)) > 1]
    if len(ratios) < LEAST:
        return None
    ratios.sort()
    return min(WIDEST, max(1 / WIDEST, ratios[min(len(ratios) - 1, int(share * (len(ratios) + 1)))]))


def ratio(waited: float, raw: float) -> float:
    """How a wait was to what was foretold; a foretold wait of moments is not held to the second."""
    return (waited + 30.0) / (raw + 30.0)


def scaled(raw: float, factor: float) -> float:
    """What `ratio` undoes: the wait that is so many times one that was foretold."""
    return max(raw * factor + 30.0 * (factor - 1), 0.0)


@dataclass(slots=True)
class Futures:
    """How long jobs waited in each of the futures that were played: seconds by PodGroup, infinity for never.

    The same number stands for the same future in all of them. `by` says what the run times drawn for a job went by, `steps`
    how many each had at most.
    """

    waits: dict[str, list[float]] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)
    count: int = 0
    steps: int = 0

    def said(self, factors: Factors, first: int = 0) -> dict[str, Estimate]:
        """Estimates of the first futures (of all unless given), by PodGroup."""
        return {key: self._said(key, sorted(waits[: first or self.count]), factors) for key, waits in self.waits.items() if waits}

    def _said(self, key: str, waits: Sequence[float], factors: Factors) -> Estimate:
        middle, raw = quantile(waits, 0.5), quantile(waits, 0.9)
        p90 = scaled(raw, factors.p90)
        return Estimate(min(scaled(middle, factors.p50), p90), p90, raw, self.by.get(key, ""), middle)


def likeness(job: Job) -> Likeness:
    """What a job has in common with others."""
    return Likeness(job.owner, job.queue, job.kind or prefix_of(job.name), job.gpus)


def play(
    now: Simulation,
    past: Past,
    wanted: Sequence[int],
    *,
    futures: int = FUTURES,
    horizon: float = HORIZON,
    period: float = 120.0,
    seed: int = 0,
    steps: int = 1_000_000,
    most: float = inf,
    stop: Callable[[], bool] = lambda: False,
) -> Futures:
    """Futures of a simulation as it stands now (it is left as it is), and when jobs, by index, start in them.

    A future ends when all of them have started, at the horizon, or after so many steps: as many as the first one took in `most`
    processor seconds, if it took so long. `stop` is asked before each future.

    What is drawn in one goes by the seed, its number and the names of jobs alone: with another cluster or one more job the
    others fare as they did, but for what that changes.
    """
    state, found = now.state(), Futures({now.workload.jobs[index].key: [] for index in wanted}, steps=steps)
    for number in range(futures):
        if stop():
            break
        options = replace(now.options, period=period, until=now.now + horizon, mtbf=0.0)
        future = _future(now, state, past, f"{seed}/{number}", options, found.by)
        awaited, begin = set(wanted), thread_time()
        while awaited and (done := future.totals.cycles - now.totals.cycles) < found.steps and future.step():
            awaited -= {index for index in awaited if _start_of(future, index) is not None}
            future.options = replace(options, period=max(period, SPREAD * (future.now - now.now)))
            if number == 0 and thread_time() - begin > most:
                found.steps = max(done + 1, min(steps, ENOUGH))
        for index in wanted:
            start = _start_of(future, index)
            found.waits[now.workload.jobs[index].key].append(inf if start is None else max(start - now.now, 0.0))
        found.count += 1
    return found


def estimate(
    now: Simulation, past: Past, wanted: Sequence[int], *, factors: Factors | None = None, **how: Any
) -> dict[int, Estimate]:
    """Estimates for waiting jobs, by index, from futures played as `play` is told to."""
    said = play(now, past, wanted, **how).said(factors or Factors())
    return {index: said[key] for index in wanted if (key := now.workload.jobs[index].key) in said}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below or at which a share of them is, counted so that it holds for one more of their kind."""
    return ordered[min(len(ordered) - 1, max(0, int(share * (len(ordered) + 1)) - (1 if share <= 0.5 else 0)))]


def _start_of(simulation: Simulation, index: int) -> float | None:
    run = simulation.jobs.runs.get(index)
    if run is not None:
        return run.outcome.start
    return simulation.jobs.starts_of_finished.get(index)


def _future(now: Simulation, state: Mapping[str, Any], past: Past, seed: str, options: Options, by: dict[str, str]) -> Simulation:
    """A simulation that goes on from a state, with drawn run times and drawn arrivals."""
    jobs = now.workload.jobs[: now.arrived]
    new = _arrivals(past, now.now, options.until - now.now, Random(f"{seed}/new"))  # noqa: S311 - futures, nothing secret
    workload = Workload(
        now.workload.name, now.workload.objects, [], now.workload.base, now.now, scheduler_names=now.workload.scheduler_names
    )
    workload.jobs = [*jobs, *new]  # those that arrived keep their places
    durations = {}
    for index, run in now.jobs.runs.items():
        like = likeness(run.job)
        done = run.done + run.rate * (now.now - run.since)
        chance = Random(f"{seed}/{run.job.key}")  # noqa: S311 - futures, nothing secret
        drawn, name = past.times.draw(like, done, chance)
        durations[index] = max(drawn, done + 1.0)
        by.setdefault(run.job.key, name)
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


def _arrivals(past: Past, now: float, span: float, chance: Random) -> list[Job]:
    """Jobs as they came up to now, from a moment of the past that is anywhere, as often as it fits into the time ahead."""
    known = past.arrivals
    if len(known) < 2:
        return []
    begin = known[0].arrival
    length = max(now - begin, known[-1].arrival - begin, STRETCH)  # quiet until now is a part of the past as well
    offset, found = chance.uniform(0, length), list[Job]()
    for turn in range(min(int(span / length) + 2, MOST_NEW // len(known) + 2)):
        for number, job in enumerate(known):
            at = job.arrival - begin - offset + turn * length
            if 0 <= at <= span:
                drawn, _ = past.times.draw(likeness(job), 0.0, chance)
                name = f"next-{turn}-{number:06}"
                found.append(replace(job, name=name, arrival=now + at, duration=drawn, group={}, made=(), ran=0.0))
    found.sort(key=lambda job: job.arrival)
    return found
