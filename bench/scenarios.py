"""The scenarios by which the scheduler is measured: what happens, the aim, and when a measure reaches it."""

from __future__ import annotations

import cProfile
import gc
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench import openb, sharing
from bench.table import PACKING
from bench.worlds import GPU, TEMPLATES, Job, Template, node_names, nodes, priority_classes, queue
from cluster.admission import Admission
from cluster.clock import SystemClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from cluster.port import Obj, WatchEvent
from scheduler import conf
from scheduler.conf import DEFAULT
from scheduler.cycle import Cycle
from scheduler.framework.record import CycleRecord
from scheduler.loop import SchedulerLoop
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
VAIN = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
BINPACK = PACKING.format(resources=GPU)
GIB = 2.0**30


@dataclass(slots=True)
class Measure:
    """What one scenario took. `said` is the decision in one line; `pods` is 0 where a rate would mean nothing.

    `ahead`: by how much ours is better than the best of the others.
    """

    wall: float
    busy: float
    memory: int = 0
    pods: int = 0
    said: str = ""
    ahead: float = 0.0


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


def arrival_in_loop(profile: cProfile.Profile | None) -> Measure:
    """The same through the embedded cluster with the scheduler's loop running: from the first write to the decision."""
    cluster = EmbeddedCluster(clock=SystemClock(), admission=Admission())
    kinds = {"Node": NODE, "Queue": QUEUE, "PodGroup": POD_GROUP, "Pod": POD}
    for obj in [*nodes(10_000), *(queue(f"q{i}", i + 1) for i in range(4)), *_all(_runners())]:
        made = cluster.create(kinds[obj["kind"]], obj)["metadata"]
        cluster.patch_status(kinds[obj["kind"]], made["name"], made.get("namespace") or "", obj["status"])
    done, quiet, stop = threading.Event(), threading.Event(), threading.Event()

    def hear(record: CycleRecord) -> None:
        quiet.set()
        if record.bound >= 100:
            done.set()

    loop = SchedulerLoop(cluster, conf.load(BINPACK), SystemClock(), hear)
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    assert quiet.wait(300), "the loop did not begin"
    while quiet.wait(3.0):  # until nothing is left to be written of what was found
        quiet.clear()
    gc.collect()
    gc.freeze()
    times = []
    for number in range(5):
        done.clear()
        wall = time.perf_counter()
        group, *pods = Job(f"new-{number}", 100, Template(2, 8), 100, "q0", created=1e6).objects()
        cluster.create(POD_GROUP, group)
        cluster.create_many(POD, pods)
        assert done.wait(60), "the gang was not placed"
        times.append(time.perf_counter() - wall)
        time.sleep(2)
    stop.set()
    thread.join()
    median = sorted(times)[2]
    return Measure(median, median, said=f"median of 5, {min(times) * 1000:.0f} to {max(times) * 1000:.0f} ms")


def trace(profile: cProfile.Profile | None) -> Measure:
    """The pods of openb, each a job of its own, all pending at once."""
    return _place(_offline_of(openb.snapshot()), profile)


def packing(profile: cProfile.Profile | None) -> Measure:
    """openb with shares of single cards: which part of all GPUs ends up allocated, by us and by three plain policies."""
    begin, busy = time.perf_counter(), time.process_time()
    parts = sharing.parts(sharing.DATA, 3)
    ratios = {name: found[0] for name, found in parts.items()}
    best = max(ratio for name, ratio in ratios.items() if name != "ours")
    said = ", ".join(f"{name} {ratio:.1f} %" for name, ratio in ratios.items())
    return Measure(time.perf_counter() - begin, time.process_time() - busy, said=said, ahead=ratios["ours"] - best)


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


def vain(profile: cProfile.Profile | None) -> Measure:
    """1,000 nodes full of whole gangs of 190 queues, half of which starve: for none of their jobs may anybody be evicted."""
    names, queues = node_names(1000), [queue(f"q{i:03}", 1 + i % 5) for i in range(190)]
    held = [
        Job(f"old-{i:04}", 4, Template(4, 8, 4), 4, f"q{i % 190:03}", float(i), nodes=[names[i * 2], names[i * 2 + 1]] * 2)
        for i in range(500)
    ]
    held = [job for job in held if int(job.queue[1:]) % 2]
    taken = {name for job in held for name in job.nodes}
    left = [name for name in names if name not in taken]
    held += [
        Job(f"more-{i:04}", 2, Template(4, 8, 4), 2, f"q{2 * i % 190 + 1:03}", nodes=[name] * 2) for i, name in enumerate(left)
    ]
    waiting = [
        Job(f"new-{i:04}", 1 + i % 8, Template(4, 8, 1 << i % 4), 1 + i % 8, f"q{2 * i % 190:03}", 1e6 + i) for i in range(950)
    ]
    offline = _offline([*nodes(1000), *queues, *_all([*held, *waiting])], VAIN)
    done, wall, busy = _timed(offline.decide, profile)
    said = f"{done.record.considered} considered, {len(done.evictions)} evicted"
    return Measure(wall, busy, said=said)


def _running(size: int = 100) -> Offline:
    """10,000 nodes, 100,000 running pods in gangs, and two cycles done, so that everything was said once."""
    offline = _offline([*nodes(10_000), *(queue(f"q{i}", i + 1) for i in range(4)), *_all(_runners(size))], BINPACK)
    offline.cycle()
    offline.cycle()
    gc.collect()
    gc.freeze()
    return offline


def _runners(size: int = 100) -> Iterable[Job]:
    """100,000 pods that run, in gangs."""
    names = node_names(10_000)
    for i in range(100_000 // size):
        places = [names[(i * size + k) % 10_000] for k in range(size)]
        template = TEMPLATES[i % len(TEMPLATES)]
        yield Job(f"gang-{i:05}", size, Template(template.cpu, template.memory), size, f"q{i % 4}", float(i), nodes=places)


def _all(jobs: Iterable[Job]) -> Iterable[Obj]:
    return (obj for job in jobs for obj in job.objects())


def _offline(objs: Iterable[Obj], text: str) -> Offline:
    return _offline_of(Snapshot.of(objs, text))


def _offline_of(snapshot: Snapshot) -> Offline:
    offline = Offline(snapshot, now=2e6)
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
    "idle-1": Scenario("the same in 100,000 jobs of one pod", "≤ 50 ms", idle(1), _within(0.05)),
    "arrival": Scenario("100,000 running, a gang of 100 arrives", "≤ 100 ms", arrival, _within(0.1)),
    "arrival-loop": Scenario("the same with the loop on, by the embedded cluster", "≤ 100 ms", arrival_in_loop, _within(0.1)),
    "preempt": Scenario("preempt: 1,000 nodes full, a gang of 200", "≤ 1 s, 800 victims", preempt, _within(1.0)),
    "reclaim": Scenario("reclaim: 50 queues, a new one claims a tenth", "≤ 2 s", reclaim, _within(2.0)),
    "vain": Scenario("reclaim in vain: 95 queues starve, none may be evicted", "≤ 1 s", vain, _within(1.0)),
    "openb": Scenario("openb, 8,152 pods one at a time", "≥ 5,000 pods/s", trace, _rate(5000)),
    "packing": Scenario(
        "openb with shares of cards: allocated GPUs", "best ratio of the four", packing, lambda found: found.ahead >= 0
    ),
}
