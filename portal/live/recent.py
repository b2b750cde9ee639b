"""The last deltas of a topic as they were sent: who was away for a moment gets the same again, and nothing is loaded for it."""

from __future__ import annotations

from collections import deque

MESSAGES = 24
BYTES = 16 * 2**20


class Recent:
    """Deltas to pages of equal rights, oldest first; only such as were the same for all of them."""

    def __init__(self) -> None:
        self._texts: deque[tuple[int, str]] = deque()
        self._size = 0

    def add(self, seq: int, text: str) -> None:
        """Keep one, and of the older ones what there is room for."""
        self._texts.append((seq, text))
        self._size += len(text)
        while len(self._texts) > MESSAGES or self._size > BYTES:
            self._size -= len(self._texts.popleft()[1])

    def after(self, seq: int, newest: int) -> list[str] | None:
        """All deltas after `seq` to `newest`; None when one of them is not here."""
        found = [text for number, text in self._texts if seq < number <= newest]
        return found if len(found) == newest - seq else None
