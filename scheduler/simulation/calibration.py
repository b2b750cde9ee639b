"""How good start estimates are: a replay with the true run times, estimates made on the way, and the starts that then came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler.simulation.engine import Simulation
from scheduler.simulation.estimate import Estimate, Miss, Misses, Past, estimate, likeness
from scheduler.simulation.options import Options
from scheduler.simulation.workload import Workload

SETTLE = 5.0
"""Seconds after its arrival that a job has to wait for a start to be foretold: who starts at once needs no estimate."""
WARM = 50
"""Jobs that must have ended before the first estimate: there is no past yet to learn from."""


@dataclass(slots=True)
class Foretold:
    """One estimate, made `at` some moment for a job, with when it really started (None: never, or not yet)."""

    index: int
    at: float
    said: Estimate
    started: float | None = None

    @property
    def waited(self) -> float | None:
        """Seconds from the estimate to the start."""
        return None if self.started is None else self.started - self.at


@dataclass(slots=True)
class Calibration:
    """Shares of the starts that came by P50 and by P90, and of how many estimates."""

    foretold: list[Foretold] = field(default_factory=list)

    def _share(self, within: Callable[[Foretold, float], bool]) -> float | None:
        known = [(each, each.waited) for each in self.foretold if each.waited is not None]
        return sum(within(each, waited) for each, waited in known) / len(known) if known else None

    @property
    def p90(self) -> float | None:
        """The share of starts within the P90 band."""
        return self._share(lambda each, waited: waited <= each.said.p90)

    @property
    def p50(self) -> float | None:
        """The share of starts by P50."""
        return self._share(lambda each, waited: waited <= each.said.p50)

    @property
    def middle(self) -> float | None:
        """The share by P50 as the futures alone say it."""
        return self._share(lambda each, waited: waited <= each.said.middle)

    @property
    def raw(self) -> float | None:
        """The share within P90 as the futures alone say it."""
        return self._share(lambda each, waited: waited <= each.said.raw)


def calibrate(
    workload: Workload,
    conf: str,
    *,
    every: int = 1,
    most: int = 200,
    futures: int = 20,
    options: Options | None = None,
    tell: Callable[[int], None] = lambda count: None,
) -> Calibration:
    """Replay a workload, and foretell the starts of jobs that wait, whenever there are `every` new ones, `most` at the most.

    An estimate knows only what had happened by then: jobs that had arrived, run times of those that had ended.
    """
    simulation, past, misses, found = Simulation(workload, conf, options), Past(), Misses(), Calibration()
    by_name = {job.name: job for job in workload.jobs}
    ended, seen, fresh, waiting = 0, 0, list[int](), list[int]()
    open_: list[Foretold] = []
    while simulation.step():
        while ended < len(simulation.jobs.finished):
            outcome = simulation.jobs.finished[ended]
            ended += 1
            past.times.add(likeness(by_name[outcome.name]), outcome.duration)
        while seen < simulation.arrived:
            past.arrivals.append(workload.jobs[seen])
            fresh.append(seen)
            seen += 1
        for each in list(open_):
            each.started = _start(simulation, each.index)
            if each.started is not None:
                open_.remove(each)
                misses.add(Miss(each.started - each.at, each.said.middle, each.said.raw))
        due = [index for index in fresh if simulation.now >= workload.jobs[index].arrival + SETTLE]
        fresh = [index for index in fresh if index not in due]
        waiting = [i for i in [*waiting, *due] if i in simulation.jobs.runs and _start(simulation, i) is None]
        if len(waiting) >= every and ended >= WARM and len(found.foretold) < most:
            due, waiting = waiting, []
            late = [Miss(simulation.now - each.at, each.said.middle, each.said.raw) for each in open_]
            said = estimate(simulation, past, due, futures=futures, factors=misses.factors(late), seed=len(found.foretold))
            made = [Foretold(index, simulation.now, each) for index, each in said.items()]
            found.foretold += made
            open_ += made
            tell(len(found.foretold))
    return found


def _start(simulation: Simulation, index: int) -> float | None:
    run = simulation.jobs.runs.get(index)
    return run.outcome.start if run is not None else simulation.jobs.starts_of_finished.get(index)
