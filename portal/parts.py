"""The parts of Basalt, and how they run together in one process: kubelet, controllers, scheduler, mirror, decisions.

Each part has a thread of its own and a `run(stop)`. A part that fails is logged and started again, so that one fault never
takes the others with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import connections

from cluster import machines, runtime
from cluster.clock import Clock, ScaledClock
from cluster.embedded import Embedded, open_embedded
from cluster.embedded.fates import Timing
from cluster.embedded.kubelet import Kubelet
from cluster.embedded.processes.kubelet import ProcessKubelet
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import JOB, NODE, POD
from cluster.objects import parse_time
from cluster.port import Cluster
from jobs.bulk.worker import Worker
from jobs.controller import ControllerManager
from jobs.logs import tails
from portal.decisions import Sink
from portal.maintenance.worker import Worker as DrainWorker
from portal.mirror import Mirror
from scheduler.loop import SchedulerLoop

log = structlog.get_logger(__name__)
Run = Callable[[threading.Event], None]

LONGEST_PAUSE = 30.0


@dataclass
class Parts:
    """Threads by name, over one cluster."""

    cluster: Cluster
    clock: Clock
    mirror: Mirror
    scheduler: SchedulerLoop
    runs: dict[str, Run] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start all parts that are not running; returns at once."""
        for name, run in self.runs.items():
            self._spawn(name, run)

    def add(self, name: str, run: Run) -> None:
        """One more part, started now."""
        self.runs[name] = run
        self._spawn(name, run)

    def is_running(self, name: str) -> bool:
        """Whether a part of this name is at work."""
        return any(thread.name == name and thread.is_alive() for thread in self._threads)

    def _spawn(self, name: str, run: Run) -> None:
        thread = threading.Thread(target=keep_running, args=(name, run, self._stop), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, seconds: float = 5.0) -> list[str]:
        """Tell all to stop and wait; the names of those that are still at it when time is up."""
        self._stop.set()
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]


_current: Parts | None = None


def use(parts: Parts | None) -> None:
    """Say which parts run in this process (None: none any more)."""
    global _current
    _current = parts


def current() -> Parts | None:
    """The parts that run in this process; None in one that only serves pages."""
    return _current


def keep_running(name: str, run: Run, stop: threading.Event) -> None:
    """Run a part until `stop`; one that fails begins again after a pause that grows."""
    pause = 0.5
    while not stop.is_set():
        began = time.monotonic()
        try:
            run(stop)
            if not stop.is_set():
                return
        except Exception:
            log.exception("a part failed and is started again", part=name, after=pause)
            if time.monotonic() - began > LONGEST_PAUSE:
                pause = 0.5
            stop.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            connections.close_all()


def assemble(cluster: Cluster, clock: Clock, configuration: Path | None = None) -> Parts:
    """Mirror, decisions, controllers and scheduler over a cluster, not started yet.

    `configuration` is a volcano-scheduler.conf, read again when it changes. Raises `scheduler.conf.ConfError`, OSError.
    """
    mirror, sink = Mirror(cluster), Sink()
    names = settings.BASALT_SCHEDULER_NAMES
    scheduler = SchedulerLoop(cluster, configuration, clock, sink, scheduler_names=names, told=sink.configured)
    parts = Parts(cluster, clock, mirror, scheduler)
    parts.runs = {
        "mirror": mirror.run,
        "decisions": sink.run,
        "controllers": _controllers(cluster, clock),
        "scheduler": scheduler.run,
        "bulk": Worker().run,
        "drains": DrainWorker().run,
        "log tails": tails.run,
    }
    return parts


def _controllers(cluster: Cluster, clock: Clock) -> Run:
    """Threads of this process, or the dispatcher for workers in others."""
    if settings.BASALT_CONTROLLERS == "workers":
        from portal.celery import dispatcher

        return lambda stop: dispatcher(cluster).run(stop)
    return lambda stop: ControllerManager(cluster, clock).run(stop)


def embedded(
    folder: Path,
    *,
    speed: float = 1.0,
    timing: Timing | None = None,
    seed: int = 0,
    prepare: Callable[[], None] | None = None,
    processes: Callable[[EmbeddedCluster], ProcessKubelet] | None = None,
) -> Embedded:
    """The embedded cluster of a folder, in time that runs `speed` times faster and goes on where its objects stopped.

    It becomes this process's cluster; simulated machines can be lost on request. `prepare` and `processes` as in
    `open_embedded`. Raises `cluster.embedded.lock.StoreLocked`.
    """
    clock = ScaledClock(speed)
    opened = open_embedded(folder, clock=clock, timing=timing, seed=seed, prepare=prepare, processes=processes)
    clock.catch_up(_latest(opened.cluster))
    runtime.use(opened.cluster)
    if isinstance(opened.kubelet, Kubelet):
        machines.simulate(opened.kubelet)
    return opened


def _latest(cluster: Cluster) -> float:
    """The latest instant that any object remembers."""
    instants = (
        parse_time(text)
        for kind in (NODE, POD, JOB)
        for obj in cluster.list(kind).items
        for text in (obj["metadata"]["creationTimestamp"], *_stamps(obj.get("status")))
    )
    return max(instants, default=0.0)


def _stamps(value: Any) -> Iterator[str]:
    """Time stamps anywhere in a status."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and key.endswith(("Time", "At")):
                yield inner
            else:
                yield from _stamps(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _stamps(inner)
