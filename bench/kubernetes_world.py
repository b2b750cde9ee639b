"""What the measures over a real API server share: the server, Basalt's processes, and machines that run a job as one gang."""

from __future__ import annotations

import contextlib
import heapq
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

import requests

from cluster import objects
from cluster.embedded import podstatus
from cluster.embedded.machines import make_node
from cluster.errors import ApiError
from cluster.kinds import JOB, NODE, POD, POD_GROUP
from cluster.kubernetes import KubernetesCluster, connect
from cluster.port import Obj, Outcome, Victim
from testbed.server import TOKEN, ApiServer, binary, free_port

ROOT = Path(__file__).parents[1]
PARTS = ("scheduler", "controller")
READY_SECONDS = 60.0
MIB = 2.0**20


def is_possible() -> bool:
    """Whether this machine has an API server; says so where it has not."""
    if binary("kube-apiserver") is None or binary("etcd") is None:
        print("no kube-apiserver and etcd here: set KUBEBUILDER_ASSETS to a folder that has them")
        return False
    import django

    django.setup()
    return True


@dataclass(frozen=True, slots=True)
class Used:
    """What a process took: processor seconds, and bytes at most."""

    busy: float
    memory: int


class World:
    """An API server with our definitions, a client of it, and Basalt's processes by name, each with a user of its own."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.cluster: KubernetesCluster = connect(server.url, TOKEN, str(server.authority), at_once=16)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def nodes(self, number: int, cpu: str, memory: str) -> None:
        """So many nodes that are ready."""
        room = {"cpu": cpu, "memory": memory, "pods": "110"}
        made = [make_node(f"node-{n}", capacity=room, allocatable=room, labels={}, annotations={}) for n in range(number)]
        kept = kept_all(self.cluster.create_many(NODE, made))
        untaint: Obj = {"spec": {"taints": None}}  # a server taints what is new until a controller has seen it ready
        patches = [(Victim("", node["metadata"]["name"], node["metadata"]["uid"]), untaint) for node in kept]
        kept_all(self.cluster.patch_many(NODE, patches))

    def begin(self, *parts: str, profiles: Path | None = None, longest: float = READY_SECONDS) -> None:
        """Start parts, and wait until each says that it can work."""
        for part in parts or PARTS:
            port = free_port()
            options = ["--no-leader-election", "--listen", f"127.0.0.1:{port}"]
            options += ["--no-decisions"] if part == "scheduler" else []
            profiled = ["-m", "cProfile", "-o", str(profiles / f"{part}.prof")] if profiles else []
            command = [sys.executable, *profiled, "manage.py", part, *options]
            with (self.server.folder / f"{part}.log").open("wb") as log:
                self.processes[part] = subprocess.Popen(command, cwd=ROOT, env=self._environment(part), stdout=log, stderr=log)
            self._wait(part, port, longest)

    def end(self) -> dict[str, Used]:
        """End the processes in order; what each took."""
        used = {}
        for part, process in self.processes.items():
            process.send_signal(signal.SIGTERM)
            _, status, taken = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            used[part] = Used(taken.ru_utime + taken.ru_stime, taken.ru_maxrss * 1024)
        self.processes.clear()
        return used

    def busy(self) -> dict[str, float]:
        """Processor seconds until now of each part, and of the server with its etcd."""
        found = {part: _processor_seconds(process.pid) for part, process in self.processes.items()}
        return {**found, "server": sum(map(_processor_seconds, self.server.pids))}

    def gangs(self) -> int:
        """How many gangs have all their nodes, as their PodGroups say after the last bind; asked cheaply."""
        return sum((group.get("status") or {}).get("phase") == "Running" for group in self.cluster.list(POD_GROUP).items)

    def unbound(self) -> bool:
        """Whether a pod waits for a node; costs the server a look at every pod."""
        return bool(self.cluster.list(POD, fields="spec.nodeName=", limit=1).items)

    def writes(self) -> Counter[tuple[str, str]]:
        """Writes that the parts made and the server answered, by part and by verb and kind, refused ones marked. No Leases."""
        found: Counter[tuple[str, str]] = Counter()
        for line in self.server.audit_log.read_text().splitlines():
            said = json.loads(line)
            what = said.get("objectRef") or {}
            if (part := said["user"]["username"]) in PARTS and what.get("resource") != "leases":
                kind = "/".join(filter(None, (what.get("resource"), what.get("subresource"))))
                code = int((said.get("responseStatus") or {}).get("code") or 0)
                found[part, f"{said['verb']} {kind}" + (f" ({code})" if code >= 300 else "")] += 1
        return found

    def log(self, part: str) -> str:
        """What a part logged."""
        return (self.server.folder / f"{part}.log").read_text()

    def _environment(self, part: str) -> dict[str, str]:
        return {
            **{key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")},
            "KUBECONFIG": str(self.server.kubeconfig_of(part)),
            "BASALT_DATA": str(self.server.folder),
        }

    def _wait(self, part: str, port: int, longest: float) -> None:
        end = time.monotonic() + longest
        while time.monotonic() < end:
            with contextlib.suppress(requests.RequestException):
                if requests.get(f"http://127.0.0.1:{port}/readyz", timeout=2).ok:
                    return
            time.sleep(0.05)
        raise SystemExit(f"{part} was not ready: {self.log(part)[-2000:]}")


@contextlib.contextmanager
def world(*, audited: bool = False) -> Iterator[World]:
    """A server of its own, which is gone afterwards."""
    from django.core.management import call_command

    with tempfile.TemporaryDirectory(prefix="basalt-bench-") as folder:
        server = ApiServer(Path(folder), users=PARTS, audited=audited)
        server.start()
        found = World(server)
        try:
            call_command("install-crds", kubeconfig=str(server.kubeconfig), stdout=io.StringIO())
            yield found
        finally:
            for process in found.processes.values():
                process.kill()
                process.wait()
            server.stop()


class Machines:
    """Kubelets of all nodes: a pod runs `delay` seconds after it was bound; once all pods of a job run, they work for `work`
    seconds, and end."""

    def __init__(self, cluster: KubernetesCluster, delay: float, work: float) -> None:
        self._cluster, self._delay, self._work = cluster, delay, work
        self._due: list[tuple[float, int, str, Obj]] = []
        self._seen: set[str] = set()
        self._running: dict[str, list[Obj]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._writes = ThreadPoolExecutor(16)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Inside, they work."""
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
            self._writes.shutdown()

    def _run(self) -> None:
        watch = self._cluster.watch([JOB, POD])
        sizes: dict[str, int] = {}
        while not self._stop.is_set():
            rest = self._due[0][0] - time.monotonic() if self._due else 0.05
            event = watch.get(min(max(rest, 0.0), 0.05))
            if event is not None and event.kind == JOB:
                sizes[objects.uid(event.object)] = sum(task["replicas"] for task in event.object["spec"]["tasks"])
            elif event is not None and event.kind == POD and event.type != "DELETED":
                self._look_at(event.object, sizes)
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, phase, pod = heapq.heappop(self._due)
                self._writes.submit(self._write, phase, pod)
        watch.close()

    def _look_at(self, pod: Obj, sizes: dict[str, int]) -> None:
        uid, owner = objects.uid(pod), objects.owner(pod)
        if not pod["spec"].get("nodeName") or owner is None:
            return
        if uid not in self._seen:
            self._seen.add(uid)
            self._later(self._delay, "Running", pod)
        elif pod["status"].get("phase") == "Running" and not any(objects.uid(p) == uid for p in self._of(owner)):
            running = self._of(owner)
            running.append(pod)
            if len(running) == sizes.get(owner["uid"]):
                for each in running:
                    self._later(self._work, "Succeeded", each)

    def _of(self, owner: Obj) -> list[Obj]:
        return self._running.setdefault(owner["uid"], [])

    def _later(self, seconds: float, phase: str, pod: Obj) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, len(self._due) + id(pod), phase, pod))

    def _write(self, phase: str, pod: Obj) -> None:
        now = time.time()
        status = podstatus.running(pod, now) if phase == "Running" else podstatus.ended(pod, now, 0)
        with contextlib.suppress(ApiError):
            self._cluster.patch_status(POD, objects.name(pod), objects.namespace(pod), status, uid=objects.uid(pod))


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kept_all(outcomes: list[Outcome]) -> list[Obj]:
    """The objects of some writes, none of which may have failed."""
    for outcome in outcomes:
        if outcome.error is not None:
            raise SystemExit(f"{outcome.namespace}/{outcome.name}: {outcome.error}")
    return [outcome.object or {} for outcome in outcomes]
