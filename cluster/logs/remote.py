"""The log of a container that a kubelet keeps, read through the API server: once, or followed.

An API server has no places in a log, only instants in whole seconds. So a reader goes on from the instant that it has reached,
and leaves out what it has seen of that instant already.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from cluster.errors import ApiError, BadRequest, NotFound, TooManyRequests
from cluster.logs.masking import Mask
from cluster.logs.records import Record, instant
from cluster.logs.streams import START, Position
from cluster.said import said

PIECE = 32_768
"""Bytes of one line that make a record; a longer line comes in pieces."""
HELD_BYTES = 2**20
"""Bytes of records that wait for one reader; a kubelet that is faster waits."""
MOST_FOLLOWED = 256
"""Logs that one process follows at a time: each is a connection and a thread."""
LOOK_SECONDS = 1.0
"""Between two tries at a log that is not there yet, or whose connection ended."""
LATE_SECONDS = 10.0
"""After a container's end, the longest wait for the rest of its log."""

_HEAD = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")
_followed = threading.Semaphore(MOST_FOLLOWED)


class Connection(Protocol):
    """An answer that is being read."""

    def chunks(self) -> Iterator[bytes]:
        """Bytes as they come; ends with the answer."""
        ...

    def close(self) -> None:
        """Break it off, from any thread."""
        ...


Open = Callable[[dict[str, str]], Connection]
"""Ask for a log by the API server's parameters. Raises ApiError."""


class Records:
    """Bytes of a log with instants in front of its lines, as records. Values that must not be shown are masked."""

    def __init__(self, mask: Mask | None = None) -> None:
        self._mask = mask
        self._rest = b""
        self._at = instant(0.0)
        self._inside = False

    def feed(self, data: bytes) -> list[Record]:
        """The records that are complete now, and pieces of a line that is long."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [record for line in lines for record in self._line(line, full=True)]
        if len(self._rest) > PIECE:
            found += self._line(self._rest, full=False)
            self._rest = b""
        return found

    def end(self) -> list[Record]:
        """What is left of a log that does not end with a line's end."""
        rest, self._rest = self._rest, b""
        return self._line(rest, full=True) if rest or self._inside else []

    def _line(self, line: bytes, *, full: bool) -> list[Record]:
        if not self._inside and (head := _HEAD.match(line)):
            self._at, line = _instant(head), line[head.end() :]
        self._inside = not full
        if self._mask is not None:
            line = self._mask.feed(line) + (self._mask.end() if full else b"")
        pieces = [line[start : start + PIECE] for start in range(0, len(line), PIECE)] or [b""]
        return [Record(self._at, "o", full and index == len(pieces) - 1, piece) for index, piece in enumerate(pieces)]


def _instant(head: re.Match[bytes]) -> str:
    second, fraction, zone = head[1].decode(), (head[2] or b"").decode().ljust(9, "0"), head[3].decode()
    if zone != "Z":
        try:
            at = datetime.fromisoformat(second + zone).astimezone(UTC)
        except ValueError:
            return f"{second}.{fraction}Z"
        second = at.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second}.{fraction}Z"


class Troubles:
    """What keeps logs from being read, told once for all streams of a reader: a kubelet that is away has many pods.

    `last` is the newest; with `quiet` nothing is told: the lines are kept, and must be the logs' own.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._lock = threading.Lock()
        self._said: set[tuple[str, ...]] = set()
        self._quiet = quiet
        self.last: ApiError | None = None

    def line(self, node: str, error: ApiError) -> str:
        """What to say of an error with a log on a node; empty when that was said."""
        cause = _OF_A_KUBELET.sub("", error.message)
        is_kubelets = bool(node) and cause != error.message
        key = (node, cause) if is_kubelets else (str(error.status), error.reason)
        with self._lock:
            self.last = error
            if self._quiet or key in self._said:
                return ""
            self._said.add(key)
        if is_kubelets:
            return f"No log on node {node} can be read now: {cause}"
        return f"The log cannot be read now: {error.message}"


_OF_A_KUBELET = re.compile(r'^\w+ "https?://[^"]*/containerLogs/[^"]*": ')
"""An API server names the address of the log, which differs from pod to pod, and then what is wrong with the kubelet."""


@dataclass
class RemoteStream:
    """See `cluster.logs.streams.Stream`; for one reader, who closes it. Positions only tell the beginning from what follows.

    `is_ended` says whether the container has ended; `secrets` are patterns of what must not be shown. What keeps the log from
    being read becomes a line that says so, unless another stream that shares its `troubles` has said it.
    """

    open: Open
    is_ended: Callable[[], bool]
    secrets: list[bytes] = field(default_factory=list)
    previous: bool = False
    node: str = ""
    troubles: Troubles = field(default_factory=Troubles)
    _now: _Read | None = None
    _follower: _Follower | None = None
    _is_read: bool = False
    _is_gone: bool = False
    _last: str = ""
    _seen: int = 0
    _skip: int = 0
    _said: str = ""
    _troubles: list[Record] = field(default_factory=list)
    _over_since: float | None = None
    _next_try: float = 0.0

    def read(self, position: Position, most: int) -> tuple[list[Record], Position]:
        """From the beginning to what is there now; then, once nothing came, what comes, without waiting for it."""
        records = self._followed_on(most) if self._is_read else self._read_on(most)
        return records, (1, position[1] + len(records))

    def tail(self, lines: int) -> tuple[list[Record], Position]:
        """The last so many lines."""
        self._now = self._opened({"tailLines": str(max(1, lines))}) or _NOTHING  # of none one, to know how far it is
        found: list[Record] = []
        while records := self._read_on(HELD_BYTES):
            found += records
        return found, (1, len(found))

    def since(self, at: str) -> Position:
        """Only what is as new as that is asked for."""
        self._last = at
        return START

    def size(self) -> int:
        """Not known."""
        return 0

    def is_cut(self) -> bool:
        """Not known."""
        return False

    def is_over(self) -> bool:
        """Whether nothing more will come: the container has ended, and what it printed was read."""
        if not self._is_read or not (self.previous or self._is_gone or self.is_ended()):
            return False
        if self.previous or self._follower is None:
            return self.previous or self._is_gone
        if self._over_since is None:
            self._over_since = time.monotonic()
        is_late = time.monotonic() - self._over_since > LATE_SECONDS
        return self._follower.is_empty and (self._follower.is_over or is_late)

    def close(self) -> None:
        """Let go of connections and threads."""
        for each in (self._now, self._follower):
            if each is not None:
                each.close()

    # -- what is there now ---------------------------------------------------------------------------------------------

    def _read_on(self, most: int) -> list[Record]:
        if self._now is None:
            self._now = self._opened({}) or _NOTHING
        records = self._noted(self._now.next(most)) or self._told()
        if not records:
            self._now.close()
            self._is_read = True
        return records

    def _opened(self, parameters: dict[str, str]) -> _Read | None:
        """The answer to a request; None where there is nothing to read."""
        try:
            return _Read(self.open(self._asked(parameters)), self._records())
        except ApiError as error:
            self._note_trouble(error)
            return None

    # -- what comes ----------------------------------------------------------------------------------------------------

    def _followed_on(self, most: int) -> list[Record]:
        if self.previous or self._is_gone:
            return self._told()
        follower = self._follower
        if follower is not None and follower.error is not None:
            self._note_trouble(follower.error)
        if follower is None or (follower.is_over and follower.is_empty and not self.is_ended()):
            self._follow()
        return (self._noted(self._new(self._follower.take(most))) if self._follower else []) + self._told()

    def _follow(self) -> None:
        """Ask for what comes, now and then: a container may not have begun yet, and connections end."""
        if time.monotonic() < self._next_try:
            return
        self._next_try = time.monotonic() + LOOK_SECONDS
        if not _followed.acquire(blocking=False):
            self._note_trouble(TooManyRequests(said("%(most)s logs are being followed already", most=MOST_FOLLOWED)))
            return
        self._skip = self._seen
        self._follower = _Follower(self.open, self._asked({"follow": "true"}), self._records())

    def _new(self, records: list[Record]) -> list[Record]:
        """Without those that were read before this connection."""
        if self._skip < 0:
            return records
        for index, record in enumerate(records):
            if record.at == self._last and self._skip > 0:
                self._skip -= 1
            elif record.at >= self._last:
                self._skip = -1
                return records[index:]
        return []

    # -- both ----------------------------------------------------------------------------------------------------------

    def _records(self) -> Records:
        return Records(Mask(self.secrets) if self.secrets else None)

    def _asked(self, parameters: dict[str, str]) -> dict[str, str]:
        since = {"sinceTime": f"{self._last[:19]}Z"} if self._last else {}
        return {"timestamps": "true", **({"previous": "true"} if self.previous else {}), **since, **parameters}

    def _noted(self, records: list[Record]) -> list[Record]:
        for record in records:
            self._seen = self._seen + 1 if record.at == self._last else 1
            self._last = record.at
        return records

    def _note_trouble(self, error: ApiError) -> None:
        """A line about what is wrong, once; that a container has not begun yet, or the pod is gone, is nothing wrong."""
        if isinstance(error, NotFound):
            self._is_gone = True
        elif not (isinstance(error, BadRequest) and _EARLY.search(error.message)) and error.message != self._said:
            self._said = error.message
            if text := self.troubles.line(self.node, error):
                self._troubles.append(Record(instant(time.time()), "e", True, text.encode()))

    def _told(self) -> list[Record]:
        found, self._troubles = self._troubles, []
        return found


_EARLY = re.compile("is waiting to start|previous terminated container|is not available")


class _Read:
    """One answer that is read to its end; None instead of one has nothing."""

    def __init__(self, connection: Connection | None, records: Records) -> None:
        self._connection, self._records = connection, records
        self._chunks: Iterator[bytes] | None = connection.chunks() if connection is not None else None

    def next(self, most: int) -> list[Record]:
        """About so many bytes of records; none at the end."""
        found: list[Record] = []
        size = 0
        while self._chunks is not None and size < most:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._chunks = None
                found += self._records.end()
            else:
                size += len(chunk)
                found += self._records.feed(chunk)
        return found

    def close(self) -> None:
        self._chunks = None
        if self._connection is not None:
            self._connection.close()


_NOTHING = _Read(None, Records())


class _Follower:
    """A thread that reads what comes, until the log ends or the reader goes."""

    def __init__(self, open: Open, asked: dict[str, str], records: Records) -> None:
        self.error: ApiError | None = None
        self.is_over = False
        self._records = records
        self._connection: Connection | None = None
        self._found: deque[Record] = deque()
        self._bytes = 0
        self._room = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, args=(open, asked), name="log", daemon=True).start()

    @property
    def is_empty(self) -> bool:
        """Whether all that came was taken."""
        return not self._found

    def take(self, most: int) -> list[Record]:
        """What came, about so many bytes of it."""
        found: list[Record] = []
        with self._room:
            size = 0
            while self._found and size < most:
                found.append(self._found.popleft())
                size += len(found[-1].text) + 64
            self._bytes -= size
            self._room.notify_all()
        return found

    def close(self) -> None:
        """Break off; the thread ends by itself."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        if self._connection is not None:
            self._connection.close()

    def _run(self, open: Open, asked: dict[str, str]) -> None:
        try:
            self._connection = open(asked)
            if self._closed:
                self._connection.close()
                return
            for chunk in self._connection.chunks():
                if not self._put(self._records.feed(chunk)):
                    return
            self._put(self._records.end())
        except ApiError as error:
            self.error = error
        finally:
            self.is_over = True
            _followed.release()

    def _put(self, records: list[Record]) -> bool:
        with self._room:
            while self._bytes > HELD_BYTES and not self._closed:
                self._room.wait()
            self._found.extend(records)
            self._bytes += sum(len(record.text) + 64 for record in records)
            return not self._closed


def secret_names(pod: dict[str, Any]) -> set[str]:
    """The Secrets whose values a pod's containers are given."""
    spec = pod.get("spec") or {}
    found: set[str] = set()
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for entry in container.get("envFrom") or ():
            found.add(str((entry.get("secretRef") or {}).get("name") or ""))
        for entry in container.get("env") or ():
            found.add(str(((entry.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name") or ""))
    for volume in spec.get("volumes") or ():
        found.add(str((volume.get("secret") or {}).get("secretName") or ""))
        for source in (volume.get("projected") or {}).get("sources") or ():
            found.add(str((source.get("secret") or {}).get("name") or ""))
    return found - {""}
