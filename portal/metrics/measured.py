"""A cluster of which the scheduler's ways are timed: when pods are first seen, and how long binds take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from time import perf_counter
from typing import Any

from cluster.kinds import CLAIM, NODE, POD, RESOURCE_CLAIM, VOLUME, Kind
from cluster.objects import parse_time
from cluster.port import Binding, Cluster, Outcome, Watch, WatchEvent
from portal.metrics.scheduler import SchedulerMetrics

PREPARES = frozenset({CLAIM, VOLUME, RESOURCE_CLAIM, NODE})
"""Kinds that the scheduler writes only to prepare a bind."""


class Measured:
    """See `cluster.port.Cluster`; every verb is the inner cluster's. Pods of `schedulers` count as ours."""

    def __init__(self, inner: Cluster, metrics: SchedulerMetrics, schedulers: Collection[str]) -> None:
        self._inner, self._metrics, self._schedulers = inner, metrics, frozenset(schedulers)
        self._here = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def watch(self, kinds: Sequence[Kind], **how: Any) -> _Seen:
        """Events, of which the first of each waiting pod of ours is told."""
        return _Seen(self._inner.watch(kinds, **how), self._saw)

    def patch(self, kind: Kind, *what: Any, **how: Any) -> Any:
        """Patch; timed where it prepares a bind."""
        return self._timed(kind, self._inner.patch, kind, *what, **how)

    def patch_status(self, kind: Kind, *what: Any, **how: Any) -> Any:
        """Write a status; timed where it prepares a bind."""
        return self._timed(kind, self._inner.patch_status, kind, *what, **how)

    def bind_many(self, bindings: Sequence[Binding]) -> list[Outcome]:
        """Bind, timed."""
        prepared, self._here.spent = getattr(self._here, "spent", 0.0), 0.0
        self._metrics.prepared([binding.uid for binding in bindings], prepared * 1000)
        begin = perf_counter()
        outcomes = self._inner.bind_many(bindings)
        done = {binding.uid: outcome.error is None for binding, outcome in zip(bindings, outcomes, strict=True)}
        self._metrics.bound(done, (perf_counter() - begin) * 1000)
        return outcomes

    def _timed(self, kind: Kind, write: Callable[..., Any], *what: Any, **how: Any) -> Any:
        if kind not in PREPARES:
            return write(*what, **how)
        begin = perf_counter()
        try:
            return write(*what, **how)
        finally:
            self._here.spent = getattr(self._here, "spent", 0.0) + perf_counter() - begin

    def _saw(self, event: WatchEvent) -> None:
        if event.type != "ADDED" or event.kind != POD:
            return
        spec = event.object.get("spec") or {}
        if spec.get("nodeName") or spec.get("schedulerName") not in self._schedulers:
            return
        try:
            created = parse_time(event.object["metadata"]["creationTimestamp"])
        except (KeyError, ValueError):
            return  # the scheduler sets such a pod aside, and says so
        self._metrics.watched(created)


class _Seen:
    """A watch; `saw` hears each event as it is taken."""

    def __init__(self, inner: Watch, saw: Callable[[WatchEvent], None]) -> None:
        self._inner, self._saw = inner, saw

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event."""
        event = self._inner.get(timeout)
        if event is not None:
            self._saw(event)
        return event

    def drain(self) -> list[WatchEvent]:
        """All that wait."""
        events = self._inner.drain()
        for event in events:
            self._saw(event)
        return events

    def close(self) -> None:
        """End."""
        self._inner.close()
