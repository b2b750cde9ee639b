"""Controllers in several processes: one dispatcher turns what changes into keys, any number of workers take the keys.

The dispatcher that leads has a lease in Redis; another one beside it waits for its turn. It may die at any time: what was wanted
is in Redis, and the next one begins with everything that is there. Workers are told that there is work by a bell; a bell that
is lost is rung again, so only the keys in Redis count.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence

import redis

from cluster import objects
from cluster.away import Away
from cluster.clock import Clock
from cluster.errors import ApiError, Unavailable
from cluster.fenced import fenced
from cluster.informer import Informer
from cluster.port import Cluster
from jobs.controller.roster import Key, Roster
from jobs.controller.shared import Lease, SharedQueue

COALESCE_SECONDS = 0.02
TICK_SECONDS = 0.2
"""How often the dispatcher looks for keys that fell due and workers that died."""
LEAD_SECONDS = 10.0
RESYNC_SECONDS = 600.0
CATCH_UP_SECONDS = 5.0
"""How long a worker waits for its copy to show what the last worker of a key wrote, and what the dispatcher asked for it for."""
_PAUSE = 1.0
_MARGIN = 0.8
"""The part of a lease in which its worker writes: it has stopped before anybody else begins."""

log = logging.getLogger(__name__)


class Dispatcher:
    """Asks for keys. `ring(n)` is to wake n workers; `waiting()` says how many bells were not heard yet."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        queue: SharedQueue,
        ring: Callable[[int], None],
        waiting: Callable[[], int],
        *,
        schedulers: Sequence[str] | None = None,
    ) -> None:
        self._cluster, self._clock, self._queue, self._schedulers = cluster, clock, queue, schedulers
        self._ring, self._waiting = ring, waiting
        self._name = uuid.uuid4().hex
        self.leads = threading.Event()
        self.informer: Informer | None = None
        self._away = Away("the dispatcher waits")
        self.trouble = ""
        """What keeps it from its work now, or from waiting for its turn; empty when nothing does."""

    def due(self) -> int | None:
        """Keys that wait for a worker; None where Redis does not say."""
        try:
            return self._queue.due()
        except redis.RedisError:
            return None

    def run(self, stop: threading.Event) -> None:
        """Lead, or wait until there is no other leader, until `stop` is set. A Redis or cluster that is away is waited for."""
        while not stop.is_set():
            try:
                leads = self._queue.lead(self._name, LEAD_SECONDS)
                self._is_well()
                if leads:
                    self._lead(stop)
                else:
                    stop.wait(_PAUSE)
            except (ApiError, redis.RedisError) as error:
                self._away.failed(error)
                self.trouble = str(error)
                stop.wait(_PAUSE)
            finally:
                self.leads.clear()

    def _is_well(self) -> None:
        self._away.answered()
        self.trouble = ""

    def _lead(self, stop: threading.Event) -> None:
        roster = Roster.over(self._cluster, self._clock, schedulers=self._schedulers)
        self.informer = roster.informer
        changed = threading.Event()
        roster.informer.start(changed.set)
        begun, told, ticked, synced = False, 0.0, 0.0, time.monotonic()
        try:
            while not stop.is_set():
                changed.wait(TICK_SECONDS)
                changed.clear()
                for key, versions in _asked(roster).items():
                    self._queue.add(key, versions)
                now = time.monotonic()
                if not begun and roster.informer.synced:
                    for controller in roster.controllers.values():
                        controller.start()
                    begun = True
                    self.leads.set()
                if now - told > LEAD_SECONDS / 3:
                    if not self._queue.lead(self._name, LEAD_SECONDS):
                        log.warning("another dispatcher leads now")
                        return
                    told = now
                if begun and (self._queue.is_fresh() or now - synced > RESYNC_SECONDS):
                    for key in dict.fromkeys(roster.all()):
                        self._queue.add(key)
                    synced = now
                if now - ticked > TICK_SECONDS:
                    ticked = now
                    if lost := self._queue.reap():
                        log.warning("%d keys of workers that are gone are wanted again", lost)
                self._wake()
                stop.wait(COALESCE_SECONDS)
        finally:
            roster.informer.stop()
            self._queue.resign(self._name)

    def _wake(self) -> None:
        """Ring for what is due, as far as bells do not wait to be heard already."""
        due = self._queue.due()
        if due and (missing := min(due, 100) - self._waiting()) > 0:
            self._ring(missing)


def _asked(roster: Roster) -> dict[Key, dict[str, int]]:
    """The keys that news concern, each with the versions, by kind, that told of it."""
    asked: dict[Key, dict[str, int]] = {}
    for change in roster.informer.pump():
        kind, version = str(change.kind), objects.resource_version(change.object)
        for key in roster.concerned([change]):
            versions = asked.setdefault(key, {})
            versions[kind] = max(version, versions.get(kind, 0))
    return asked


class Worker:
    """Takes keys, in as many threads as call `work_one`. A thread writes only while the lease of its key holds, by this
    process's own clock: one that was held up for longer finds its next write refused, and its pass ends."""

    def __init__(self, cluster: Cluster, clock: Clock, queue: SharedQueue, *, schedulers: Sequence[str] | None = None) -> None:
        self._queue, self._clock = queue, clock
        self._roster = Roster.over(
            fenced(cluster, self._check), clock, schedulers=schedulers, refusals=queue.refusals, rests=queue.rests
        )
        self._stop, self._changed = threading.Event(), threading.Event()
        self._held: dict[str, Lease] = {}
        self._until: dict[str, float] = {}
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._feed, name="worker-feed", daemon=True),
            threading.Thread(target=self._keep, name="worker-leases", daemon=True),
        ]

    @property
    def informer(self) -> Informer:
        """The local copy."""
        return self._roster.informer

    def start(self, patience: float = 30.0) -> bool:
        """Begin to follow the cluster; whether the local copy is complete. Raises ApiError when there is no cluster."""
        self._roster.informer.start(self._changed.set)
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + patience
        while not self._roster.informer.synced and time.monotonic() < end:
            time.sleep(0.01)
        return self._roster.informer.synced

    def stop(self) -> None:
        """Follow no longer; keys that are being worked are finished by whoever called `work_one`."""
        self._stop.set()
        self._changed.set()
        self._roster.informer.stop()

    def work_one(self) -> bool:
        """Work one key that is due; False when there is none, or the local copy is not complete yet."""
        informer, asked = self._roster.informer, time.monotonic()
        if not informer.synced or (lease := self._queue.take()) is None:
            return False
        with self._lock:
            self._held[lease.token], self._until[lease.token] = lease, asked + _MARGIN * self._queue.lease_seconds
        self._mine.token = lease.token
        written: dict[str, int] = {}
        try:
            informer.wait_for(lease.versions, CATCH_UP_SECONDS)
            with informer.recording() as written:
                self._reconcile(lease)
        finally:
            with self._lock:
                self._held.pop(lease.token, None)
                self._until.pop(lease.token, None)
            self._queue.done(lease, written)
        return True

    def _check(self) -> None:
        """Raise Unavailable when somebody else may have this thread's key by now."""
        if time.monotonic() >= self._until.get(getattr(self._mine, "token", ""), float("-inf")):
            raise Unavailable("this worker was held up for so long that another may have its key: it writes no more")

    def _reconcile(self, lease: Lease) -> None:
        name, item = lease.key
        controller = self._roster.controllers.get(name)
        if controller is None:
            log.warning("there is no controller %r here: %s is let go", name, item)
            return
        try:
            again = controller.reconcile(item)
        except Exception as error:  # noqa: BLE001 - told on the object and in the log, and tried again
            self._roster.tell_failure(lease.key, error, self._queue.retry(lease.key))
            return
        self._queue.succeeded(lease.key)
        if again is not None:
            self._queue.add_after(lease.key, self._clock.real(again))

    def _feed(self) -> None:
        """Keep the local copy up to date. What changes mean is the dispatcher's to say; controllers only take note."""
        while not self._stop.is_set():
            self._changed.wait(1.0)
            self._changed.clear()
            try:
                for _ in self._roster.concerned(self._roster.informer.pump()):
                    pass
            except Exception:
                log.exception("the local copy could not be brought up to date")

    def _keep(self) -> None:
        """Renew the leases of the keys that are being worked."""
        while not self._stop.wait(self._queue.lease_seconds / 3):
            with self._lock:
                held = list(self._held.values())
            for lease in held:
                asked = time.monotonic()
                try:
                    holds = self._queue.renew(lease)
                    with self._lock:
                        if lease.token not in self._until:
                            continue  # done meanwhile, and given back
                        self._until[lease.token] = asked + _MARGIN * self._queue.lease_seconds if holds else float("-inf")
                    if not holds:
                        log.warning("%s %s took so long that another worker has it now", *lease.key)
                except redis.RedisError as error:
                    log.warning("a lease could not be renewed: %s", error)
