"""The kubelet of this machine: pods that have a node run here, as processes.

One thread does everything: it hears the cluster's changes and the supervisors' messages, lets each pod's life go on
(`lives.py`), and writes what came of it. Due times follow from the objects, as everywhere.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cluster.clock import Clock
from cluster.embedded.hosts import Hosts
from cluster.embedded.nodes import NodeKeeper
from cluster.embedded.podstatus import lost, refused
from cluster.embedded.processes import leftovers, network
from cluster.embedded.processes.lives import PodLife
from cluster.embedded.processes.orders import Orders
from cluster.embedded.processes.status import ContainerLife
from cluster.embedded.processes.warden import Lack, Line, Warden, remember
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, Conflict, NotFound, Unavailable
from cluster.events import event_about
from cluster.kinds import CONFIG_MAP, EVENT, NODE, POD, SECRET, SERVICE
from cluster.logs.store import LogStore
from cluster.objects import is_deleting, labels, name, namespace, now_stamp, uid
from cluster.port import Obj, StatusWrite, WatchEvent

logger = logging.getLogger(__name__)

_LONGEST_WAIT = 1.0
_SHUTDOWN = 3.0
_HOSTS_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Settings:
    """Where pods live and what they may: `data` is hidden from them, `host_paths` may be mounted."""

    data: Path
    host_paths: tuple[str, ...] = ()
    pids: int = 1024
    log_bytes: int = 50 * 2**20

    @property
    def run(self) -> str:
        """What this data folder's control groups and marks are called."""
        return f"basalt-{zlib.crc32(str(self.data.resolve()).encode()):08x}"


class ProcessKubelet:
    """All methods but `wake` belong to one thread; the helper ends with the thread that made this object."""

    def __init__(self, cluster: EmbeddedCluster, settings: Settings, clock: Clock | None = None) -> None:
        self._cluster, self._settings, self._clock = cluster, settings, clock or cluster.clock
        self._pods_folder = settings.data / "pods"
        self._pods_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.left_over = leftovers.end_all(self._pods_folder, settings.run)
        self._warden = Warden(settings.run)
        remember(self._pods_folder / "helper.json", self._warden.pid)
        self._nodes, self._hosts = NodeKeeper(cluster, self._clock), Hosts()
        self._addresses = network.Addresses(settings.run)
        self.logs = LogStore(settings.data / "logs")
        self._orders = Orders(cluster, settings, self._warden.abilities)
        self._lives: dict[str, PodLife] = {}
        self._heap: list[tuple[float, str]] = []
        self._dirty: dict[str, None] = {}
        self._names_due: float | None = None
        self._names: dict[str, str] = {}
        self._services: dict[str, Obj] = {}
        self._synced = False
        self._watch = cluster.watch([NODE, SERVICE, CONFIG_MAP, SECRET, POD], notify=self._warden.wake)
        cluster.serve_logs(self.logs.lines)

    @property
    def missing(self) -> list[Lack]:
        """What pods have to do without on this machine."""
        return self._warden.abilities.missing()

    # --- running ---

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set; then every process is ended, with a few seconds' grace."""
        threading.Thread(target=self._wake_at, args=(stop,), name="kubelet-stop", daemon=True).start()
        while not stop.is_set():
            try:
                self.step()
            except Unavailable as error:
                logger.warning("the kubelet waits for the store: %s", error)
                stop.wait(_LONGEST_WAIT)
                continue
            self._warden.listen(self._wait())
        self.end_all()

    def _wake_at(self, stop: threading.Event) -> None:
        stop.wait()
        self._warden.wake()

    def step(self) -> None:
        """Take in what happened, do what is due, write what came of it."""
        for event in self._watch.drain():
            self._take_safely(event)
        self._nodes.heartbeat()
        self._nodes.forget_events()
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            self._dirty[heapq.heappop(self._heap)[1]] = None
        self._write_names()
        due, self._dirty = list(self._dirty), {}
        lives = [life for pod_uid in due if (life := self._lives.get(pod_uid))]
        try:
            for life in lives:
                self._go_on(life, now)
            self._write(lives)
        except Unavailable:
            self._dirty |= dict.fromkeys(due)
            raise

    def listen(self, seconds: float) -> None:
        """Wait for something to happen; for tests, between steps."""
        self._warden.listen(min(seconds, self._wait()))

    def _wait(self) -> float:
        if self._dirty:
            return 0.0
        waits = [_LONGEST_WAIT]
        if self._heap:
            waits.append(self._heap[0][0] - self._clock.now())
        if self._names_due is not None:
            waits.append(self._names_due - time.monotonic())
        return max(0.0, min(waits))

    def end_all(self, seconds: float = _SHUTDOWN) -> None:
        """Ask every container to end, and end what does not. Statuses stay: the next run says what became of them."""
        for life in self._lives.values():
            if not life.over and life.is_up:
                life.stop(seconds, "", "")
        until = time.monotonic() + seconds + 0.5
        while any(life.is_up for life in self._lives.values()) and time.monotonic() < until:
            self._warden.listen(0.1)
        for life in self._lives.values():
            self.hang_up(life)

    def close(self) -> None:
        """End everything at once and stop watching."""
        self._watch.close()
        self._warden.close()
        leftovers.end_all(self._pods_folder, self._settings.run)  # the helper's groups, and whatever was slower than it
        (self._pods_folder / "helper.json").unlink(missing_ok=True)

    # --- changes ---

    def _take_safely(self, event: WatchEvent) -> None:
        """A change that makes no sense must not hide the others; a pod of that kind is refused."""
        try:
            self._take(event)
        except Unavailable:
            raise
        except Exception as error:
            logger.exception("%s %s/%s is not taken in", event.kind, namespace(event.object), name(event.object))
            if event.kind == POD and event.type != "DELETED":
                status = refused(("CannotRun", f"{type(error).__name__}: {error}"))
                self._cluster.patch_status_many(POD, [StatusWrite(namespace(event.object), name(event.object), status)])

    def _take(self, event: WatchEvent) -> None:
        if event.type == "SYNCED":
            self._synced = True
            leftovers.forget_folders(self._pods_folder, set(self._lives))
            return
        obj, gone = event.object, event.type == "DELETED"
        if event.kind == NODE:
            self._hosts.take_node(event)
            self._orders.take_node(obj, gone=gone)
            if self._nodes.take(event):
                self._dirty |= {u: None for u, life in self._lives.items() if life.pod["spec"].get("nodeName") == name(obj)}
        elif event.kind == SERVICE:
            key = f"{namespace(obj)}/{name(obj)}"
            self._services.pop(key, None) if gone else self._services.update({key: obj})
            self._names_change()
        elif event.kind in (CONFIG_MAP, SECRET):
            for life in self._lives.values():
                if namespace(life.pod) == namespace(obj):
                    self._orders.refresh(life, event.kind, name(obj))
        elif event.kind == POD:
            self._take_pod(obj, gone=gone)

    def _take_pod(self, pod: Obj, *, gone: bool) -> None:
        if gone:
            if life := self._lives.pop(uid(pod), None):
                self._let_go(life)
            return
        if not (pod.get("spec") or {}).get("nodeName"):
            return
        life = self._lives.get(uid(pod))
        if life is None:
            life = self._begin(pod)
        if labels(life.pod) != labels(pod):
            self._names_change()
        life.pod = pod
        self._hosts.take(pod)
        if is_deleting(pod) and not life.over:
            until = (pod["metadata"].get("deletionGracePeriodSeconds") or 0) + 0.0
            life.stop(until, "", "")
        self._dirty[life.uid] = None

    def _begin(self, pod: Obj) -> PodLife:
        status = pod.get("status") or {}
        self._addresses.keep(uid(pod), str(status.get("podIP") or ""))
        over = status.get("phase") in ("Succeeded", "Failed")
        local = "127.0.0.1" if pod["spec"].get("hostNetwork") else ""
        life = PodLife(pod, self, local or str(status.get("podIP") or "") or ("" if over else self._addresses.of(uid(pod))))
        self._lives[life.uid] = life
        if not self._synced:
            life.recover(self._clock.now())
        self._names_change()
        return life

    def _let_go(self, life: PodLife) -> None:
        """The pod is gone from the cluster: nothing of it stays but its log."""
        self.hang_up(life)
        self._hosts.drop(life.pod)
        self._addresses.drop(life.uid)
        self._orders.forget(life)
        self.logs.ended(life.uid)
        self._names_change()
        leftovers.remove(self._pods_folder / life.uid)

    # --- one pod ---

    def _go_on(self, life: PodLife, now: float) -> None:
        given_up = self._nodes.given_up_at(life.pod["spec"]["nodeName"])
        if not life.over and life.phase == "Pending" and not life.is_up and (refusal := self._hosts.admit(life.pod)):
            life.over, life.phase, (life.reason, life.message), life.dirty = True, "Failed", refusal, True
        elif given_up is not None and given_up <= now and not life.over:
            self.hang_up(life)
            told = lost(life.pod, now)
            life.over, life.phase, life.reason, life.message, life.dirty = True, "Failed", told["reason"], told["message"], True
        due = self._advanced(life, now)
        if life.over:
            self._hosts.drop(life.pod)
            self.logs.ended(life.uid)
            self._names_change()
            leftovers.remove(self._pods_folder / life.uid)  # nothing looks at it any more
        if due is not None and due != life.wakes_at:  # one that waits for the same instant is in the heap already
            life.wakes_at = due
            heapq.heappush(self._heap, (due, life.uid))

    def _advanced(self, life: PodLife, now: float) -> float | None:
        """Let a pod go on; one that makes no sense ends, and stops no other."""
        try:
            return life.advance(now)
        except Unavailable:
            raise
        except Exception as error:
            logger.exception("pod %s/%s is ended", namespace(life.pod), name(life.pod))
            self.hang_up(life)
            life.over, life.phase, life.dirty = True, "Failed", True
            life.reason, life.message = "KubeletError", f"{type(error).__name__}: {error}"
            return None

    def _write(self, lives: list[PodLife]) -> None:
        """Statuses that changed, at once; then the word that pods which are to go have stopped."""
        now = self._clock.now()
        changed = [life for life in lives if life.dirty]
        writes = [
            StatusWrite(namespace(life.pod), name(life.pod), self._status(life, now), life.pod["metadata"]["resourceVersion"])
            for life in changed
        ]
        outcomes = self._cluster.patch_status_many(POD, writes) if writes else []
        for life, outcome in zip(changed, outcomes, strict=True):
            if isinstance(outcome.error, Conflict):
                continue  # the pod changed meanwhile: the watch tells, and then it is written anew
            life.dirty = False
            if outcome.error is not None and not isinstance(outcome.error, NotFound):
                logger.error("pod %s/%s: %s", outcome.namespace, outcome.name, outcome.error)
        stopped = [life.pod for life in lives if life.over and is_deleting(life.pod) and not life.dirty]
        if stopped:
            self._cluster.remove_stopped([(namespace(pod), name(pod), uid(pod)) for pod in stopped])

    @staticmethod
    def _status(life: PodLife, now: float) -> Obj:
        if life.reason.startswith("OutOf"):
            return refused((life.reason, life.message))
        return life.status(now)

    # --- names ---

    def _names_change(self) -> None:
        self._names = {}
        if self._names_due is None:
            self._names_due = time.monotonic() + (_HOSTS_EVERY if self._synced else 0.0)

    def _write_names(self) -> None:
        """Bring every pod's /etc/hosts up to date, a few times a second at most."""
        if self._names_due is None or time.monotonic() < self._names_due:
            return
        self._names_due = None
        for life in self._lives.values():
            folder = self._pods_folder / life.uid
            if not life.over and folder.is_dir():
                network.write(folder / "hosts", self._hosts_of(life))

    def _hosts_of(self, life: PodLife) -> str:
        """A pod's /etc/hosts; what its namespace shares is worked out once for all."""
        space = namespace(life.pod)
        if space not in self._names:
            pods = ((other.pod, other.address) for other in self._lives.values() if not other.over)
            self._names[space] = network.names(space, pods, self._services.values())
        return network.hosts(life.pod, life.address, self._names[space])

    # --- what lives ask for (`lives.House`) ---

    def open_line(self, life: PodLife) -> Line:
        """A supervisor for the pod, its volumes made and its names written."""
        folder = self._pods_folder / life.uid
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        network.write(folder / "hosts", self._hosts_of(life))
        self.logs.begin(life.pod)
        return self._warden.open(self._orders.plan(life), self._ear(life))

    def _ear(self, life: PodLife) -> Callable[[dict[str, Any]], None]:
        def hear(message: dict[str, Any]) -> None:
            life.hear(message)
            self._dirty[life.uid] = None

        return hear

    def order(self, life: PodLife, container: ContainerLife) -> dict[str, Any]:
        """Everything that a supervisor needs to start a container."""
        return self._orders.start(life, container)

    def hang_up(self, life: PodLife) -> None:
        """End the pod's supervisor, and all that it started."""
        if life.line is not None:
            self._warden.close_line(life.line)
            life.line = None

    def tell(self, pod: Obj, kind: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """An event about the pod."""
        told = event_about(
            pod, kind, reason, message, stamp=now_stamp(self._clock), component="kubelet", host=pod["spec"].get("nodeName", "")
        )
        try:
            self._cluster.create(EVENT, told, field_manager="kubelet")
        except ApiError as error:
            logger.warning("no event about pod %s/%s: %s", namespace(pod), name(pod), error)
