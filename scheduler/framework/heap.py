"""A heap of things by sort keys that are asked for at the moment of the push."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    """Smallest key first. Keys must differ between members, so that members are never compared themselves."""

    def __init__(self, key: Callable[[T], Any], members: Iterable[T] = ()) -> None:
        self._key = key
        self._entries = [(key(member), member) for member in members]
        heapify(self._entries)

    def push(self, member: T) -> None:
        """Put a member in (again), under the key that it has now."""
        heappush(self._entries, (self._key(member), member))

    def pop(self) -> T:
        """Take the first member out."""
        return heappop(self._entries)[1]

    def first_key(self) -> Any:
        """The key under which the first member was pushed."""
        return self._entries[0][0]

    def drain(self) -> list[T]:
        """Take all members out, in their order."""
        members = [member for _, member in sorted(self._entries)]
        self._entries.clear()
        return members

    def __len__(self) -> int:
        return len(self._entries)
