"""The cluster at one instant, ready for futures to be played on it, and what that may cost.

One round of futures at a time in a process, each followed by a rest; how far they look ahead follows from what a cycle costs
here. Of a very long line only the head is played: who waits behind it starts in none of the futures.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf
from weakref import ReferenceType, ref

from cluster.port import Obj
from portal.outlook import past
from portal.simulations import present, work
from portal.simulations.history import run_times
from portal.unblock.copy import View
from scheduler.cache import SchedulerCache
from scheduler.simulation.engine import Simulation
from scheduler.simulation.estimate import SPREAD, Factors, Futures, Past, play

FUTURES, LEAST_FUTURES = 12, 5
HORIZON = 7 * 86_400.0
MOST = 200
"""Waiting jobs that are foretold, the first in line, beside those that are asked about."""
DEEP = 2_000
"""Waiting jobs that are played, the first in line."""
STEPS, LEAST_STEPS = 100, 10
"""Cycles after which a future is left: what has not started by then is not in sight. Fewer where cycles take long."""
PERIOD, AHEAD = 120.0, 36_000.0
"""Simulated seconds that the first cycles join, and that a future looks ahead at least, where something happens all the time."""
BUDGET = 6.0
"""Processor seconds that one round is meant to take; fewer futures are played, and shorter ones, where that is not enough."""
PAUSE = 0.5
"""Seconds of rest for each second of work."""
YOUNG = 60.0
"""Wall seconds for which futures of a cluster that has not changed since are used again."""
turn = threading.Lock()
"""Held by who plays futures."""


@dataclass(slots=True)
class Ground:
    """`line` are the waiting jobs by PodGroup as they are served, `left_out` those that are not played.

    `never` can start in no future. `period` and `steps` bound each future, the same for all that are compared.
    """

    model: ReferenceType[SchedulerCache]
    version: int
    at: float
    conf: str
    objs: list[Obj]
    line: list[str]
    left_out: frozenset[str]
    never: frozenset[str]
    past: Past
    factors: Factors
    taken: float = field(default_factory=time.monotonic)
    steps: int = 0
    period: float = PERIOD
    futures: Futures | None = None

    def simulation(self, objs: list[Obj]) -> Simulation:
        """These objects at this instant; the first one also measures what cycles cost."""
        simulation = Simulation(present.workload(objs, self.at, self.past.times), self.conf)
        begin = time.thread_time()
        simulation.look()
        if not self.steps:
            self.steps = steps_within(time.thread_time() - begin)
            self.period = period_for(self.steps)
        return simulation

    def play(self, objs: list[Obj], wanted: Collection[str], futures: int, pause: float) -> Futures:
        """Futures of these objects, in which the wanted jobs and the first in line are awaited."""
        simulation = self.simulation(objs)
        waiting = {run.job.key: run.index for run in simulation.jobs.runs.values() if run.outcome.start is None}
        first = [key for key in self.line if key not in self.never and key not in self.left_out][:MOST]
        chosen = [waiting[key] for key in dict.fromkeys([*wanted, *first]) if key in waiting]
        if not chosen:
            return Futures(count=futures)
        pace = Pace(pause)
        found = play(
            simulation, self.past, chosen, futures=futures, horizon=HORIZON, period=self.period, steps=self.steps,
            most=inf if self.futures is not None else BUDGET / LEAST_FUTURES, stop=pace.stop,
        )  # fmt: skip
        self.steps = found.steps
        return found

    def as_it_is(self, wanted: Collection[str] = (), futures: int = FUTURES, pause: float = PAUSE) -> Futures:
        """Futures of the cluster as it is, played once."""
        if self.futures is None or not self.futures.waits.keys() >= set(wanted):
            self.futures = self.play(self.objs, wanted, futures, pause)
        return self.futures


def steps_within(cost: float) -> int:
    """How many cycles a future may have, when what is there takes so many processor seconds to arrive: a cycle takes a third."""
    left = BUDGET / LEAST_FUTURES - 2 * cost
    return max(LEAST_STEPS, min(STEPS, int(left / max(cost / 3, 1e-6))))


def period_for(steps: int) -> float:
    """What the first cycles join, so that so many reach far enough: later ones join a share of the time until then."""
    even = min(steps, int(1 / SPREAD))
    return max(PERIOD, AHEAD / (even * (1 + SPREAD) ** (steps - even)))


class Pace:
    """Rests between futures, and ends a round when its time is up."""

    def __init__(self, pause: float) -> None:
        self._until, self._pause, self._since, self._begun = time.thread_time() + BUDGET, pause, time.monotonic(), 0

    def stop(self) -> bool:
        """Asked before each future."""
        if self._begun >= LEAST_FUTURES and time.thread_time() > self._until:
            return True
        time.sleep(min(5.0, (time.monotonic() - self._since) * self._pause))
        self._since = time.monotonic()
        self._begun += 1
        return False


_last: Ground | None = None


def of(view: View, keep: Collection[str] = ()) -> Ground:
    """The ground of a view: the last one as long as nothing has changed since and it is young. `keep` are played in any case."""
    global _last
    conf, last = work.conf_in_force(), _last
    if (
        last is not None
        and last.model() is view.cache
        and (last.version, last.conf) == (view.version, conf)
        and time.monotonic() - last.taken < YOUNG
        and last.left_out.isdisjoint(keep)
    ):
        return last
    line = list(view.baseline.line)
    left_out = _deep(view, line) - set(keep)
    known = Past(run_times(), past.arrivals(past.instant(view.at)))
    never = frozenset(uid for uid, job in view.cache.jobs.items() if job.impossible is not None)
    objs, factors = present.objects_now(view, left_out), past.factors(past.instant(view.at))
    _last = Ground(ref(view.cache), view.version, view.at, conf, objs, line, frozenset(left_out), never, known, factors)
    return _last


def _deep(view: View, line: Sequence[str]) -> set[str]:
    """Waiting jobs behind the head of the line; those that are in none count as its end."""
    if len(view.cache.jobs) <= DEEP:
        return set()
    known = set(line)
    waits = [*line, *(uid for uid in view.cache.jobs if uid not in known)]
    return set([uid for uid in waits if not _holds(view, uid)][DEEP:])


def _holds(view: View, uid: str) -> bool:
    """Whether any pod of a job has a node."""
    return any(task.pod["spec"].get("nodeName") for task in view.cache.jobs[uid].tasks.values())
