"""Events (core/v1) told in measure: the same again is counted, many alike become one, and nobody floods a cluster.

The rules and their numbers are those of client-go's EventCorrelator: an event that only repeats raises the count of the one that
is there; of events that differ in their message alone the tenth within ten minutes, and what follows it, is told as one that
combines them; a source tells of one object 25 events at once, and one in five minutes from then on. Over all objects there is a
bound besides.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cluster import objects
from cluster.errors import ApiError, NotFound
from cluster.events import SAID, saying
from cluster.kinds import EVENT
from cluster.port import Cluster, Obj, Outcome, Victim
from cluster.said import said, unpacked

ALIKE, ALIKE_SECONDS = 10, 600.0
BURST, RATE = 25, 1 / 300
BURST_OF_ALL, RATE_OF_ALL = 5000, 50.0
REMEMBERED = 4096

log = logging.getLogger(__name__)

_Key = tuple[str, ...]
_Value = TypeVar("_Value")


class Budget:
    """A token bucket: `burst` at once, `rate` a second in the long run."""

    def __init__(self, burst: int, rate: float, now: float) -> None:
        self._burst, self._rate, self._tokens, self._at = burst, rate, float(burst), now

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class _Recent(Generic[_Value]):
    """The values that were asked for last, by key; one that is missing is made."""

    def __init__(self, make: Callable[[], _Value]) -> None:
        self._make = make
        self._kept: OrderedDict[_Key, _Value] = OrderedDict()

    def __getitem__(self, key: _Key) -> _Value:
        if key not in self._kept:
            self._kept[key] = self._make()
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


@dataclass(slots=True)
class _Alike:
    """Messages of events that are alike but for them, and when the last came."""

    messages: OrderedDict[str, None]
    at: float


@dataclass(slots=True)
class Told:
    """An event that is told, or is about to be: as it was made, its uid once the cluster has it, and its count."""

    event: Obj
    uid: str = ""
    count: int = 0


class Correlator:
    """Decides which events are written, and how. Not for several threads at once. `now` is any clock that goes forward."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._alike: _Recent[_Alike] = _Recent(lambda: _Alike(OrderedDict(), now()))
        self._told: _Recent[Told] = _Recent(lambda: Told({}))
        self._budgets: _Recent[Budget] = _Recent(lambda: Budget(BURST, RATE, now()))
        self._all = Budget(BURST_OF_ALL, RATE_OF_ALL, now())
        self.dropped = 0

    def correlate(self, event: Obj) -> Told | None:
        """The event by which this one is told, its count raised; None when it is one too many."""
        key, event = self._combined(event)
        told = self._told[key]
        first = told.event.get("firstTimestamp") or event["firstTimestamp"]
        meta = told.event.get("metadata") or event["metadata"]
        told.count += 1
        notes = {key: event["metadata"][key] for key in ("annotations",) if key in event["metadata"]}
        told.event = {**event, "metadata": {**meta, **notes}, "firstTimestamp": first, "count": told.count}
        now = self._now()
        if not self._budgets[_source(event)].take(now) or not self._all.take(now):
            self.dropped += 1
            return None
        return told

    def _combined(self, event: Obj) -> tuple[_Key, Obj]:
        """What counts as the same event, and the event as it is told."""
        group, message, now = (*_source(event), event["type"], event["reason"]), event["message"], self._now()
        alike = self._alike[group]
        if now - alike.at > ALIKE_SECONDS:
            alike.messages.clear()
        alike.at = now
        alike.messages[message] = None
        if len(alike.messages) < ALIKE:
            return (*group, message), event
        alike.messages.popitem(last=False)
        return group, _one_of_many(event)


class EventRecorder:
    """Writes events through a correlator, many at once; safe from any thread. One that is refused is not worth a second try."""

    def __init__(self, cluster: Cluster, now: Callable[[], float], *, field_manager: str = "") -> None:
        self._cluster, self._manager = cluster, field_manager
        self._correlator = Correlator(now)
        self._lock = threading.Lock()

    @property
    def dropped(self) -> int:
        """How many were not told since they were too many."""
        return self._correlator.dropped

    def record(self, events: Sequence[Obj]) -> list[Outcome]:
        """Tell events; what became of each write, which may be fewer than events. None raises."""
        with self._lock:
            before = self._correlator.dropped
            told = {id(each): each for event in events if (each := self._correlator.correlate(event)) is not None}
            new = [each for each in told.values() if not each.uid]
            known = [each for each in told.values() if each.uid]
            if self._correlator.dropped > before:
                log.info("%d events are not told: too many", self._correlator.dropped - before)
            outcomes = self._create(new)
            patches = [(_victim(each), _again(each)) for each in known]
            patched = self._cluster.patch_many(EVENT, patches, field_manager=self._manager) if patches else []
            gone = [each for each, outcome in zip(known, patched, strict=True) if isinstance(outcome.error, NotFound)]
            return [*outcomes, *(o for o in patched if not isinstance(o.error, NotFound)), *self._create(gone)]

    def _create(self, new: Sequence[Told]) -> list[Outcome]:
        if not new:
            return []
        outcomes = self._cluster.create_many(EVENT, [each.event for each in new], field_manager=self._manager)
        for each, outcome in zip(new, outcomes, strict=True):
            if isinstance(outcome.error, ApiError):
                log.debug("event %s about %s: %s", each.event["reason"], each.event["involvedObject"]["name"], outcome.error)
                each.uid, each.count, each.event = "", 0, {}
            elif outcome.object is not None:
                named = {"name": objects.name(outcome.object), "namespace": objects.namespace(outcome.object)}
                each.uid, each.event = objects.uid(outcome.object), {**each.event, "metadata": named}
        return outcomes


def _source(event: Obj) -> _Key:
    """Who tells, and of what."""
    source, about = event.get("source") or {}, event["involvedObject"]
    parts = (about.get(part) or "" for part in ("kind", "namespace", "name", "uid", "apiVersion"))
    return (source.get("component") or "", source.get("host") or "", *parts)


def _victim(told: Told) -> Victim:
    meta = told.event["metadata"]
    return Victim(meta.get("namespace") or "", meta["name"], told.uid)


def _again(told: Told) -> Obj:
    notes = told.event["metadata"].get("annotations") or {}
    return {
        "metadata": {"annotations": {SAID: notes.get(SAID)}},
        "count": told.count,
        "lastTimestamp": told.event["lastTimestamp"],
        "message": told.event["message"],
    }


def _one_of_many(event: Obj) -> Obj:
    notes = event["metadata"].get("annotations") or {}
    own = unpacked(notes.get(SAID) or "", event["message"])
    message = said("(combined from similar events): %(event)s", event=own)
    notes = {key: value for key, value in {**notes, **saying(message)}.items() if value}
    return {**event, "metadata": {**event["metadata"], "annotations": notes}, "message": str(message)}
