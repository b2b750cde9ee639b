"""The hub: one a process, between the channel layer and the process's sockets.

All of it runs in the server's event loop, save the loading of rows, which has threads of its own. A topic is loaded at most
once in its interval, for all sockets together, once for each set of rights.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import structlog
from channels.layers import get_channel_layer
from django.db import close_old_connections, connection

from cluster.access import policy
from portal.live import topics
from portal.live.feed import Feed, Socket, Subscription
from portal.live.publisher import GROUP

log = structlog.get_logger(__name__)
T = TypeVar("T")

WORKERS = 4
REJOIN = 60.0
"""Seconds after which the hub tells the channel layer again that it is there (a group forgets its members in time)."""


class Hub:
    """Feeds by topic, and the loop that hears notices. It begins with its first socket."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._flushing: set[str] = set()
        self._listener: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        self._numbers: dict[str, int] = {}
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="live")

    @property
    def is_heard(self) -> bool:
        """Whether any page listens."""
        return bool(self._feeds)

    async def run(self, work: Callable[[], T]) -> T:
        """Do database work in one of the hub's threads."""

        def clean() -> T:
            close_old_connections()
            try:
                return work()
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._pool, clean)

    async def subscribe(self, socket: Socket, name: str, shown: Collection[str] | None, seq: int | None) -> str:
        """Add a socket to a topic and answer it; the reason when it is refused, else the empty string.

        `shown` are the rows that the page shows (None: all), `seq` is the last number it saw before it lost its connection.
        """
        await self._listen()
        feed = self._feeds.get(name)
        topic = feed.topic if feed else topics.make(name)
        if topic is None:
            return "no such topic: there are " + topics.NAMES
        if not policy().may(socket.user, topic.action):
            return "you may not see this"
        if feed is None:
            feed = self._feeds.setdefault(name, Feed(name, topic))
        feed.subscriptions[socket] = Subscription(frozenset(shown or ()))
        await self._answer(feed, socket, None if shown is None else frozenset(shown), seq)
        return ""

    async def _answer(self, feed: Feed, socket: Socket, shown: frozenset[str] | None, seq: int | None) -> None:
        base, missed = feed.seq, feed.missed(seq)
        kind, asked = ("snapshot", shown) if missed is None else ("delta", missed)
        load = feed.topic.load
        answer = await self.run(lambda: load(socket.user, asked))
        feed.answer(socket, kind, base, asked, answer)

    async def refresh(self, socket: Socket, name: str) -> None:
        """A snapshot for a socket that fell behind."""
        if (feed := self._feeds.get(name)) and (subscription := feed.subscriptions.get(socket)):
            subscription.ready = False
            await self._answer(feed, socket, subscription.shown or None, None)

    def unsubscribe(self, socket: Socket, name: str) -> None:
        """Forget a subscription; the last one ends the feed."""
        if feed := self._feeds.get(name):
            feed.subscriptions.pop(socket, None)
            if not feed.subscriptions:
                del self._feeds[name]

    def recheck(self, socket: Socket) -> list[str]:
        """Take away the topics that the socket's user may not see any more; their names."""
        lost = [
            name
            for name, feed in self._feeds.items()
            if socket in feed.subscriptions and not policy().may(socket.user, feed.topic.action)
        ]
        for name in lost:
            self.unsubscribe(socket, name)
        return lost

    def leave(self, socket: Socket) -> None:
        """Forget a socket."""
        for name in list(self._feeds):
            self.unsubscribe(socket, name)

    async def _listen(self) -> None:
        """Hear notices before the first answer is loaded, so that nothing falls between the two."""
        if self._listener is None or self._listener.done():
            self._heard = asyncio.Event()
            self._listener = asyncio.create_task(self._hear())
        await self._heard.wait()

    async def _hear(self) -> None:
        pause = 0.1
        while True:
            try:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(GROUP, channel)
                self._heard.set()
                pause = 0.1
                await self._hear_on(layer, channel)
            except Exception as error:  # noqa: BLE001 - whatever a layer raises, the hub comes back
                log.warning("the channel layer does not answer", error=str(error), again_in=pause)
                self._heard.set()
                await asyncio.sleep(pause)
                pause = min(pause * 2, 10.0)
                self._lost()

    async def _hear_on(self, layer: Any, channel: str) -> None:
        receiving = asyncio.ensure_future(layer.receive(channel))
        try:
            while True:
                done, _ = await asyncio.wait({receiving}, timeout=REJOIN)
                if done:
                    self._take(receiving.result())
                    receiving = asyncio.ensure_future(layer.receive(channel))
                else:
                    await layer.group_add(GROUP, channel)
        finally:
            receiving.cancel()  # and waited for: the layer counts who receives
            await asyncio.gather(receiving, return_exceptions=True)

    def _take(self, notice: dict[str, Any]) -> None:
        publisher, number = notice["publisher"], notice["number"]
        if self._numbers.get(publisher, number - 1) != number - 1:
            self._lost()
        self._numbers[publisher] = number
        for topic, uids in notice["topics"].items():
            for feed in list(self._feeds.values()):
                if feed.note(topic, uids):
                    self._flush_soon(feed)

    def _lost(self) -> None:
        """Notices went missing: whatever is shown may be out of date."""
        for feed in self._feeds.values():
            feed.everything = True
            self._flush_soon(feed)

    def _flush_soon(self, feed: Feed) -> None:
        if feed.name not in self._flushing:
            self._flushing.add(feed.name)
            self._spawn(self._flush(feed))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush(self, feed: Feed) -> None:
        """Send what is pending, then rest for the interval; again while there is more."""
        try:
            while feed.pending or feed.everything:
                if not feed.subscriptions:
                    break
                await self._flush_once(feed)
                await asyncio.sleep(feed.topic.interval)
        finally:
            self._flushing.discard(feed.name)

    async def _flush_once(self, feed: Feed) -> None:
        uids = feed.take()
        seq = feed.seq
        for sockets in _by_rights(feed.subscriptions):
            user = sockets[0].user
            try:
                if uids is None:
                    for socket in sockets:
                        await self.refresh(socket, feed.name)
                    continue
                answer = await self.run(lambda user=user: feed.topic.delta(user, uids))  # type: ignore[misc]
            except Exception:
                log.exception("a live topic could not be loaded", topic=feed.name)
                feed.everything = True
                await asyncio.sleep(1.0)
                continue
            feed.send_delta([s for s in sockets if s in feed.subscriptions], seq, uids, answer)

    async def stop(self) -> None:
        """End its tasks and threads (the server is going down, or a test is over)."""
        tasks = [*self._tasks, *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._feeds.clear()
        together = threading.Barrier(WORKERS)

        def close() -> None:
            together.wait(5)
            connection.close()

        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(self._pool, close) for _ in range(WORKERS)))
        self._pool.shutdown(wait=False)


def _by_rights(subscriptions: Collection[Socket]) -> list[list[Socket]]:
    groups: defaultdict[str, list[Socket]] = defaultdict(list)
    for socket in subscriptions:
        groups[policy().rights(socket.user)].append(socket)
    return list(groups.values())


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]
