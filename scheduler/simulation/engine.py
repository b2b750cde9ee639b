"""Discrete-event simulation: a heap of what will happen, and cycles of the real scheduler whenever something did.

What happens within a scheduling period is joined: the cycle at its end sees all of it, as a scheduler that looks once a
period does. Nothing runs between events, so quiet months cost nothing. The same workload, configuration and seed give the
same course, also when it is interrupted and gone on with from its `state`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import inf
from random import Random
from typing import Any

from cluster.kinds import POD_GROUP
from scheduler import conf as configuration
from scheduler.cycle import Cycle
from scheduler.simulation import pods as making
from scheduler.simulation.accounts import Course, Outcome, Sample, Totals
from scheduler.simulation.gauges import Gauges
from scheduler.simulation.options import Options
from scheduler.simulation.population import Population
from scheduler.simulation.runs import Run
from scheduler.simulation.workload import Workload
from scheduler.simulation.world import World
from scheduler.snapshot import Snapshot

DONE, GONE, REPAIRED, BROKEN, GIVE_UP, MADE = range(6)
"""Kinds of events; of those of one moment the lower come first, and arrivals last."""
BY_THE_CLOCK = frozenset({"sla", "tdm", "rescheduling", "usage"})
"""Plugins that decide by time alone: with them a cycle runs also when nothing happened (`Options.tick`)."""
CIRCLE = 20_000
"""So many cycles in a row that change something while nothing happens mean that the scheduler goes round in a circle."""

Event = tuple[float, int, int, int, str]
"""When, what, a running number that decides ties, the job's index, and what it is about: a uid, a name, a version."""


class GoesRound(RuntimeError):
    """Cycle after cycle evicts and binds the same pods, and no job gets on by it."""


class Simulation:
    """One workload under one configuration. `now` is the workload's clock; `durations` replace run times, by job index.

    `state` is what an earlier simulation of the same workload, configuration and options kept.
    """

    def __init__(
        self,
        workload: Workload,
        conf: str = configuration.DEFAULT,
        options: Options | None = None,
        *,
        durations: Mapping[int, float] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.workload, self.conf, self.options = workload, conf, options or Options()
        self.now = workload.begin
        self.totals, self.course = Totals(at=self.now), Course()
        self._durations = dict(durations or {})
        self._heap: list[Event] = []
        self._number = self._next = self._circling = 0
        self._last, self._due = -inf, self.now
        self._locked_at: float | None = None
        self._chance = Random(self.options.seed + 1)  # noqa: S311 - failures and pauses, nothing secret
        self.world = self._open(state)
        self.gauges = Gauges(workload, self.world)
        self.jobs = Population(workload, self.world, self.gauges, self.totals, self._on_pace)
        self.totals.capacity = self.gauges.capacity()
        self._ticks = not BY_THE_CLOCK.isdisjoint(option.name for option in self.world.conf.plugins())
        self._moves_pods = "shuffle" in self.world.conf.actions
        self._unwatched = True
        if state is not None:
            self._restore(state)
        elif self.options.mtbf > 0:
            for name in sorted(self.world.cache.nodes.index):
                self._push(self.now + self._chance.expovariate(1 / self.options.mtbf), BROKEN, about=name)

    def _open(self, state: Mapping[str, Any] | None) -> World:
        names = self.workload.scheduler_names
        if state is not None:
            return World.of(state["world"], self.conf, names)
        snapshot = Snapshot.of(self.workload.objects, self.conf)
        return World(snapshot, now=self._epoch(self.now), seed=self.options.seed, scheduler_names=names)

    def _epoch(self, at: float) -> float:
        return self.workload.base + at

    # -- time ----------------------------------------------------------------------------------------------------------

    def peek(self) -> float:
        """When the next cycle runs; infinity when nothing ever will happen."""
        return max(min(self._next_event(), self._due), self._last + self.options.period)

    def _next_event(self) -> float:
        """When something happens next. Nodes that fail and come back keep no simulation alive by themselves."""
        arrival = self._next_arrival()
        if arrival == inf and not self.jobs.runs:
            return inf
        return min(arrival, self._heap[0][0] if self._heap else inf)

    def _next_arrival(self) -> float:
        jobs = self.workload.jobs
        return max(jobs[self._next].arrival, self.workload.begin) if self._next < len(jobs) else inf

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen, or the time is up."""
        if self._next_arrival() == inf and not self.jobs.runs:
            return True
        return min(self._next_event(), self._due) == inf or self.peek() > self.options.until

    @property
    def arrived(self) -> int:
        """How many jobs have been submitted."""
        return self._next

    def step(self) -> bool:
        """Go on to the next moment at which something happens, and run a cycle then; False when there is none."""
        if self.is_over:
            return False
        until, before = self.peek(), self.totals.events
        while (at := self._next_event()) <= until:
            self._pass_to(at)
            self._happen(at)
        self._pass_to(until)
        self._circling = 0 if self.totals.events > before else self._circling + 1
        if self._circling > CIRCLE:
            raise GoesRound(f"{CIRCLE} cycles in a row evicted and bound pods, and no job got on by it")
        if self._unwatched or self.jobs.wants:
            self._cycle()
        else:
            self._last, self._due = self.now, inf
        return True

    def look(self) -> None:
        """Let what is there at this moment arrive, without a cycle."""
        while self._next_event() <= self.now:
            self._happen(self.now)

    def run(self, stop: Callable[[Simulation], bool] | None = None) -> None:
        """Go on until everything has happened, or `stop` says so between two steps."""
        while self.step():
            if stop is not None and stop(self):
                return

    def _pass_to(self, at: float) -> None:
        at = max(at, self.now)
        if self._locked_at is not None:
            self.totals.locked += at - self._locked_at
            self._locked_at = at
        self.totals.pass_to(at)
        self.now = at

    def _push(self, at: float, what: int, index: int = -1, about: str = "") -> None:
        self._number += 1
        heapq.heappush(self._heap, (at, what, self._number, index, about))

    def _on_pace(self, run: Run) -> None:
        if run.rate > 0:
            self._push(self.now + run.remaining, DONE, run.index, str(run.version))

    # -- what happens --------------------------------------------------------------------------------------------------

    def _happen(self, at: float) -> None:
        """Let the next event of the heap, or else the next arrival, happen."""
        if not self._heap or self._heap[0][0] > at:
            self._arrive(at)
            return
        _, what, _, index, about = heapq.heappop(self._heap)
        run = self.jobs.runs.get(index)
        if what == DONE and (run is None or about != str(run.version)):
            return  # it was to end then, but its pace has changed since
        self.totals.events += 1
        if what == DONE and run is not None:
            self.jobs.finish(run, at)
        elif what == MADE and run is not None:
            self.jobs.make(run, about, at)
        elif what == GONE:
            self._lose([about], at, "preempted")
        elif what == GIVE_UP:
            self._give_up(about, at)
        elif what in (BROKEN, REPAIRED):
            self._node(about, at, broken=what == BROKEN)

    def _arrive(self, at: float) -> None:
        self.totals.events += 1
        index, job = self._next, self.workload.jobs[self._next]
        self._next += 1
        self.jobs.arrive(index, at, self._durations.get(index, job.duration))
        if job.apart:
            names = [name for name, _ in making.templates(job)]
            for number, name in enumerate(names):
                self._push(at + (job.delays[number] if job.delays else 0.0), MADE, index, name)

    def _node(self, name: str, at: float, *, broken: bool) -> None:
        """A node fails and takes its pods along, or is well again."""
        mean = self.options.repair if broken else self.options.mtbf
        self._push(at + self._chance.expovariate(1 / mean) if mean else at, REPAIRED if broken else BROKEN, about=name)
        self.world.node_ready(name, not broken)
        if broken:
            self._lose(self.world.pods_on(name), at, "failed")
        self.totals.capacity = self.gauges.capacity()

    def _give_up(self, uid: str, at: float) -> None:
        """A pod that waited for its peers in vain leaves its node, and comes again at the end of the line."""
        run = self.jobs.run_of(uid)
        if run is not None and run.rate == 0:
            self._lose([uid], at, "gave_up")

    def _lose(self, uids: list[str], at: float, why: Any) -> None:
        for run, name in self.jobs.lose(uids, at, why):
            self._push(at + self._chance.uniform(0, self.options.pause), MADE, run.index, name)

    # -- cycles --------------------------------------------------------------------------------------------------------

    def _cycle(self) -> None:
        """Run one cycle now, and do what it decided; another is due when this one changed something."""
        done = self.world.cycle_at(self._epoch(self.now))
        moved = self._has_moved(done)
        self.world.take_in(done)
        self.jobs.bound([binding.uid for binding in done.binds], self.now)
        self._wait_for_peers(done)
        self.totals.cycles += 1
        self.totals.bound += len(done.binds)
        self.totals.evicted += len(done.evictions)
        self._evict([eviction.uid for eviction in done.evictions])
        moved = self.jobs.admitted(self.now) or moved
        self._last, self._unwatched = self.now, moved or self._moves_pods
        self._due = self.now + self.options.period if moved else inf
        if not moved and self._ticks and self.jobs.waiting:
            self._due = self.now + self.options.tick
        self._notice_deadlock()
        if self.course.due(self.now):
            self.course.add(self._sample())

    def _has_moved(self, done: Cycle) -> bool:
        if done.binds or done.evictions or done.admitted or done.released:
            return True
        for write in done.writes.statuses:
            job = self.world.job(f"{write.namespace}/{write.name}") if write.kind == POD_GROUP else None
            if job is not None and (job.obj.get("status") or {}).get("phase") != write.status.get("phase"):
                return True
        return False

    def _evict(self, uids: list[str]) -> None:
        if self.options.grace > 0:
            for uid in uids:
                self._push(self.now + self.options.grace, GONE, about=uid)
        elif uids:
            self._lose(uids, self.now, "preempted")

    def _wait_for_peers(self, done: Cycle) -> None:
        if self.options.patience > 0:
            for binding in done.binds:
                run = self.jobs.run_of(binding.uid)
                if run is not None and run.job.apart and run.rate == 0:
                    self._push(self.now + self.options.patience, GIVE_UP, run.index, binding.uid)

    def _notice_deadlock(self) -> None:
        """Pods hold nodes, others wait for nodes, and nothing gets on: nor will it, but for pods that give up."""
        runs = self.jobs.runs.values()
        waits = self._due == inf and self._next_arrival() == inf and not any(what in (GONE, MADE) for _, what, *_ in self._heap)
        locked = waits and any(run.up for run in runs) and not any(run.rate for run in runs)
        if locked and self._locked_at is None:
            self.totals.deadlocks += 1
        self._locked_at = self.now if locked else None

    def _sample(self) -> Sample:
        jobs, scale = self.jobs, self.gauges.scale
        running = len(jobs.runs) - jobs.waiting
        used, capacity = self.totals.used / scale, self.totals.capacity / scale
        return Sample(self.now, used, capacity, jobs.waiting, running, jobs.asked, self.gauges.stranded())

    # -- what became of it ---------------------------------------------------------------------------------------------

    def outcomes(self) -> list[Outcome]:
        """Of every job that has arrived, in the order of arrivals; those that are still there are counted up to now."""
        for run in self.jobs.runs.values():
            run.settle(self.now)
        return sorted([*self.jobs.finished, *(run.outcome for run in self.jobs.runs.values())], key=lambda o: (o.arrival, o.name))

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on later, JSON-ready; to be asked between two steps."""
        return {
            "world": self.world.state(self.workload.objects),
            "jobs": self.jobs.state(),
            "totals": asdict(self.totals),
            "course": asdict(self.course),
            "now": self.now,
            "heap": self._heap,
            "numbers": [self._number, self._next, self._circling],
            "times": [None if abs(t) == inf else t for t in (self._last, self._due)],
            "locked": self._locked_at,
            "unwatched": self._unwatched,
            "chance": self._chance.getstate(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.now = state["now"]
        for name, value in state["totals"].items():
            setattr(self.totals, name, value)
        course = state["course"]
        self.course = Course(course["step"], [Sample(**sample) for sample in course["samples"]])
        self._heap = [(at, what, number, index, about) for at, what, number, index, about in state["heap"]]
        self._number, self._next, self._circling = state["numbers"]
        last, due = state["times"]
        self._last, self._due = -inf if last is None else last, inf if due is None else due
        self._locked_at, self._unwatched = state["locked"], state["unwatched"]
        version, inner, gauss = state["chance"]
        self._chance.setstate((version, tuple(inner), gauss))
        self.jobs.restore(state["jobs"])
