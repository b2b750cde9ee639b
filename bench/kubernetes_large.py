"""The scheduler over a real API server that has much in it: 5,000 nodes and 50,000 pods that run, and one gang that waits.

`python -m bench.kubernetes_large [--nodes N] [--pods N] [--rest SECONDS]`: seconds from the scheduler's start to its first
session and to the gang's last bind, its processor seconds and memory until then, and the processor seconds a minute that it
takes at rest. To fill the server takes minutes. It needs kube-apiserver and etcd, and says so where they are missing.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

from bench.kubernetes_world import MIB, World, is_possible, kept_all, world
from bench.table import show
from cluster.kinds import POD, POD_GROUP, QUEUE
from cluster.kubernetes import connect
from cluster.port import Obj, StatusWrite
from testbed.server import TOKEN

GANG = 50
BATCH = 2000
LONGEST = 600.0


def pod(gang: str, number: int, node: str = "") -> Obj:
    """A pod of 1 CPU and 1 GiB, on a node already where one is named."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    meta = {"name": f"{gang}-{number}", "annotations": {"scheduling.k8s.io/group-name": gang}}
    return {
        "metadata": meta,
        "spec": {"schedulerName": "volcano", "containers": [container], **({"nodeName": node} if node else {})},
    }


def fill(found: World, nodes: int, pods: int) -> None:
    """Nodes, gangs that run on them, and one that waits."""
    cluster = connect(found.server.url, TOKEN, str(found.server.authority), at_once=64)
    for name in ("root", "default"):
        spec = {"weight": 1, **({"parent": "root"} if name != "root" else {})}
        cluster.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
    found.nodes(nodes, "32", "128Gi")
    names = [f"gang-{number}" for number in range(pods // GANG)]
    groups = [{"metadata": {"name": name}, "spec": {"minMember": GANG, "queue": "default"}} for name in [*names, "late"]]
    kept = kept_all(cluster.create_many(POD_GROUP, groups))
    running = [
        StatusWrite("default", each["metadata"]["name"], {"phase": "Running", "running": GANG}) for each in kept[: len(names)]
    ]
    kept_all(cluster.patch_status_many(POD_GROUP, running))
    made = (pod(name, number, f"node-{(g * GANG + number) % nodes}") for g, name in enumerate(names) for number in range(GANG))
    while batch := list(islice(made, BATCH)):
        there = kept_all(cluster.create_many(POD, batch))
        statuses = [StatusWrite("default", each["metadata"]["name"], {"phase": "Running"}) for each in there]
        kept_all(cluster.patch_status_many(POD, statuses))
    kept_all(cluster.create_many(POD, [pod("late", number) for number in range(GANG)]))
    cluster.close()


def resident(pid: int) -> float:
    """Bytes that a process holds."""
    return float(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def bound(found: World) -> bool:
    """Whether the last pod of the waiting gang has a node."""
    return bool(found.cluster.get(POD, f"late-{GANG - 1}", "default")["spec"].get("nodeName"))


def measure(found: World, rest: float) -> list[str]:
    """Start, wait for the gang, and leave the scheduler alone for a while."""
    begin = time.monotonic()
    found.begin("scheduler", longest=LONGEST)
    first = time.monotonic() - begin
    while not bound(found):
        if time.monotonic() > begin + LONGEST:
            raise SystemExit(f"the gang was not bound: {found.log('scheduler')[-2000:]}")
        time.sleep(0.02)
    whole, busy, pid = time.monotonic() - begin, found.busy()["scheduler"], found.processes["scheduler"].pid
    time.sleep(5.0)  # statuses are written, streams stand
    before, held = found.busy()["scheduler"], resident(pid)
    time.sleep(rest)
    idle = (found.busy()["scheduler"] - before) * 60 / rest
    peak = found.end()["scheduler"].memory
    return [f"{first:.1f}", f"{whole:.1f}", f"{busy:.1f}", f"{held / MIB:,.0f}", f"{peak / MIB:,.0f}", f"{idle:.2f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rest", type=float, default=30.0, help="seconds for which it is left alone")
    given = parser.parse_args()
    if not is_possible():
        return
    with world() as found:
        fill(found, given.nodes, given.pods)
        row = measure(found, given.rest)
    heads = ["first session, s", "gang bound, s", "processor, s", "memory at rest, MiB", "peak, MiB", "at rest, s/min"]
    show("scheduler against a kube-apiserver that has much in it", [(f"{given.nodes} nodes, {given.pods} running", row)], heads)


if __name__ == "__main__":
    main()
