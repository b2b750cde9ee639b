"""Notices of what changed, gathered from any thread and sent to every process's hub.

Threads never touch the channel layer: they hand over to the loop that the publisher is attached to.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from channels.layers import get_channel_layer

from cluster.away import Away

GROUP = "live"
GATHER = 0.1
"""Seconds for which changes are gathered before they are told."""
MANY = 1000
"""From this many uids on, a notice says of a topic only that very much changed."""


class Publisher:
    """One a process. `offer` may be called from any thread; without a loop attached nobody listens and nothing is kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: defaultdict[str, set[str]] = defaultdict(set)
        self._scheduled = False
        self.id = secrets.token_hex(8)
        self.post: Callable[[dict[str, Any]], None] | None = None
        """Also tells processes that the channel layer does not reach; called in a thread."""
        self._number = 0
        self._away = Away("live notices are not sent")
        self._tasks: set[asyncio.Task[None]] = set()

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Send from this loop from now on; None ends it."""
        with self._lock:
            self._loop = loop
            self._pending.clear()
            self._scheduled = False

    def offer(self, topic: str, uids: Collection[str], **_: Any) -> None:
        """Rows of a topic changed (a receiver of `cluster.projection.projected`)."""
        with self._lock:
            loop = self._loop
            if loop is None or loop.is_closed():
                return
            self._pending[topic].update(uids)
            if self._scheduled:
                return
            self._scheduled = True
        loop.call_soon_threadsafe(loop.call_later, GATHER, self._start_sending)

    def _start_sending(self) -> None:
        task = asyncio.get_running_loop().create_task(self._send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, defaultdict(set)
            self._scheduled = False
            self._number += 1
            number = self._number
        topics = {topic: sorted(uids) if len(uids) < MANY else None for topic, uids in pending.items()}
        notice = {"type": "live.notice", "publisher": self.id, "number": number, "topics": topics}
        try:
            await get_channel_layer().group_send(GROUP, notice)
            if self.post is not None:
                await asyncio.to_thread(self.post, notice)
            self._away.answered()
        except Exception as error:  # noqa: BLE001 - hubs see the missing number and load everything again
            self._away.failed(error)


publisher = Publisher()
