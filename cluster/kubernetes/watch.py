"""Watching several kinds at once: list, then watch, each kind in a thread of its own; what breaks is healed by listing again."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from cluster.away import Away
from cluster.errors import ApiError, Expired, NotFound, Unavailable
from cluster.kinds import Kind
from cluster.kubernetes.answers import refusal
from cluster.kubernetes.listing import Listing
from cluster.kubernetes.pending import Pending
from cluster.kubernetes.transport import Transport, path_of
from cluster.patience import Patience
from cluster.port import EventType, Obj, WatchEvent
from cluster.said import said

IDLE_SECONDS = 40.0
"""A stream on which nothing came for so long, not even a bookmark, is taken to be dead."""
STREAM_SECONDS = (300, 600)
"""How long a server is asked to keep a stream: not the same for all, so that they do not all begin anew at once."""
AGAIN_SECONDS = 1800.0
"""Everything is listed again so often, a little more or less: what a stream lost without a word is found then."""
SHORT_SECONDS = 1.0
"""A stream that ended sooner, and told nothing, is not begun again at once."""
_FIRST_PAUSE, _LONGEST_PAUSE, _ABSENT_PAUSE = 0.2, 10.0, 60.0

log = logging.getLogger(__name__)


class Garbled(ApiError):
    """A line of a stream is no event."""


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
        self._pending = Pending()
        self._closed = threading.Event()
        self._streams: dict[Kind, Any] = {}
        self._lock = threading.Lock()
        self._unlisted = set(kinds)
        self._deaf: set[Kind] = set()
        self._away = Away("what changes in the cluster is not heard of")
        if not kinds:
            self._put([WatchEvent("SYNCED", None, {})])
        first = {kind: self._first(kind) for kind in dict.fromkeys(kinds)}  # a refusal is the caller's to hear
        for kind, listing in first.items():
            threading.Thread(target=self._follow, args=(kind, listing), name=f"watch-{kind.plural}", daemon=True).start()

    def get(self, timeout: float | None = None) -> WatchEvent | None:
        """The next event."""
        return self._pending.take(timeout)

    def drain(self) -> list[WatchEvent]:
        """All that wait."""
        return self._pending.drain()

    def __iter__(self) -> Iterator[WatchEvent]:
        while not self._closed.is_set():
            event = self.get()
            if event is not None:
                yield event

    def close(self) -> None:
        """Stop, and break the streams."""
        self._closed.set()
        self._pending.close()
        for stream in list(self._streams.values()):
            with contextlib.suppress(Exception):  # whatever a socket says that is being closed
                stream.shutdown() if hasattr(stream, "shutdown") else stream.close()

    def _put(self, events: list[WatchEvent]) -> None:
        if not events:
            return
        self._pending.put(events)
        if self._notify is not None:
            self._notify()

    def _listing(self, kind: Kind) -> Listing:
        return Listing(self._transport, kind, self._namespace, self._query)

    def _first(self, kind: Kind) -> Listing | None:
        """A list of a kind with its first page; None for a kind that an older server does not have, and which is asked for
        now and then. Raises ApiError; Unavailable when the server was not taught our own kinds, or does not serve them yet.
        """
        try:
            listing = self._listing(kind)
            listing.turn()
        except NotFound:
            if _is_ours(kind):
                raise Unavailable(
                    said("the cluster does not serve %(kind)s: is it installed? (manage.py install-crds)", kind=kind)
                ) from None
            log.info("this cluster has no %s: there are none, then", kind)
            return None
        return listing

    def _follow(self, kind: Kind, listing: Listing | None) -> None:
        """Tell one kind's objects for as long as the watch lives."""
        shown: dict[tuple[str, str], Obj] = {}
        patience, told = Patience(_FIRST_PAUSE, _LONGEST_PAUSE), ""
        if listing is None:
            self._has_listed(kind)
            self._closed.wait(_ABSENT_PAUSE)
        while not self._closed.is_set():
            try:
                listing, again = self._listing(kind) if listing is None else listing, _soon()
                version = self._show(kind, shown, listing)
                self._has_listed(kind)
                self._hears(kind)
                listing, told = None, ""
                while not self._closed.is_set() and version and time.monotonic() < again:
                    version = self._stream(kind, shown, version, again, patience)
            except Expired:
                listing = None
            except NotFound as error:  # not served now: what was shown stays; our own kinds come back, others may never
                listing, missed = None, bool(shown) or _is_ours(kind)
                told = _told_once(kind, error, told) if missed else told
                self._closed.wait(_jittered(patience.next()) if missed else _ABSENT_PAUSE)
            except Unavailable as error:  # all kinds notice it at once: it is told for all of them together
                listing = None
                self._hears(kind, error)
                self._closed.wait(_jittered(patience.next()))
            except ApiError as error:
                listing, told = None, _told_once(kind, error, told)
                self._closed.wait(_jittered(patience.next()))
            except Exception:
                listing = None
                log.exception("the watch of %s failed and begins again", kind)
                self._closed.wait(_jittered(patience.next()))

    def _has_listed(self, kind: Kind) -> None:
        with self._lock:
            was_last = kind in self._unlisted and len(self._unlisted) == 1
            self._unlisted.discard(kind)
        if was_last:
            self._put([WatchEvent("SYNCED", None, {})])

    def _hears(self, kind: Kind, error: Unavailable | None = None) -> None:
        """A kind that is, or is not, heard of: told with the first that is not, and when there is none left."""
        with self._lock:
            if error is not None:
                self._deaf.add(kind)
                self._away.failed(error)
            elif self._deaf:
                self._deaf.discard(kind)
                if not self._deaf:
                    self._away.answered()

    def _show(self, kind: Kind, shown: dict[tuple[str, str], Obj], listing: Listing) -> str:
        """Tell page by page what a list has that was not shown, then what was shown and is gone; the version to go on from."""
        present: set[tuple[str, str]] = set()
        begun = listing.begun
        for items in listing:
            if listing.begun != begun:  # what was read until then is of another moment
                begun = listing.begun
                present.clear()
            events: list[WatchEvent] = []
            for obj in items:
                present.add(_key(obj))
                events += _told(kind, shown, "MODIFIED", obj)
            self._put(events)
            if self._closed.is_set():
                return ""
        gone = [key for key in shown if key not in present]
        self._put([WatchEvent("DELETED", kind, shown.pop(key)) for key in gone])
        return listing.version

    def _stream(self, kind: Kind, shown: dict[tuple[str, str], Obj], version: str, again: float, patience: Patience) -> str:
        """Read one connection to its end; the version reached. Raises ApiError when it is time to list again."""
        begin, told = time.monotonic(), False
        seconds = max(1, min(random.randint(*STREAM_SECONDS), int(again - begin)))  # noqa: S311 - nothing secret
        query = {**self._query, "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
        query["timeoutSeconds"] = str(seconds)
        lines, response = self._transport.lines(path_of(kind, self._namespace), query, IDLE_SECONDS)
        self._streams[kind] = response
        try:
            for line in lines:
                if self._closed.is_set():
                    break
                event, obj = _event(line)
                version, told = str(obj["metadata"]["resourceVersion"]), True
                if event != "BOOKMARK":
                    self._put(_told(kind, shown, event, obj))
                patience.reset()
        finally:
            self._streams.pop(kind, None)
            response.close()
        if not told and time.monotonic() < begin + SHORT_SECONDS:
            self._closed.wait(_jittered(patience.next()))
        return version


def _event(line: bytes) -> tuple[str, Obj]:
    """The type and object of a line. Raises what an ERROR says, and Garbled for what makes no sense: then a list tells."""
    try:
        event = orjson.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise refusal(int(obj.get("code") or 500), orjson.dumps(obj))
        meta = obj["metadata"]
        if not meta["resourceVersion"] or (kind != "BOOKMARK" and not meta["name"]):
            raise KeyError("metadata")
        meta.pop("managedFields", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Garbled(f"a line of the stream is no event: {line[:80]!r}") from None
    return kind, obj


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
    if old is not None and old["metadata"].get("uid") != obj["metadata"].get("uid"):
        return [WatchEvent("DELETED", kind, old), WatchEvent("ADDED", kind, obj)]
    kind_of_event: EventType = "ADDED" if old is None else "MODIFIED"
    return [WatchEvent(kind_of_event, kind, obj)]


def _key(obj: Obj) -> tuple[str, str]:
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]


def _soon() -> float:
    """When everything is listed again."""
    return time.monotonic() + AGAIN_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - nothing secret


def _told_once(kind: Kind, error: ApiError, told: str) -> str:
    """Say what fails, unless `said` was just that: two dozen kinds try again and again. What is said now."""
    if str(error) != told:
        log.warning("%s cannot be watched now: %s", kind, error)
    return str(error)


def _is_ours(kind: Kind) -> bool:
    """Whether `install-crds` brings it."""
    return kind.group.endswith("volcano.sh")


def _jittered(pause: float) -> float:
    return pause * random.uniform(0.8, 1.2)  # noqa: S311 - nothing secret


def _without_empty(query: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in query.items() if value}
