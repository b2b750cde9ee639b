"""The mirror: watches the cluster and drives each app's projection, in batches.

It may stop and start at any time. A watch begins with all that is there; once it is SYNCED, whatever row is alive and was not
in that list is gone, and gets its tombstone.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, connection

from cluster.away import Away
from cluster.kinds import Kind
from cluster.patience import Patience
from cluster.port import Cluster, Obj, Watch, WatchEvent
from cluster.projection import PROJECTIONS as CLUSTER
from cluster.projection import Batch, unreadable
from cluster.said import said
from jobs.cron.projection import PROJECTIONS as CRONS
from jobs.flows.projection import PROJECTIONS as FLOWS
from jobs.projection import PROJECTIONS as JOBS
from queues.projection import PROJECTIONS as QUEUES

log = structlog.get_logger(__name__)

PROJECTIONS = {**CLUSTER, **QUEUES, **FLOWS, **CRONS, **JOBS}
"""In the order in which kinds are projected: what others refer to comes first."""

BATCH = 500
GATHER = 0.1
"""Seconds for which changes are gathered once they come one after the other; the first of them is shown at once."""
PATIENCE = 30.0
"""Longest pause, in seconds, between two tries when the database does not take a batch."""


@dataclass
class _Pending:
    """Events of one kind that wait to be projected; the newest of each object only."""

    upserts: dict[str, Obj] = field(default_factory=dict)
    deletes: dict[str, Obj] = field(default_factory=dict)

    def add(self, event: WatchEvent) -> None:
        uid = event.object["metadata"]["uid"]
        self.upserts.pop(uid, None)
        (self.deletes if event.type == "DELETED" else self.upserts)[uid] = event.object


class Mirror:
    """One watch over all projected kinds. `run` blocks until the event is set, and may be called again after it failed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: defaultdict[Kind, set[str]] | None = None
        self._own: Watch | None = None
        self._taking: float | None = None
        self.synced = threading.Event()

    @property
    def behind(self) -> float:
        """Seconds for which the oldest change that was heard of has waited to be in the database; 0 when none waits."""
        taking = self._taking
        return 0.0 if taking is None else time.monotonic() - taking

    def run(self, stop: threading.Event) -> None:
        """Project until told to stop. A batch that the database refuses is tried again, none is dropped."""
        self._seen = defaultdict(set)
        watch = self._cluster.watch(list(PROJECTIONS))
        taken = 0.0
        try:
            while not stop.is_set():
                first = watch.get(timeout=0.5)
                if first is not None:
                    self._taking = time.monotonic()
                    if time.monotonic() - taken < GATHER:  # much is going on: more comes in a moment, in the same transaction
                        stop.wait(GATHER)
                    self._take([first, *watch.drain()], stop)
                    self._taking, taken = None, time.monotonic()
                else:
                    close_old_connections()
        finally:
            watch.close()
            connection.close()

    def settle(self) -> None:
        """Project, in the caller's thread, what has happened until now: for simulated time."""
        if self._own is None:
            self._seen = defaultdict(set)
            self._own = self._cluster.watch(list(PROJECTIONS))
        self._take(self._own.drain(), threading.Event())

    def close(self) -> None:
        """End what `settle` began."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _take(self, events: Sequence[WatchEvent], stop: threading.Event) -> None:
        pending: defaultdict[Kind, _Pending] = defaultdict(_Pending)
        synced = False
        for event in events:
            if event.kind is None:
                synced = True
            elif not event.object.get("metadata", {}).get("uid"):
                unreadable(event.object, ValueError(said("an object without a uid")))
            else:
                pending[event.kind].add(event)
                if self._seen is not None and event.type != "DELETED":
                    self._seen[event.kind].add(event.object["metadata"]["uid"])
        for kind in PROJECTIONS:
            if kind in pending:
                self._project(kind, pending[kind], stop)
        if synced and self._seen is not None and not stop.is_set():
            self._bury_missing(self._seen, stop)
            self._seen = None
            self.synced.set()

    def _project(self, kind: Kind, pending: _Pending, stop: threading.Event) -> None:
        for batch in _slices(pending):
            persist(kind, batch, stop)

    def _bury_missing(self, seen: dict[Kind, set[str]], stop: threading.Event) -> None:
        """Rows of objects that went while nobody watched."""
        for kind, projection in PROJECTIONS.items():
            if kind.kind == "Event":  # events are history: the cluster forgets them within the hour
                continue
            alive = projection.model._default_manager.filter(deleted_at=None).values_list("pk", flat=True)
            missing = [uid for uid in alive.iterator() if uid not in seen.get(kind, ())]
            for start in range(0, len(missing), BATCH):
                persist(kind, Batch(gone=missing[start : start + BATCH]), stop)
            if missing:
                log.info("rows of objects that are gone were buried", kind=kind.kind, rows=len(missing))


def _slices(pending: _Pending) -> list[Batch]:
    upserts, deletes = list(pending.upserts.values()), list(pending.deletes.values())
    batches = [Batch(upserts=upserts[start : start + BATCH]) for start in range(0, len(upserts), BATCH)]
    return batches + [Batch(deletes=deletes[start : start + BATCH]) for start in range(0, len(deletes), BATCH)]


BAD = (DatabaseError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError)


def persist(kind: Kind, batch: Batch, stop: threading.Event) -> None:
    """Project a batch; when the database refuses what is in it, one by one, so that a bad object stops nobody but itself.

    A database that does not answer, or is locked, is waited for, with growing pauses, until `stop`.
    """
    patience, away = Patience(0.1, PATIENCE), Away("the database does not answer, and the mirror waits")
    while not stop.is_set():
        try:
            PROJECTIONS[kind].project(batch)
            away.answered()
        except (OperationalError, InterfaceError) as error:
            away.failed(error)
            connection.close()
            stop.wait(patience.next())
            continue
        except BAD as error:
            if _is_single(batch):
                unreadable(next(iter([*batch.upserts, *batch.deletes]), {"kind": kind.kind}), error)
            else:
                for single in _singles(batch):
                    persist(kind, single, stop)
        return


def _is_single(batch: Batch) -> bool:
    return len(batch.upserts) + len(batch.deletes) + len(batch.gone) <= 1


def _singles(batch: Batch) -> list[Batch]:
    return [
        *(Batch(upserts=[obj]) for obj in batch.upserts),
        *(Batch(deletes=[obj]) for obj in batch.deletes),
        *(Batch(gone=[uid]) for uid in batch.gone),
    ]
