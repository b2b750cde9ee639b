"""One process owns the embedded store: a lock file beside its database, held by flock.

The kernel lets the lock go when its holder dies, however it dies, so a stale file never stands in the way.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType


class StoreLocked(Exception):
    """Another process owns the store; the message says which."""


class OwnerLock:
    """The lock; hold it as a context manager, or by `take` and `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> None:
        """Become the owner. Raises StoreLocked."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise StoreLocked(
                f"the cluster in {self._path.parent} is run by {_who(holder)} already; stop that one first"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid()}).encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Cease to be the owner; the file stays, empty."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def __enter__(self) -> OwnerLock:
        self.take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def _who(holder: bytes) -> str:
    try:
        return f"process {int(json.loads(holder)['pid'])}"
    except (ValueError, KeyError, TypeError):
        return "another process"
