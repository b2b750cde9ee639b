"""The end of a run, in time whatever hangs.

What matters is in the database before anybody sees it, so ending a process that hangs loses nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection
from types import FrameType

LONGEST = 8.0
"""Seconds from the signal to the end of the process."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Ending:
    """Begins with the first signal; later ones change nothing.

    `tell` is called at once and must not block; `slow` names what is still at work when time is up.
    """

    def __init__(self) -> None:
        self.tell: Callable[[], None] = lambda: None
        self.slow: Callable[[], Collection[str]] = lambda: ()
        self.begun = False
        self._said = threading.Lock()

    def listen(self) -> None:
        """Take the signals: the first one raises KeyboardInterrupt in the main thread, unless a server takes it."""
        for number in SIGNALS:
            signal.signal(number, self._interrupt)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.begin():
            raise KeyboardInterrupt

    def begin(self) -> bool:
        """The end was asked for; whether this was the first time."""
        if self.begun:
            return False
        self.begun = True
        self.tell()
        watch = threading.Timer(LONGEST, self._time_is_up)
        watch.daemon = True
        watch.start()
        return True

    def has_last_word(self) -> bool:
        """Whether the caller is the first to say that it stopped."""
        return self._said.acquire(blocking=False)

    def _time_is_up(self) -> None:
        """In a thread of its own: the main thread waits for what does not end. It may hold the streams' locks: past them."""
        if self.has_last_word():
            os.write(2, f"Did not stop in time: {', '.join(self.slow()) or 'the web server'}\n".encode())
            os.write(1, b"Stopped.\n")
        os._exit(0)
