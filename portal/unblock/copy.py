"""This process's own copy of what the scheduler schedules by, for questions: fed by a watch, begun at the first question.

In the process that runs everything and over Kubernetes it is the same: the cluster's port tells what the scheduler is told.
Following the changes costs little; a question then costs its cycles and no reading. Who asks holds the copy still
(`pinned`), so that all runs of one answer see the same instant. It is let go when nobody asked for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from django.conf import settings

from cluster import objects, runtime
from cluster.clock import Clock, SystemClock
from cluster.errors import NotFound, Unavailable
from cluster.kinds import JOB, PRIORITY_CLASS, Kind
from cluster.port import Cluster, Obj, Page, Watch, WatchEvent
from cluster.said import said
from jobs.keys import group_name
from portal import parts
from portal.models import SchedulerConfiguration
from portal.unblock.made import Made
from scheduler import conf as configuration
from scheduler.cache import KINDS, SchedulerCache
from scheduler.conf import Configuration
from scheduler.model.jobs import JobInfo
from scheduler.topology.nodes import choose_gpus
from scheduler.whatif import Played, Sandbox
from scheduler.whatif.sandbox import CYCLES, PodsOf

T = TypeVar("T")

FIRST = 30.0
"""Wall seconds that the first look at a cluster may take."""
PAUSE = 30.0
"""Wall seconds after a first look that failed, in which there is no other."""
STILL = 5.0
"""Seconds after which a new question waits for the others to end, so that the copy can move on."""
FRESH = 10.0
"""Seconds after which an unchanged copy is taken at a new instant: time itself decides some things."""
REST = 600.0
"""Wall seconds without a question after which the copy is let go."""


class View:
    """The copy at one instant. `version` grows with every change; `at` is the cluster's time, in seconds."""

    def __init__(self, owner: Copy, cache: SchedulerCache, conf: Configuration, version: int, at: float) -> None:
        self.cache, self.conf, self.version, self.at = cache, conf, version, at
        self.taken = time.monotonic()
        self._owner = owner
        self.made = Made(owner)
        self.sandbox = Sandbox(cache, conf, now=at, pods_of=self.pods_of)

    @property
    def age(self) -> float:
        """Wall seconds since it was taken."""
        return time.monotonic() - self.taken

    @cached_property
    def baseline(self) -> Played:
        """What happens when nothing is changed."""
        return self.play()

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each job in the line, from 1, as the scheduler serves them; jobs that start at once are in it too."""
        return {uid: place for place, uid in enumerate(self.baseline.line, start=1)}

    @cached_property
    def admitted(self) -> frozenset[str]:
        """The waiting jobs that may be given nodes in the first cycle, as they were let into their queues before."""
        return frozenset(uid for uid, job in self.cache.groups.roster.active.items() if job.phase != "Pending")

    def play(
        self,
        changes: Sequence[WatchEvent] = (),
        *,
        cycles: int = CYCLES,
        only: Collection[str] | None = None,
        until: str = "",
        extra: PodsOf | None = None,
        conf: Configuration | None = None,
    ) -> Played:
        """Run the scheduler over the copy after some changes, with another configuration if given; it is afterwards as it was."""
        with self._owner.lock:
            if self.sandbox.is_broken:
                raise Unavailable(said("the copy of the cluster broke and is made anew; ask again in a moment"))
            if conf is None:
                return self.sandbox.play(changes, cycles=cycles, only=only, until=until, extra=extra)
            other = Sandbox(self.cache, conf, now=self.at, pods_of=self.pods_of)
            try:
                return other.play(changes, cycles=cycles, only=only, until=until, extra=extra)
            finally:
                self.sandbox.is_broken = other.is_broken

    def alone(self, ask: Callable[[], T]) -> T:
        """Ask something of the model while nobody else does."""
        with self._owner.lock:
            return ask()

    def job(self, namespace: str, name: str) -> Obj | None:
        """A Job's manifest."""
        return self._owner.jobs.get(f"{namespace}/{name}")

    def group_of(self, job: Obj) -> str:
        """`namespace/name` of a job's PodGroup."""
        return f"{objects.namespace(job)}/{group_name(job)}"

    def gang(self, job: Obj) -> JobInfo | None:
        """A job's PodGroup with its pods as the scheduler knows them, None while it has none."""
        found = self.cache.jobs.get(self.group_of(job))
        return found if found is not None and found.obj else None

    def job_of(self, uid: str) -> Obj | None:
        """The Job whose PodGroup this is."""
        group = self.cache.jobs.get(uid)
        owner = objects.owner(group.obj) if group is not None and group.obj else None
        if group is None or owner is None or owner.get("kind") != JOB.kind:
            return None
        return self.job(group.namespace, owner["name"])

    def pods_of(self, uid: str) -> list[Obj]:
        """The pods that the Job of this PodGroup still lacks; none where it is no Job's."""
        job = self.job_of(uid)
        return self.made.pods(job, [dict(task.pod) for task in self.cache.jobs[uid].tasks.values()]) if job is not None else []


class Copy:
    """Follows one cluster. Safe from any thread; one question's run at a time."""

    def __init__(self, cluster: Cluster, conf: Callable[[], Configuration] | None = None) -> None:
        self.cluster = cluster
        self._conf = conf or conf_in_force
        self.lock = threading.RLock()
        self.jobs: dict[str, Obj] = {}
        self._idle = threading.Condition(self.lock)
        self._used = 0.0
        self._resting: threading.Timer | None = None
        self._pins = 0
        self._version = 0
        self._watch: Watch | None = None
        self._cache: SchedulerCache | None = None
        self._classes: dict[str, Obj] = {}
        self._view: View | None = None
        self._failed = 0.0

    @contextmanager
    def pinned(self) -> Iterator[View]:
        """The copy, held still. Raises Unavailable when the cluster cannot be read."""
        with self.lock:
            while self._pins and self._view is not None and self._view.age > STILL:
                self._idle.wait()
            if not self._pins:
                self._view = self._moved_on()
            self._pins += 1
            view = self._view
        assert view is not None
        try:
            yield view
        finally:
            with self.lock:
                self._pins -= 1
                self._used = time.monotonic()
                self._idle.notify_all()
                if self._resting is None and self._watch is not None:
                    self._rest_in(REST)

    def latest(self) -> View | None:
        """The last instant that was looked at, without looking again."""
        return self._view

    def close(self) -> None:
        """Let everything go."""
        with self.lock:
            if self._watch is not None:
                self._watch.close()
            self._watch = self._cache = self._view = None
            self.jobs, self._classes = {}, {}

    # -- reading, as admission does ------------------------------------------------------------------------------------

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """A priority class; nothing else is asked for. Raises NotFound."""
        if kind == PRIORITY_CLASS and name in self._classes:
            return self._classes[name]
        raise NotFound(said("there is no %(kind)s %(name)r", kind=kind.kind, name=name))

    def list(self, kind: Kind, namespace: str = "", **_selectors: Any) -> Page:
        """The priority classes by name; nothing else is asked for."""
        kept = self._classes if kind == PRIORITY_CLASS else {}
        return Page([kept[name] for name in sorted(kept)], "")

    # -- letting go ----------------------------------------------------------------------------------------------------

    def _rest_in(self, seconds: float) -> None:
        self._resting = threading.Timer(seconds, self._rest)
        self._resting.daemon = True
        self._resting.start()

    def _rest(self) -> None:
        with self.lock:
            left = self._used + REST - time.monotonic()
            self._resting = None
            if self._watch is None:
                return
            if self._pins or left > 0:
                self._rest_in(max(left, 1.0))
            else:
                self.close()

    # -- following -----------------------------------------------------------------------------------------------------

    def _moved_on(self) -> View:
        view = self._view
        if view is not None and view.sandbox.is_broken:
            self.close()
            view = None
        news = self._begin() if self._watch is None else self._follow()
        conf = self._conf()
        if view is not None and not news and view.conf is conf and view.age < FRESH:
            return view
        self._version += news
        assert self._cache is not None
        usage = _usage()
        if usage is not None:
            self._cache.usage = usage
        return View(self, self._cache, conf, self._version, _now(self.cluster))

    def _begin(self) -> int:
        if self._failed and time.monotonic() < self._failed + PAUSE:
            raise Unavailable(_NOT_READ)
        self._cache = SchedulerCache(settings.BASALT_SCHEDULER_NAMES, choose_gpus)
        watch = self._watch = self.cluster.watch((*KINDS, JOB))
        end = time.monotonic() + FIRST
        while time.monotonic() < end:
            event = watch.get(timeout=0.2)
            if event is not None and event.type == "SYNCED":
                return self._follow() + 1
            if event is not None:
                self._take(event)
        self.close()
        self._failed = time.monotonic()
        raise Unavailable(_NOT_READ)

    def _follow(self) -> int:
        assert self._watch is not None
        events = self._watch.drain()
        for event in events:
            self._take(event)
        return len(events)

    def _take(self, event: WatchEvent) -> None:
        assert self._cache is not None
        for kind, kept, key in ((JOB, self.jobs, objects.key), (PRIORITY_CLASS, self._classes, objects.name)):
            if event.kind == kind and event.type == "DELETED":
                kept.pop(key(event.object), None)
            elif event.kind == kind:
                kept[key(event.object)] = event.object
        self._cache.apply(event)


_NOT_READ = "the cluster could not be read: the portal may lack the rights to list and watch what the scheduler does"
_copies: dict[int, Copy] = {}
_guard = threading.Lock()


def current() -> Copy:
    """The copy of this process's cluster. Raises Unavailable when it has none."""
    cluster = runtime.current()
    with _guard:
        found = _copies.get(id(cluster))
        if found is None or found.cluster is not cluster:
            for other in _copies.values():
                other.close()
            _copies.clear()
            found = _copies[id(cluster)] = Copy(cluster)
        return found


_loaded: tuple[str, Configuration] | None = None


def conf_in_force() -> Configuration:
    """What the running scheduler schedules by: in this process as it stands, of another process as it told it last."""
    global _loaded
    running = parts.current()
    if running is not None:
        return running.scheduler.conf.current
    text = SchedulerConfiguration.objects.filter(pk=1).values_list("text", flat=True).first() or configuration.DEFAULT
    if _loaded is None or _loaded[0] != text:
        _loaded = (text, configuration.load(text))
    return _loaded[1]


def _now(cluster: Cluster) -> float:
    """The present by the cluster's own clock."""
    clock: Clock = getattr(cluster, "clock", None) or SystemClock()
    return clock.now()


def _usage() -> dict[str, tuple[float, float, float]] | None:
    """What was measured of the nodes, where the scheduler of this process knows it."""
    running = parts.current()
    return running.scheduler.cache.usage if running is not None else None
