"""What pages were told, so that a delta can leave out what they know."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class Told(Generic[V]):
    """The last value of each name that a delta told to all pages of a topic with equal rights.

    A page that just came was told by a snapshot, which may have seen a value that nobody else has. Such names are doubted:
    the next delta whose rows are read later tells them, even where they are by then as everybody else knows them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, V] = {}
        self._doubted: set[str] = set()

    def saw(self, values: Mapping[str, V]) -> None:
        """A snapshot told somebody these."""
        with self._lock:
            self._doubted.update(name for name, value in values.items() if name in self._known and self._known[name] != value)

    def begin(self) -> frozenset[str]:
        """To be asked before the rows of a delta are read: names that it must tell."""
        with self._lock:
            doubted, self._doubted = frozenset(self._doubted), set()
            return doubted

    def tell(self, values: Mapping[str, V], doubted: Collection[str], asked: Collection[str] = ()) -> dict[str, V | None]:
        """A delta tells these: what was known of each (None: nothing certain). Of `asked`, who is missing is forgotten."""
        with self._lock:
            before = {name: None if name in doubted else self._known.get(name) for name in values}
            for name in asked:
                self._known.pop(name, None)
            self._known.update(values)
            return before
