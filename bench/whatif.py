"""Questions to a copy of a large cluster: why a job waits and what would unblock it, a dry run, a queue's change.

1,000 full nodes of 8 GPUs, 200 queues, 10,000 jobs that wait, of which 200 are admitted. Run it as
`python -m bench.whatif [--nodes N] [--pending N] [--queues N] [--questions N]`. Times are of the processor, which is what
to compare on a machine that does other things too; those of the pages are as the reader waits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import worlds
from bench.scratch import django_in_scratch, percentile
from bench.table import show

CONF = Path(__file__).resolve().parent.parent / "deploy" / "volcano-scheduler.conf"
ASKS = worlds.Template(4, 16, 2)
PODS = 4


def main() -> None:
    """Measure in a folder of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--questions", type=int, default=12)
    options = parser.parse_args()
    with django_in_scratch():
        measure(options)


def measure(options: argparse.Namespace) -> None:
    """Ask each kind of question, and print how long the answers take."""
    from cluster import runtime
    from portal.unblock import answers, copy, queue_preview
    from portal.unblock.trial import try_job
    from scheduler import conf

    loaded = conf.load(CONF.read_text())
    copy.conf_in_force = lambda: loaded
    cluster: Any = Still(options)
    runtime.use(cluster)
    rows = []
    seconds, _ = timed(lambda: pinned(lambda view: view))
    rows.append(row("first look", [seconds]))
    seconds, _ = timed(lambda: pinned(lambda view: view.baseline))
    rows.append(row("nothing changed (once a copy)", [seconds]))
    names = [f"wait-{place:05}" for place in range(0, options.pending, max(1, options.pending // options.questions))]
    for title, some in (("admitted", [f"wait-{place:05}" for place in range(0, 200, 20)]), ("not admitted", names[1:])):
        first, whole, tried = [], [], []
        for name in some:
            desk = answers.Desk()
            key = (f"job-{name}", "bench", name, ("default",))
            begin = time.thread_time()
            marks: list[float] = []
            keep = desk._keep

            def noted(at: Any, answer: Any, keep: Any = keep, marks: Any = marks, begin: float = begin) -> None:
                if answer.found or answer.state != "working":
                    marks.append(time.thread_time() - begin)
                keep(at, answer)

            desk._keep = noted  # type: ignore[method-assign]
            desk._work(copy.current(), key)
            first.append(marks[0])
            whole.append(marks[-1])
            tried.append(desk._answers[key].tried)
        runs = f"{percentile([float(each) for each in tried], 0.5):.0f}"
        rows.append(row(f"what unblocks a job, {title}: first way", first))
        rows.append(row(f"what unblocks a job, {title}: all", whole, runs))
    manifest = job_of("new", ["q000"])
    seconds = [timed(lambda: pinned(lambda view: try_job(view, manifest)))[0] for _ in range(options.questions)]
    rows.append(row("dry run", seconds))
    changed = {**worlds.queue("q001"), "spec": {"weight": 9, "reclaimable": True, "capability": {worlds.GPU: "100"}}}
    seconds = [timed(lambda: pinned(lambda view: queue_preview.on(view, changed)))[0] for _ in range(3)]
    rows.append(row("a queue's change", seconds))
    title = f"Questions to a copy of {options.nodes:,} nodes, {options.pending:,} waiting jobs"
    show(title, rows, ["median s", "p95 s", "runs"])
    pages(options)


def row(title: str, seconds: list[float], more: str = "") -> tuple[str, list[str]]:
    """A row of the table."""
    return title, [f"{percentile(seconds, 0.5):.2f}", f"{percentile(seconds, 0.95):.2f}", more]


def pages(options: argparse.Namespace) -> None:
    """The job's page and its REST answer, with an answer at hand, and one that is being worked out."""
    from bench.joblist import measure as page
    from bench.joblist import signed_in
    from testbed.many_jobs import make_jobs
    from tests import factories

    make_jobs(options.pending)
    job = factories.job("wait-00000", namespace="bench", uid="job-wait-00000", verdict=factories.verdict())
    job.save()
    client = signed_in()
    client.get(f"/api/v1/jobs/{job.uid}/explain?wait=10")
    rows = [
        ("page", page(client, f"/jobs/{job.uid}/", 40)),
        ("part with the ways", page(client, f"/jobs/{job.uid}/unblock/", 40)),
        ("REST", page(client, f"/api/v1/jobs/{job.uid}/explain?wait=0", 40)),
    ]
    show(
        "A waiting job's page",
        [(title, cells[:5]) for title, cells in rows],
        ["median ms", "p95 ms", "p95 busy ms", "queries", "kB"],
    )


def pinned(ask: Callable[[Any], Any]) -> Any:
    """Ask the copy."""
    from portal.unblock.copy import current

    with current().pinned() as view:
        return ask(view)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of this thread's processor time, and what came of it."""
    begin = time.thread_time()
    found = work()
    return time.thread_time() - begin, found


def job_of(name: str, queues: list[str], place: int = 0) -> dict[str, Any]:
    """A Job's manifest."""
    container = {"name": "main", "image": "job", "resources": {"requests": ASKS.requests}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "bench", "uid": f"job-{name}", "creationTimestamp": worlds.stamp(1000.0 + place)},
        "spec": {
            "queue": queues[place % len(queues)],
            "minAvailable": PODS,
            "schedulerName": "volcano",
            "tasks": [{"name": "w", "replicas": PODS, "minAvailable": PODS, "template": template}],
        },
        "status": {},
    }


class Still:
    """A cluster in which nothing moves: it tells what there is, and no more."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def watch(self, kinds: Any, **_: Any) -> Told:
        """All of it, once."""
        from cluster.port import WatchEvent

        events = [WatchEvent("ADDED", kind, obj) for kind, obj in self._objects()]
        return Told([*events, WatchEvent("SYNCED", None, {})])

    def _objects(self) -> Iterator[tuple[Any, Any]]:
        from cluster.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
        from cluster.objects import owner_reference
        from jobs.keys import group_name

        options = self._options
        queues = [f"q{place:03}" for place in range(options.queues)]
        yield from ((NODE, each) for each in worlds.nodes(options.nodes))
        yield from ((QUEUE, worlds.queue(name)) for name in ["root", "default", *queues])
        names = worlds.node_names(options.nodes)
        for place in range(options.nodes):
            run = worlds.Job(f"run-{place:05}", PODS, ASKS, PODS, queues[place % len(queues)], place, nodes=[names[place]] * PODS)
            group, *pods = run.objects()
            yield POD_GROUP, group
            yield from ((POD, pod) for pod in pods)
        for place in range(options.pending):
            job = job_of(f"wait-{place:05}", queues, place)
            wait = worlds.Job(group_name(job), PODS, ASKS, PODS, job["spec"]["queue"], 1000.0 + place)
            group, *pods = wait.objects()
            group["metadata"]["ownerReferences"] = [owner_reference(job)]
            if place < 200:
                group["status"]["phase"] = "Inqueue"
            yield POD_GROUP, group
            yield JOB, job
            yield from ((POD, pod) for pod in pods if place < 200)


class Told:
    """What is told, in order."""

    def __init__(self, events: list[Any]) -> None:
        self._events = iter(events)

    def get(self, timeout: float | None = None) -> Any:
        """The next."""
        return next(self._events, None)

    def drain(self) -> list[Any]:
        """The rest."""
        return list(self._events)

    def close(self) -> None:
        """Nothing to end."""


if __name__ == "__main__":
    main()
