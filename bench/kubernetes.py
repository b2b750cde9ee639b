"""The scheduler against a real API server on the same machine: how fast gangs that wait are bound, and what that costs.

1,000 nodes, 100 gangs of 50 pods that exist beforehand; then `manage.py scheduler` starts. Run it as
`python -m bench.kubernetes [--nodes N] [--gangs N] [--pods N] [--at-once N] [--runs N]`. It needs kube-apiserver and etcd
(`KUBEBUILDER_ASSETS`, or /usr/local/kubebuilder/bin), and says so where they are missing.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from bench.table import show
from cluster.embedded.machines import make_node
from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from cluster.kubernetes import KubernetesCluster, connect
from cluster.port import Obj, Outcome, Victim
from testbed.server import TOKEN, ApiServer, binary

ROOT = Path(__file__).parents[1]
POLL = 0.1
LONGEST = 600.0
MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Measure:
    """One run: wall seconds from the scheduler's start, and from its first bind, to its last; what its process took."""

    wall: float
    binding: float
    busy: float
    memory: int
    pods: int


def fill(cluster: KubernetesCluster, nodes: int, gangs: int, pods: int) -> None:
    """Everything that is there before the scheduler starts."""
    for name in ("root", "default"):
        spec = {"weight": 1, **({"parent": "root"} if name != "root" else {})}
        cluster.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    made = [make_node(f"node-{n}", capacity=room, allocatable=room, labels={}, annotations={}) for n in range(nodes)]
    kept = _all(cluster.create_many(NODE, made))
    untaint: Obj = {"spec": {"taints": None}}  # a server taints what is new until a controller has seen it ready
    _all(cluster.patch_many(NODE, [(Victim("", node["metadata"]["name"], node["metadata"]["uid"]), untaint) for node in kept]))
    names = [f"gang-{n}" for n in range(gangs)]
    groups = [{"metadata": {"name": name}, "spec": {"minMember": pods, "queue": "default"}} for name in names]
    _all(cluster.create_many(POD_GROUP, groups))
    _all(cluster.create_many(POD, [_pod(gang, number) for gang in names for number in range(pods)]))


def _pod(gang: str, number: int) -> Obj:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    meta = {"name": f"{gang}-{number}", "annotations": {"scheduling.k8s.io/group-name": gang}}
    return {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [container]}}


def _all(outcomes: list[Outcome]) -> list[Obj]:
    for outcome in outcomes:
        if outcome.error is not None:
            raise SystemExit(f"{outcome.namespace}/{outcome.name}: {outcome.error}")
    return [outcome.object or {} for outcome in outcomes]


class Bound:
    """Counts pods as they get their nodes, on a stream of its own: asking for lists would cost the server more than binding."""

    def __init__(self, cluster: KubernetesCluster, total: int) -> None:
        self._total, self._seen = total, 0
        self.first = self.last = 0.0
        self.done = threading.Event()
        version = cluster.list(POD, limit=1).resource_version
        query = {"watch": "1", "fieldSelector": "spec.nodeName!=", "resourceVersion": version}
        self._lines, _ = cluster._transport.lines("/api/v1/pods", query, LONGEST)
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        for line in self._lines:
            if line.startswith(b'{"type":"ADDED"'):  # a pod comes into the selection when it is bound
                self.last = time.monotonic()
                self.first = self.first or self.last
                self._seen += 1
                if self._seen == self._total:
                    self.done.set()


def measure(server: ApiServer, cluster: KubernetesCluster, total: int, at_once: int, folder: Path, profile: str) -> Measure:
    """Start the scheduler, wait for the last bind, end it."""
    environment = {
        **{key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")},
        "KUBECONFIG": str(server.kubeconfig),
        "BASALT_DATA": str(folder),
        "BASALT_CLUSTER_AT_ONCE": str(at_once),
    }
    command = [sys.executable, *(("-m", "cProfile", "-o", profile) if profile else ())]
    command += ["manage.py", "scheduler", "--no-leader-election", "--no-decisions", "--listen", "none"]
    bound = Bound(cluster, total)
    begin = time.monotonic()
    with (folder / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    while not bound.done.wait(POLL) and process.poll() is None and time.monotonic() < begin + LONGEST:
        pass
    time.sleep(1.0)  # statuses and events are part of the work
    process.send_signal(signal.SIGTERM)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    left = len(cluster.list(POD, fields="spec.nodeName=").items)
    if left:
        raise SystemExit(f"{left} of {total} pods were not bound: {(folder / 'scheduler.log').read_text()[-2000:]}")
    busy = used.ru_utime + used.ru_stime
    return Measure(bound.last - begin, bound.last - bound.first, busy, used.ru_maxrss * 1024, total)


def run(given: argparse.Namespace) -> Measure:
    """One server of its own, filled and scheduled."""
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(Path(folder))
        server.start()
        try:
            from django.core.management import call_command

            call_command("install-crds", kubeconfig=str(server.kubeconfig), stdout=io.StringIO())
            cluster = connect(server.url, TOKEN, str(server.authority), at_once=16)
            fill(cluster, given.nodes, given.gangs, given.pods)
            total = given.gangs * given.pods
            return measure(server, cluster, total, given.at_once, Path(folder), str(given.profile or ""))
        finally:
            server.stop()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=50, help="of a gang")
    parser.add_argument("--at-once", type=int, default=32, help="writes under way")
    parser.add_argument("--runs", type=int, default=1, help="the quickest by processor time is shown")
    parser.add_argument("--profile", type=Path, help="write a profile of the scheduler's main thread to this file")
    given = parser.parse_args()
    if binary("kube-apiserver") is None or binary("etcd") is None:
        print("kubernetes: no kube-apiserver and etcd here: set KUBEBUILDER_ASSETS to a folder that has them")
        return
    import django

    django.setup()
    found = min((run(given) for _ in range(given.runs)), key=lambda each: each.busy)
    row = [f"{found.wall:.1f}", f"{found.pods / found.wall:,.0f}", f"{found.pods / found.binding:,.0f}"]
    row += [f"{found.busy:.1f}", f"{found.memory / MIB:,.0f}"]
    name = f"{given.gangs} gangs of {given.pods} on {given.nodes} nodes, {given.at_once} at once"
    heads = ["last bind, s", "pods/s from start", "pods/s from first bind", "processor, s", "memory, MiB"]
    show("scheduler against kube-apiserver on this machine; pods exist, then it starts", [(name, row)], heads)


if __name__ == "__main__":
    main()
