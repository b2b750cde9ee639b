"""Jobs in numbers: a very large one, very many at once, and how soon a first pod runs.

Run it as `python -m bench.jobs [--rows latency,many,large] [--pods N] [--jobs N] [--each N] [--singles N] [--profile]`. Every
part of Basalt runs as in `manage.py run`, without the web; machines start pods at once, and pods end as soon as they have
started. Writes are rows that any table of any database took.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import os
import pstats
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.scratch import django_in_scratch, percentile
from bench.table import show

PATIENCE = 900.0
NODES, PODS_A_NODE = 400, 110


def main() -> None:
    """Measure the chosen rows, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {', '.join(ROWS)}; all of them")
    parser.add_argument("--pods", type=int, default=10_000, help="of the one large job")
    parser.add_argument("--jobs", type=int, default=1_000, help="that are submitted at once")
    parser.add_argument("--each", type=int, default=10, help="pods of each of them")
    parser.add_argument("--singles", type=int, default=60, help="jobs submitted one after the other, for the latency")
    parser.add_argument("--profile", action="store_true", help="also say where the controllers' time goes")
    options = parser.parse_args()
    asked = options.rows.split(",")
    if unknown := set(asked) - set(ROWS):
        parser.error(f"no row named {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    with django_in_scratch() as folder, _running(folder, options.profile) as world:
        rows = [row for name in ROWS if name in asked for row in ROWS[name](world, options)]
    show("Jobs: pods ask 0.1 CPU and end at once, machines start them at once", [(name, [value]) for name, value in rows], [""])


def _processor_times() -> Counter[str]:
    """Processor seconds of this process's threads by part (where /proc tells)."""
    times: Counter[str] = Counter()
    tick = os.sysconf("SC_CLK_TCK")
    for thread in threading.enumerate():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
            part = thread.name.rstrip("-0123456789")
            times[{"MainThread": "submitting", "controller": "controllers"}.get(part, part)] += (
                int(fields[11]) + int(fields[12])
            ) / tick
    return times


def _shares(before: Counter[str]) -> list[tuple[str, str]]:
    """A row that says which part used how much processor time since."""
    spent = _processor_times()
    spent.subtract(before)
    return [
        ("  processor seconds", ", ".join(f"{part} {seconds:.1f}" for part, seconds in spent.most_common(6) if seconds > 0.05))
    ]


class World:
    """Basalt at work, and what was counted of it."""

    def __init__(self, cluster: Any, rows: Counter[str]) -> None:
        self.cluster, self.rows = cluster, rows
        self.passes = 0
        self.busy = 0.0

    def wait(self, what: str, done: Callable[[], bool]) -> float:
        """Seconds until something holds."""
        begin = time.perf_counter()
        while not done():
            assert time.perf_counter() - begin < PATIENCE, f"{what} does not come"
            time.sleep(0.02)
        return time.perf_counter() - begin

    def phases(self) -> Counter[str]:
        """Jobs by phase, as the store has them."""
        from cluster.kinds import JOB

        return Counter(_phase(job) for job in self.cluster.list(JOB).items)


@contextlib.contextmanager
def _running(folder: Any, profile: bool) -> Iterator[World]:
    """Every part, with counters on what is written and worked."""
    from cluster.embedded import fleets
    from cluster.embedded.fates import INSTANT
    from cluster.embedded.machines import make_node
    from portal import parts

    rows: Counter[str] = Counter()
    _count_rows(rows)
    embedded = parts.embedded(folder, timing=INSTANT)
    amounts = {"cpu": "64", "memory": "256Gi", "pods": str(PODS_A_NODE)}
    nodes = [make_node(f"node-{n:04}", capacity=amounts, allocatable=amounts, labels={}, annotations={}) for n in range(NODES)]
    fleets.load(embedded.cluster, fleets.Fleet("bench", tuple(nodes)))
    world = World(embedded.cluster, rows)
    _count_passes(world)
    profiles = _profiled() if profile else []
    found = parts.assemble(embedded.cluster, embedded.cluster.clock)
    found.runs["kubelet"] = embedded.kubelet.run
    found.start()
    assert found.mirror.synced.wait(60)
    time.sleep(1)
    try:
        yield world
    finally:
        found.stop()
        embedded.close()
        if profiles:
            stats = pstats.Stats(profiles[0])
            for other in profiles[1:]:
                stats.add(other)
            stats.sort_stats("cumulative").print_stats(45)


def _count_rows(rows: Counter[str]) -> None:
    """Count the rows that any connection from now on writes: into the store, and into everything else."""
    from django.db.backends.signals import connection_created

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        verb = sql.split(None, 1)[0].upper()
        if verb in ("INSERT", "UPDATE", "DELETE"):
            where = "store" if "cluster_storedobject" in sql else "projection"
            done = execute(sql, params, many, context)
            rows[where] += len(params) if many else max(context["cursor"].rowcount, 1)
            return done
        return execute(sql, params, many, context)

    def watch_writes(connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(count)

    connection_created.connect(watch_writes, weak=False)


def _count_passes(world: World) -> None:
    """Count the controllers' passes, and the processor seconds of their threads."""
    from jobs.controller.manager import ControllerManager

    work, lock = ControllerManager._handle, threading.Lock()

    def handle(self: Any, key: Any) -> None:
        begin = time.thread_time()
        work(self, key)
        with lock:
            world.passes += 1
            world.busy += time.thread_time() - begin

    ControllerManager._handle = handle  # type: ignore[method-assign]


def _profiled() -> list[cProfile.Profile]:
    """Profile every worker of the controllers that starts from now on: one profile each."""
    from jobs.controller.manager import ControllerManager

    threaded, profiles = ControllerManager._work, list[cProfile.Profile]()

    def worker(self: Any) -> None:
        one = cProfile.Profile(time.thread_time)
        profiles.append(one)
        one.runcall(threaded, self)

    ControllerManager._work = worker  # type: ignore[method-assign]
    return profiles


def _latency(world: World, count: int) -> list[tuple[str, str]]:
    """From the call that submits until the first pod of the job runs, on an idle cluster."""
    from cluster.kinds import POD

    watch, times = world.cluster.watch([POD]), []
    for number in range(count):
        watch.drain()
        begin = time.perf_counter()
        name = f"single-{number:03}"
        _submit(name, 4)
        while True:
            event = watch.get(timeout=30)
            assert event is not None, f"{name}: no pod runs"
            obj = event.object
            if event.kind is not None and obj["metadata"]["name"].startswith(name) and obj["status"].get("phase") != "Pending":
                break
        times.append((time.perf_counter() - begin) * 1000)
    watch.close()
    _drop(world)
    return [
        ("submit to first pod running, median", f"{percentile(times, 0.5):.0f} ms"),
        ("submit to first pod running, p95", f"{percentile(times, 0.95):.0f} ms"),
    ]


def _many(world: World, jobs: int, each: int) -> list[tuple[str, str]]:
    """Very many jobs at once."""
    passes, busy, before, used = world.passes, world.busy, Counter(world.rows), _processor_times()
    begin = time.perf_counter()
    for number in range(jobs):
        _submit(f"many-{number:05}", each)
    submitted = time.perf_counter() - begin
    world.wait("the end of all jobs", lambda: world.phases()["Completed"] == jobs)
    took = time.perf_counter() - begin
    pods = jobs * each
    rows = [
        (f"{jobs:,} jobs × {each} pods: all submitted", f"{submitted:.1f} s"),
        ("  all Completed", f"{took:.1f} s"),
        ("  pods a second, from submit to end", f"{pods / took:,.0f}"),
        ("  reconciles a second", f"{(world.passes - passes) / took:,.0f}"),
        ("  reconciles a second of controller processor time", f"{(world.passes - passes) / (world.busy - busy):,.0f}"),
        ("  reconciles a job", f"{(world.passes - passes) / jobs:.1f}"),
        *(
            (f"  rows written a pod, {name}", f"{(world.rows[name] - before[name]) / pods:.1f}")
            for name in ("store", "projection")
        ),
        *_shares(used),
    ]
    return [*rows, ("  all deleted", f"{_drop(world):.1f} s")]


def _large(world: World, pods: int) -> list[tuple[str, str]]:
    """One very large gang."""
    from cluster.kinds import POD

    before, used, begin = Counter(world.rows), _processor_times(), time.perf_counter()
    _submit("large", pods)
    made = world.wait("all pods", lambda: len(world.cluster.list(POD).items) >= pods)
    world.wait("the end of the large job", lambda: world.phases()["Completed"] == 1)
    took = time.perf_counter() - begin
    rows = [
        (f"one job of {pods:,} pods: all pods made", f"{made:.1f} s"),
        ("  Completed", f"{took:.1f} s"),
        *(
            (f"  rows written a pod, {name}", f"{(world.rows[name] - before[name]) / pods:.1f}")
            for name in ("store", "projection")
        ),
        *_shares(used),
    ]
    shown = _mirrored(pods)
    rows += [(f"  {name}", value) for name, value in _pages(shown)]
    return [*rows, ("  deleted with all pods", f"{_drop(world):.1f} s")]


def _mirrored(pods: int) -> str:
    """The large job's uid, once its pods are projected."""
    from jobs.models import Job, Pod

    job = Job.objects.get(name="large", deleted_at=None)
    end = time.perf_counter() + PATIENCE
    while Pod.objects.filter(job_uid=job.uid, phase="Succeeded").count() < pods:
        assert time.perf_counter() < end, "the mirror does not catch up"
        time.sleep(0.1)
    return job.uid


def _pages(uid: str) -> list[tuple[str, str]]:
    """What its pages cost, through Django's test client."""
    from bench.joblist import measure, signed_in

    client = signed_in()
    paths = {"page": f"/jobs/{uid}/", "page of pods": f"/jobs/{uid}/?tab=pods", "REST": f"/api/v1/jobs/{uid}"}
    found = []
    for name, path in paths.items():
        median, _, queries, size = measure(client, path, 5)
        found.append((f"{name}: median, queries, size", f"{median} ms, {queries}, {size} kB"))
    return found


def _drop(world: World) -> float:
    """Delete every job; seconds until nothing of them is left."""
    from cluster.kinds import JOB, POD
    from jobs import operations

    begin = time.perf_counter()
    for job in world.cluster.list(JOB).items:
        operations.delete(world.cluster, job["metadata"]["namespace"], job["metadata"]["name"])
    world.wait("an empty cluster", lambda: not world.cluster.list(POD, limit=1).items)
    return time.perf_counter() - begin


def _submit(name: str, pods: int) -> None:
    from jobs import writes

    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {
        "metadata": {"annotations": {"sim.basalt.dev/duration": "0s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": pods, "tasks": [{"name": "worker", "replicas": pods, "template": template}]},
    }
    writes.submit(manifest, "bench")


def _phase(job: Any) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


ROWS: dict[str, Callable[[World, argparse.Namespace], list[tuple[str, str]]]] = {
    "latency": lambda world, options: _latency(world, options.singles),
    "many": lambda world, options: _many(world, options.jobs, options.each),
    "large": lambda world, options: _large(world, options.pods),
}

if __name__ == "__main__":
    main()
