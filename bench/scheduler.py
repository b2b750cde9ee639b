"""The scheduler's speed and memory: every scenario in a process of its own, one table.

Run it as `python -m bench.scheduler [NAME…] [--runs N] [--profile FILE]`; the names are those of the table. Wall time is
what a user feels; on a machine that does other things too, compare processor time. Memory is the most that the process
ever held, the Kubernetes objects included.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.table import PACKING, show
from bench.worlds import GPU, NODE, TEMPLATES, Job, Template, node_names, nodes, priority_classes, queue
from cluster.kinds import POD, POD_GROUP
from cluster.port import Obj, WatchEvent
from scheduler.conf import DEFAULT
from scheduler.cycle import Cycle
from scheduler.snapshot import Offline, Snapshot

EVICTING = """\
actions: "enqueue, allocate, {action}, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
BINPACK = PACKING.format(resources=GPU)
GIB = 2.0**30


@dataclass(slots=True)
class Measure:
    """What one scenario took. `said` is the decision in one line; `pods` is 0 where a rate would mean nothing."""

    wall: float
    busy: float
    memory: int = 0
    pods: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row: what is measured, the aim in words, and whether a measure reaches it (by processor time)."""

    title: str
    aim: str
    play: Callable[[cProfile.Profile | None], Measure]
    reached: Callable[[Measure], bool]


# --- scenarios ----------------------------------------------------------------------------------------------------


def gangs(node_count: int, count: int, size: int, conf: str) -> Callable[[cProfile.Profile | None], Measure]:
    """Gangs of twenty templates in four queues, all pending at once; the cycles that place them."""

    def play(profile: cProfile.Profile | None) -> Measure:
        jobs = [
            Job(f"gang-{i:05}", size, TEMPLATES[i % len(TEMPLATES)], size, f"q{i % 4}", created=float(i)) for i in range(count)
        ]
        offline = _offline([*nodes(node_count), *(queue(f"q{i}", i + 1) for i in range(4)), *_all(jobs)], conf)
        return _place(offline, profile)

    return play


def singles(profile: cProfile.Profile | None) -> Measure:
    """10,000 jobs of one pod on 10,000 nodes, default plugins and binpack."""
    jobs = [Job(f"job-{i:05}", 1, TEMPLATES[i % len(TEMPLATES)], 1, f"q{i % 4}", created=float(i)) for i in range(10_000)]
    objs = [*nodes(10_000), *(queue(f"q{i}", i + 1) for i in range(4)), *_all(jobs)]
    return _place(_offline(objs, BINPACK), profile)


def idle(size: int) -> Callable[[cProfile.Profile | None], Measure]:
    """A cycle over 10,000 nodes and 100,000 running pods, in jobs of some size, in which nothing is pending."""

    def play(profile: cProfile.Profile | None) -> Measure:
        offline = _running(size)
        found = _timed(offline.decide, profile)
        return Measure(found[1], found[2], said=f"{len(found[0].binds)} bound")

    return play


def arrival(profile: cProfile.Profile | None) -> Measure:
    """One gang of 100 arrives there: from its events to the decision."""
    offline = _running()
    events = [
        WatchEvent("ADDED", POD_GROUP if obj["kind"] == "PodGroup" else POD, obj)
        for obj in Job("new", 100, Template(2, 8), 100, "q0", created=1e6).objects()
    ]

    def arrive() -> Cycle:
        offline.cache.apply_all(events)
        return offline.decide()

    done, wall, busy = _timed(arrive, profile)
    return Measure(wall, busy, said=f"{len(done.binds)} bound")


def preempt(profile: cProfile.Profile | None) -> Measure:
    """1,000 nodes full of low-priority pods; a gang of 200 of high priority comes. Each of its pods takes half a node."""
    names = node_names(1000)
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    filling = [
        Job(f"low-{i:04}", 8, Template(8, 64), 1, created=float(i), priority="low", nodes=[names[i]] * 8) for i in range(1000)
    ]
    high = Job("high", 200, Template(32, 256), 200, created=1e6, priority="high")
    offline = _offline([*nodes(1000, amounts), *priority_classes(), *_all([*filling, high])], EVICTING.format(action="preempt"))
    return _evict(offline, profile, 800)


def reclaim(profile: cProfile.Profile | None) -> Measure:
    """50 queues fill 1,000 nodes; a new queue that deserves a tenth claims it with eight gangs of 100 pods."""
    names = node_names(1000)
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    filling = [
        Job(f"old-{i:04}", 8, Template(8, 64), 1, f"q{i % 50}", created=float(i), nodes=[names[i]] * 8) for i in range(1000)
    ]
    # Weights of 9 for each of 50 queues and 50 for the new one: a tenth of the cluster is its own.
    new = [Job(f"new-{i}", 100, Template(8, 64), 100, "claims", created=1e6 + i) for i in range(8)]
    queues = [*(queue(f"q{i}", 9) for i in range(50)), queue("claims", 50)]
    offline = _offline([*nodes(1000, amounts), *queues, *_all([*filling, *new])], EVICTING.format(action="reclaim"))
    return _evict(offline, profile, 800)


def _running(size: int = 100) -> Offline:
    """10,000 nodes, 100,000 running pods in gangs, and two cycles done, so that everything was said once."""
    names = node_names(10_000)
    jobs = []
    for i in range(100_000 // size):
        places = [names[(i * size + k) % 10_000] for k in range(size)]
        template = TEMPLATES[i % len(TEMPLATES)]
        jobs.append(Job(f"gang-{i:05}", size, Template(template.cpu, template.memory), size, f"q{i % 4}", float(i), nodes=places))
    conf = BINPACK
    offline = _offline([*nodes(10_000), *(queue(f"q{i}", i + 1) for i in range(4)), *_all(jobs)], conf)
    offline.cycle()
    offline.cycle()
    return offline


def _all(jobs: Iterable[Job]) -> Iterable[Obj]:
    return (obj for job in jobs for obj in job.objects())


def _offline(objs: Iterable[Obj], conf: str) -> Offline:
    offline = Offline(Snapshot.of(objs, conf), now=2e6)
    gc.collect()
    gc.freeze()  # as a process that has run for a while: what stays is not looked at again
    return offline


def _timed(work: Callable[[], Cycle], profile: cProfile.Profile | None) -> tuple[Cycle, float, float]:
    """The outcome, wall and processor seconds."""
    if profile is not None:
        return profile.runcall(work), 0.0, 0.0
    wall, busy = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - wall, time.process_time() - busy


def _place(offline: Offline, profile: cProfile.Profile | None) -> Measure:
    """Cycles until one places nothing, which is not counted."""
    total = Measure(0.0, 0.0)
    cycles = 0
    while True:
        done, wall, busy = _timed(offline.decide, profile)
        if not done.binds:
            total.said = f"{total.pods:,} bound in {cycles} {'cycle' if cycles == 1 else 'cycles'}"
            return total
        cycles, total.pods = cycles + 1, total.pods + len(done.binds)
        total.wall, total.busy = total.wall + wall, total.busy + busy
        if profile is not None:
            return total
        offline.take_in(done)


def _evict(offline: Offline, profile: cProfile.Profile | None, least: int) -> Measure:
    """The cycle that evicts; `least` is the smallest number of victims that makes the room."""
    done, wall, busy = _timed(offline.decide, profile)
    victims, kept = len(done.evictions), len(done.record.pipelined) + len(done.binds)
    return Measure(wall, busy, said=f"{victims} victims (least: {least}), room kept for {kept} pods")


# --- the table ----------------------------------------------------------------------------------------------------


def _rate(least: float) -> Callable[[Measure], bool]:
    return lambda found: found.pods / found.busy >= least


def _within(seconds: float) -> Callable[[Measure], bool]:
    return lambda found: found.busy <= seconds


SCENARIOS = {
    "small": Scenario("1,000 nodes, 100 gangs × 50", "≥ 20,000 pods/s", gangs(1000, 100, 50, DEFAULT), _rate(20_000)),
    "large": Scenario(
        "10,000 nodes, 1,000 gangs × 100, 20 templates, binpack",
        "≥ 20,000 pods/s, < 2 GiB",
        gangs(10_000, 1000, 100, BINPACK),
        lambda found: _rate(20_000)(found) and found.memory < 2 * GIB,
    ),
    "singles": Scenario("the same with 10,000 jobs of one pod", "≥ 5,000 pods/s", singles, _rate(5000)),
    "idle": Scenario("100,000 running in gangs of 100, nothing pending", "≤ 50 ms", idle(100), _within(0.05)),
    "idle-10": Scenario("the same in 10,000 jobs of 10", "≤ 50 ms", idle(10), _within(0.05)),
    "arrival": Scenario("100,000 running, a gang of 100 arrives", "≤ 100 ms", arrival, _within(0.1)),
    "preempt": Scenario("preempt: 1,000 nodes full, a gang of 200", "≤ 1 s, 800 victims", preempt, _within(1.0)),
    "reclaim": Scenario("reclaim: 50 queues, a new one claims a tenth", "≤ 2 s", reclaim, _within(2.0)),
}


def measured(name: str, runs: int) -> Measure:
    """The quickest of some runs by processor time, each in a fresh process."""
    found = []
    for _ in range(runs):
        command = [sys.executable, "-m", "bench.scheduler", name, "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(Measure(**json.loads(done.stdout)))
    return min(found, key=lambda each: each.busy)


def cells(scenario: Scenario, found: Measure) -> list[str]:
    """A row of the table."""
    rate = f"{found.pods / found.busy:,.0f}" if found.pods else ""
    memory = f"{found.memory / GIB:.2f}"
    verdict = "yes" if scenario.reached(found) else "NO"
    return [scenario.aim, f"{found.wall * 1000:,.0f}", f"{found.busy * 1000:,.0f}", rate, memory, verdict, found.said]


HEADS = ["aim", "wall, ms", "processor, ms", "pods/s", "GiB", "reached", "decided"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)} (all)")
    parser.add_argument("--runs", type=int, default=3, help="how often to measure; the quickest is shown")
    parser.add_argument("--profile", type=Path, help="write a profile of the first named one to this file instead")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.names) - SCENARIOS.keys():
        parser.error(f"no scenario named {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    if given.runs < 1:
        parser.error("--runs is a whole number from 1 on")
    names = given.names or list(SCENARIOS)
    if given.profile:
        profile = cProfile.Profile()
        SCENARIOS[names[0]].play(profile)
        profile.dump_stats(given.profile)
    elif given.json:
        found = SCENARIOS[names[0]].play(None)
        found.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(asdict(found)))
    else:
        rows = [(SCENARIOS[name].title, cells(SCENARIOS[name], measured(name, given.runs))) for name in names]
        show(f"scheduler: nodes of {NODE['cpu']} CPUs, {NODE['memory']} and 8 GPUs; one core", rows, HEADS)


if __name__ == "__main__":
    main()
