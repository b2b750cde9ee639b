"""Watching several kinds at once: list, then watch, each kind in a thread of its own; what breaks is healed by listing again."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from cluster.errors import ApiError, Expired, NotFound, Unavailable
from cluster.kinds import Kind
from cluster.kubernetes.transport import Transport, path_of, refusal
from cluster.port import EventType, Obj, WatchEvent

PAGE = 500
IDLE_SECONDS = 40.0
"""A stream on which nothing came for so long, not even a bookmark, is taken to be dead."""
_FIRST_PAUSE, _LONGEST_PAUSE, _ABSENT_PAUSE = 0.2, 10.0, 60.0

log = logging.getLogger(__name__)


class KubernetesWatch:
    """See `cluster.port.Watch`. Events of one kind come in order; kinds among each other do not."""

    def __init__(
        self,
        transport: Transport,
        kinds: Sequence[Kind],
        namespace: str,
        labels: str,
        fields: str,
        notify: Callable[[], None] | None,
    ) -> None:
        self._transport, self._notify = transport, notify
        self._namespace, self._query = namespace, _without_empty({"labelSelector": labels, "fieldSelector": fields})
        self._ready: deque[WatchEvent] = deque()
        self._condition = threading.Condition()
        self._closed = threading.Event()
        self._streams: dict[Kind, Any] = {}
        self._unlisted = set(kinds)
        if not kinds:
            self._put([WatchEvent("SYNCED", None, {})])
        first = {kind: self._first(kind) for kind in dict.fromkeys(kinds)}  # a refusal is the caller's to hear
        for kind, listed in first.items():
            threading.Thread(target=self._follow, args=(kind, listed), name=f"watch-{kind.plural}", daemon=True).start()

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not self._ready and not self._closed.is_set():
                if not self._condition.wait(None if end is None else max(0.0, end - time.monotonic())) and end is not None:
                    break
            return self._ready.popleft() if self._ready and not self._closed.is_set() else None

    def drain(self) -> list[WatchEvent]:
        """All that wait."""
        with self._condition:
            events = [] if self._closed.is_set() else list(self._ready)
            self._ready.clear()
            return events

    def __iter__(self) -> Iterator[WatchEvent]:
        while not self._closed.is_set():
            event = self.get()
            if event is not None:
                yield event

    def close(self) -> None:
        """Stop, and break the streams."""
        self._closed.set()
        with self._condition:
            self._condition.notify_all()
        for stream in list(self._streams.values()):
            with contextlib.suppress(Exception):  # whatever a socket says that is being closed
                stream.shutdown() if hasattr(stream, "shutdown") else stream.close()

    def _put(self, events: list[WatchEvent]) -> None:
        if not events:
            return
        with self._condition:
            self._ready.extend(events)
            self._condition.notify_all()
        if self._notify is not None:
            self._notify()

    def _first(self, kind: Kind) -> tuple[list[Obj], str] | None:
        """The first list of a kind; None for one that an older server does not have, and which is asked for now and then.

        Raises ApiError; Unavailable when the server was not taught our own kinds, or does not serve them yet.
        """
        try:
            return self._list(kind)
        except NotFound:
            if kind.group.endswith("volcano.sh"):
                raise Unavailable(f"the cluster does not serve {kind}: is it installed? (manage.py install-crds)") from None
            log.info("this cluster has no %s: there are none, then", kind)
            return None

    def _list(self, kind: Kind) -> tuple[list[Obj], str]:
        """All objects of a kind, page by page, and the version to watch from. Raises ApiError."""
        items: list[Obj] = []
        token = ""
        while True:
            query = {**self._query, "limit": str(PAGE), **({"continue": token} if token else {})}
            try:
                page = self._transport.call("GET", path_of(kind, self._namespace), query)
            except Expired:
                if not token:
                    raise
                items, token = [], ""
                continue
            found = page.get("items") or []
            for obj in found:  # lists of typed kinds leave these to the list itself
                obj.setdefault("apiVersion", kind.api_version)
                obj.setdefault("kind", kind.kind)
            items += found
            meta = page.get("metadata") or {}
            token = meta.get("continue") or ""
            if not token:
                return items, str(meta.get("resourceVersion") or "")

    def _follow(self, kind: Kind, listed: tuple[list[Obj], str] | None) -> None:
        """Tell one kind's objects for as long as the watch lives."""
        shown: dict[tuple[str, str], Obj] = {}
        pause = _FIRST_PAUSE
        if listed is None:
            self._has_listed(kind)
            self._closed.wait(_ABSENT_PAUSE)
        while not self._closed.is_set():
            try:
                if listed is None:
                    listed = self._list(kind)
                items, version = listed
                self._put(self._differences(kind, shown, items))
                self._has_listed(kind)
                listed, pause = None, _FIRST_PAUSE
                while not self._closed.is_set() and version:
                    version = self._stream(kind, shown, version)
            except Expired:
                continue
            except NotFound as error:  # not served now: what was shown stays
                if shown:
                    log.warning("%s cannot be watched now: %s", kind, error)
                self._closed.wait(_LONGEST_PAUSE if shown else _ABSENT_PAUSE)
            except ApiError as error:
                log.warning("%s cannot be watched now: %s", kind, error)
                self._closed.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except Exception:
                log.exception("the watch of %s failed and begins again", kind)
                self._closed.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _has_listed(self, kind: Kind) -> None:
        with self._condition:
            was_last = kind in self._unlisted and len(self._unlisted) == 1
            self._unlisted.discard(kind)
        if was_last:
            self._put([WatchEvent("SYNCED", None, {})])

    def _stream(self, kind: Kind, shown: dict[tuple[str, str], Obj], version: str) -> str:
        """Read one connection to its end; the version reached. Raises Expired when it is time to list again."""
        query = {**self._query, "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": "600"}
        lines, response = self._transport.lines(path_of(kind, self._namespace), query, IDLE_SECONDS)
        self._streams[kind] = response
        try:
            for line in lines:
                if self._closed.is_set():
                    break
                event = orjson.loads(line)
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise refusal(int(obj.get("code") or 500), orjson.dumps(obj))
                version = str(obj["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    self._put(_told(kind, shown, event["type"], obj))
        finally:
            self._streams.pop(kind, None)
            response.close()
        return version

    def _differences(self, kind: Kind, shown: dict[tuple[str, str], Obj], items: list[Obj]) -> list[WatchEvent]:
        """What a new list changes in what was shown."""
        present = {_key(obj): obj for obj in items}
        events: list[WatchEvent] = []
        for key, old in list(shown.items()):
            new = present.get(key)
            if new is None or new["metadata"]["uid"] != old["metadata"]["uid"]:
                del shown[key]
                events.append(WatchEvent("DELETED", kind, old))
        for obj in items:
            events += _told(kind, shown, "MODIFIED", obj)
        return events


def _told(kind: Kind, shown: dict[tuple[str, str], Obj], event: str, obj: Obj) -> list[WatchEvent]:
    """The events by which an object's new state is told, given what was shown of it."""
    key = _key(obj)
    old = shown.get(key)
    if event == "DELETED":
        shown.pop(key, None)
        return [WatchEvent("DELETED", kind, obj)] if old is not None else []
    if old is not None and old["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]:
        return []
    shown[key] = obj
    kind_of_event: EventType = "ADDED" if old is None else "MODIFIED"
    return [WatchEvent(kind_of_event, kind, obj)]


def _key(obj: Obj) -> tuple[str, str]:
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]


def _without_empty(query: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in query.items() if value}
