"""From submit to all pods Running, on an idle demo fleet whose machines start pods at once.

Run it as `python -m bench.start [--jobs N] [--pods N]`. Every part of Basalt runs as in `manage.py run`, without the web;
each job is a gang that is waited for and deleted before the next is submitted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench.scratch import django_in_scratch, percentile
from bench.table import show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--pods", type=int, default=8, help="of each gang; each asks one GPU")
    options = parser.parse_args()
    with django_in_scratch() as folder:
        times = run(folder, options.jobs, options.pods)
    row = [f"{percentile(times, share) * 1000:.0f}" for share in (0.5, 0.95, 1.0)]
    show(
        f"From submit to all pods Running, {options.jobs} gangs of {options.pods} pods", [("ms", row)], ["median", "p95", "worst"]
    )


def run(folder: Any, jobs: int, pods: int) -> list[float]:
    """Seconds of each job."""
    from cluster.embedded import fleets
    from cluster.embedded.fates import INSTANT
    from cluster.kinds import POD
    from jobs import writes
    from portal import parts

    embedded = parts.embedded(folder, timing=INSTANT)
    fleets.load(embedded.cluster, fleets.demo())
    found = parts.assemble(embedded.cluster, embedded.cluster.clock)
    found.runs["kubelet"] = embedded.kubelet.run
    found.start()
    assert found.mirror.synced.wait(30)
    time.sleep(2)
    watch = embedded.cluster.watch([POD])
    try:
        return [one(watch, writes, f"start-{number:03}", pods) for number in range(jobs)]
    finally:
        watch.close()
        found.stop()
        embedded.close()


def one(watch: Any, writes: Any, name: str, pods: int) -> float:
    """Submit, wait until its pods run, delete it, and wait until they are gone."""
    from jobs.models import Job

    watch.drain()
    begin = time.perf_counter()
    obj = writes.submit(gang(name, pods), "bench")
    running: set[str] = set()
    while len(running) < pods:
        event = watch.get(timeout=30)
        assert event is not None, f"{name}: {len(running)} of {pods} pods run after 30 s"
        if event.kind is not None and event.object.get("status", {}).get("phase") == "Running":
            running.add(event.object["metadata"]["uid"])
    took = time.perf_counter() - begin
    writes.delete(Job.objects.get(pk=obj["metadata"]["uid"]))
    gone: set[str] = set()
    while not running <= gone:
        event = watch.get(timeout=30)
        assert event is not None, f"{name}: its pods do not go"
        if event.type == "DELETED":
            gone.add(event.object["metadata"]["uid"])
    return took


def gang(name: str, pods: int) -> dict[str, Any]:
    """A gang of one-GPU pods that run until they are deleted."""
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}},
    }
    template = {
        "metadata": {"annotations": {"sim.basalt.dev/duration": "1h", "sim.basalt.dev/start-delay": "0s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": pods, "tasks": [{"name": "w", "replicas": pods, "template": template}]},
    }


if __name__ == "__main__":
    main()
