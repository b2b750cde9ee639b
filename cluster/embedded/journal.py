"""The order of things: changes are committed to the table first, then shown to watchers, in one line for all kinds.

Writers add changes under the store's lock and wait, without it, until these are settled. Whoever comes first commits
for all that wait by then (group commit), so a crash leaves a prefix and a slow disk costs one transaction, not one a
writer. The line of settled changes is kept for a bounded stretch; each watch reads along it at its own pace.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from cluster.embedded.memory import Change, Memory
from cluster.errors import Unavailable
from cluster.kinds import Kind
from cluster.said import said

T = TypeVar("T")


class Table(Protocol):
    """Where settled changes are kept beyond this process."""

    def write(self, changes: Sequence[Change], version: int) -> None:
        """Keep all of these changes, or raise and keep none; `version` is never to be used again."""
        ...


class Listener(Protocol):
    """A watch, as the journal sees it."""

    kinds: frozenset[Kind]

    def wake(self) -> None:
        """Something of these kinds was settled. Must not block."""
        ...


class Journal:
    """Pending and settled changes over one memory. `history` bounds how many settled ones are kept."""

    def __init__(self, memory: Memory, table: Table | None, *, history: int = 20_000) -> None:
        self.lock = threading.RLock()
        self.version = 0
        self._memory = memory
        self._table = table
        self._history = history
        self._commit_lock = threading.Lock()
        self._pending: list[Change] = []
        self._added = 0  # changes ever added
        self._settled = 0  # of these, the first so many are committed or failed
        self._failures: deque[tuple[int, int, Exception]] = deque(maxlen=1000)
        self._line: list[Change] = []
        self._line_start = 0  # position in the line of its first kept change
        self._forgotten = 0  # resourceVersion of the last change that was dropped from the line
        self._listeners: tuple[Listener, ...] = ()

    # --- writing ---

    def start_at(self, version: int) -> None:
        """Count on from what the table held."""
        self.version = self._forgotten = version

    def next_version(self) -> str:
        """A resourceVersion that was never used (lock held)."""
        self.version += 1
        return str(self.version)

    def add(self, change: Change) -> None:
        """Take a change into memory and into the line of those to settle (lock held)."""
        if change.type == "DELETED":
            self._memory.remove(change.kind, change.obj)
        else:
            self._memory.put(change.kind, change.obj)
        self._pending.append(change)
        self._added += 1

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Changes added inside are one step: all of them or, when it raises, none. Ends when they are settled."""
        with self.lock:
            mark = len(self._pending)
            try:
                yield
            except BaseException:
                self._take_back(mark)
                raise
            ticket = self._added
            changed = len(self._pending) > mark
        if changed:
            self._settle(ticket)

    def _take_back(self, mark: int) -> None:
        """Undo pending changes from `mark` on, newest first (lock held)."""
        while len(self._pending) > mark:
            self._memory.undo(self._pending.pop())
            self._added -= 1

    def _settle(self, ticket: int) -> None:
        """Wait until the first `ticket` changes are settled, and settle them oneself when nobody does."""
        with self._commit_lock:
            batch = self._commit() if self._settled < ticket else []
            failure = next((error for low, high, error in self._failures if low < ticket <= high), None)
        self._wake(batch)
        if failure is not None:
            raise Unavailable(said("the write could not be kept: the store's database failed")) from failure

    def _commit(self) -> list[Change]:
        """Commit what is pending and put it into the line (commit lock held)."""
        with self.lock:
            batch, self._pending = self._pending, []
            upto, version = self._added, self.version
        if self._table is not None and batch:
            try:
                self._table.write(batch, version)
            except Exception as error:  # noqa: BLE001 - whatever the database raised, its writers are told
                self._fail(batch, error)
                return []
        with self.lock:
            self._line.extend(batch)
            self._settled = upto
            self._forget()
        return batch

    def _fail(self, batch: list[Change], error: Exception) -> None:
        """The table refused: take back this batch and all that was built upon it."""
        with self.lock:
            self._failures.append((self._settled, self._added, error))
            self._settled = self._added
            for change in reversed(batch + self._pending):
                self._memory.undo(change)
            self._pending.clear()

    def _forget(self) -> None:
        excess = len(self._line) - self._history
        if excess > self._history // 4:
            self._forgotten = self._line[excess - 1].version
            del self._line[:excess]
            self._line_start += excess

    # --- reading ---

    def listen(self, listener: Listener) -> None:
        """Wake this listener from now on."""
        with self.lock:
            self._listeners = (*self._listeners, listener)

    def leave(self, listener: Listener) -> None:
        """Wake it no more."""
        with self.lock:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _wake(self, batch: Iterable[Change]) -> None:
        kinds = {change.kind for change in batch}
        for listener in self._listeners:
            if not listener.kinds.isdisjoint(kinds):
                listener.wake()

    def has_expired(self, version: int) -> bool:
        """Whether changes after this resourceVersion are partly forgotten (lock held)."""
        return version < self._forgotten

    def position_after(self, version: int) -> int | None:
        """The position of the first settled change after a resourceVersion; None when changes since then are partly forgotten,
        or when there never was such a version: it is of another store."""
        with self.lock:
            if version < self._forgotten or version > self.version:
                return None
            return self._line_start + bisect_right(self._line, version, key=lambda change: change.version)

    def since(self, position: int, most: int) -> tuple[list[Change], int] | None:
        """Up to `most` settled changes from a position of the line, and the next position; None when it is forgotten."""
        with self.lock:
            start = position - self._line_start
            if start < 0:
                return None
            found = self._line[start : start + most]
            return found, position + len(found)

    def settled_state(self, read: Callable[[], T]) -> tuple[T, int]:
        """What `read` sees when nothing is pending, and the line's position at that moment."""
        with self._commit_lock, self.lock:
            batch = self._commit() if self._pending else []
            found = read(), self._line_start + len(self._line)
        self._wake(batch)
        return found
