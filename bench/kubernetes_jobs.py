"""Jobs against a real API server on the same machine: what one costs it, how fast many are bound, how tightly gangs follow.

`python -m bench.kubernetes_jobs [--rows writes,efficiency,live]`:

- `writes`: API writes that scheduler and controller make for one job of six pods, from submission until all is told;
- `efficiency`: 1, 2 and 5 jobs of 2 ps and 4 workers at 1 CPU on 2 nodes of 4 CPUs. A pod starts half a second after it was
  bound; once all six of a job run they work for ten seconds. Seconds from submission to the last job Completed;
- `live`: 1,000 nodes, 100 jobs of 50 pods submitted at once; pods/s from the first submission to the last bind. On a machine that
  does other things too look at the last rate, which goes by processor time alone.

It needs kube-apiserver and etcd (`KUBEBUILDER_ASSETS`, or /usr/local/kubebuilder/bin), and says so where they are missing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from bench.kubernetes_world import MIB, PARTS, Machines, World, is_possible, kept_all, world
from bench.table import show
from cluster.kinds import JOB
from cluster.port import Obj

DELAY, WORK = 0.5, 10.0
AFTER = 3.0
"""Seconds that are waited for what is still said after a job's end."""
LONGEST = 600.0


def job(name: str, roles: dict[str, int]) -> Obj:
    """A gang of pods that ask for 1 CPU and 1 GiB each."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [container]}}
    tasks = [{"name": role, "replicas": replicas, "template": template} for role, replicas in roles.items()]
    spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": sum(roles.values()), "tasks": tasks}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


TRAINING = {"ps": 2, "worker": 4}


def completed(at_work: World, number: int) -> float:
    """Wait for so many jobs to be Completed; seconds."""
    begin, watch = time.monotonic(), at_work.cluster.watch([JOB])
    done: set[str] = set()
    try:
        while len(done) < number:
            event = watch.get(timeout=1.0)
            if time.monotonic() > begin + LONGEST:
                raise SystemExit(f"{len(done)} of {number} jobs were completed: {at_work.log('controller')[-2000:]}")
            if event is not None and event.kind == JOB:
                phase = ((event.object.get("status") or {}).get("state") or {}).get("phase")
                done |= {event.object["metadata"]["name"]} if phase == "Completed" else set()
        return time.monotonic() - begin
    finally:
        watch.close()


def writes(given: argparse.Namespace) -> None:
    """One job of six pods, write by write."""
    with world(audited=True) as at_work:
        at_work.nodes(2, "4", "32Gi")
        at_work.begin()
        time.sleep(AFTER)
        before = at_work.writes()
        with Machines(at_work.cluster, DELAY, WORK).at_work():
            kept_all(at_work.cluster.create_many(JOB, [job("training", TRAINING)]))
            completed(at_work, 1)
            time.sleep(AFTER)
        found = at_work.writes()
        found.subtract(before)
        found = +found
    whats = dict.fromkeys(what for _, what in sorted(found))
    rows = [(what, [str(found[part, what] or "") for part in PARTS]) for what in whats]
    totals = [sum(count for (by, _), count in found.items() if by == part) for part in PARTS]
    rows.append((f"together {sum(totals)}", [str(total) for total in totals]))
    show("API writes for one job of six pods, from submission to completion (Leases left out)", rows, PARTS)


def efficiency(given: argparse.Namespace) -> None:
    """Gangs that have to wait for each other."""
    rows = []
    for number in (1, 2, 5):
        with world() as at_work:
            at_work.nodes(2, "4", "32Gi")
            at_work.begin()
            time.sleep(1.0)
            with Machines(at_work.cluster, DELAY, WORK).at_work():
                kept_all(at_work.cluster.create_many(JOB, [job(f"training-{n}", TRAINING) for n in range(number)]))
                rows.append((str(number), [f"{completed(at_work, number):.2f}", f"{number * (DELAY + WORK):.1f}"]))
    title = "jobs of 2 ps and 4 workers on room for one of them, 0.5 s to start and 10 s of work each"
    show(title, rows, ["last completion, s", "no shorter, s"])


def live(given: argparse.Namespace) -> None:
    """Many jobs at once, through controller and scheduler."""
    with world() as at_work:
        at_work.nodes(given.nodes, "32", "128Gi")
        at_work.begin(profiles=given.profiles)
        time.sleep(2.0)
        before, total, begin = at_work.busy(), given.jobs * given.pods, time.monotonic()
        kept_all(at_work.cluster.create_many(JOB, [job(f"job-{n}", {"worker": given.pods}) for n in range(given.jobs)]))
        submitted = time.monotonic() - begin
        while at_work.gangs() < given.jobs or at_work.unbound():
            if time.monotonic() > begin + LONGEST:
                raise SystemExit(
                    f"not all pods were bound: {at_work.log('controller')[-2000:]}{at_work.log('scheduler')[-2000:]}"
                )
            time.sleep(0.2)
        took = time.monotonic() - begin
        time.sleep(AFTER)
        busy = {name: seconds - before[name] for name, seconds in at_work.busy().items()}
        used = at_work.end()
    row = [f"{submitted:.1f}", f"{took:.1f}", f"{total / took:,.0f}"]
    row += [f"{seconds:.1f}" for seconds in busy.values()]
    row += [f"{total * 2 / sum(busy.values()):,.0f}", *(f"{used[part].memory / MIB:,.0f}" for part in PARTS)]
    heads = ["submitted, s", "last bind, s", "pods/s", *(f"{name}, processor s" for name in busy)]
    heads += ["pods/s if two cores did nothing else", *(f"{part}, MiB" for part in PARTS)]
    name = f"{given.jobs} jobs of {given.pods} on {given.nodes} nodes"
    show("jobs submitted live, from the first submission to the last bind", [(name, row)], heads)


ROWS: dict[str, Callable[[argparse.Namespace], None]] = {"writes": writes, "efficiency": efficiency, "live": live}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {', '.join(ROWS)}; all of them")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=50, help="of a job")
    parser.add_argument("--profiles", type=Path, help="write profiles of the main threads into this folder")
    given = parser.parse_args()
    asked = given.rows.split(",")
    if unknown := set(asked) - set(ROWS):
        parser.error(f"no row named {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    if is_possible():
        for name in asked:
            ROWS[name](given)


if __name__ == "__main__":
    main()
