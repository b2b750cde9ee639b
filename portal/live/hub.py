"""The hub: one a process, between the channel layer and the process's sockets.

All of it runs in the server's event loop, save the loading of rows, which has threads of its own. A topic is loaded at most
once in its interval, for all sockets together, once for each set of rights.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import orjson
import structlog
from channels.layers import get_channel_layer
from django.db import connection, connections

from cluster.access import policy
from cluster.away import Away
from cluster.patience import Patience
from portal.live import topics
from portal.live.answers import Uids
from portal.live.feed import Feed, Socket, Subscription
from portal.live.publisher import GROUP

log = structlog.get_logger(__name__)
T = TypeVar("T")

WORKERS = 4
KEEP_CONNECTION = 60.0
"""Seconds for which a thread keeps a connection to the database."""
SHARED_SECONDS = 1.0
"""For which an answer is given to others who ask the same, as long as nothing is sent in between."""
TURNS = 3
"""Turns of the loop in which its sockets take and send what they were given."""
REJOIN = 60.0
"""Seconds after which the hub tells the channel layer again that it is there (a group forgets its members in time)."""


class Hub:
    """Feeds by topic, and the loop that hears notices. It begins with its first socket."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self._answers: dict[tuple[Any, ...], asyncio.Future[str]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._flushing: set[str] = set()
        self._listener: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        self._numbers: dict[str, int] = {}
        self._kept = _Kept()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="live")

    @property
    def is_heard(self) -> bool:
        """Whether any page listens."""
        return bool(self._feeds)

    @property
    def sockets(self) -> int:
        """Pages that listen to anything."""
        return len({socket for feed in list(self._feeds.values()) for socket in list(feed.subscriptions)})

    @property
    def topics(self) -> int:
        """Topics that pages listen to."""
        return len(self._feeds)

    async def run(self, work: Callable[[], T]) -> T:
        """Do database work in one of the hub's threads."""

        def clean() -> T:
            self._kept.renew()
            return work()

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
        user, action = socket.user, topic.action
        if not await self.run(lambda: policy().may(user, action)):
            return "you may not see this"
        feed = self._feeds.get(name)
        if feed is None:
            feed = self._feeds.setdefault(name, Feed(name, topic))
        feed.subscriptions[socket] = Subscription(frozenset(shown or ()))
        await self._answer(feed, socket, None if shown is None else frozenset(shown), seq)
        return ""

    async def _answer(self, feed: Feed, socket: Socket, shown: frozenset[str] | None, seq: int | None) -> None:
        rights = socket.rights
        texts = feed.again(rights, seq)
        if texts is not None:
            feed.answer(socket, feed.base(rights), *texts)
            return
        base, (kind, asked, more) = feed.base(rights), feed.asked(shown, seq)
        key = (feed, base, socket.user.pk if feed.topic.is_personal else rights, kind, asked, more)
        if key not in self._answers:
            self._answers[key] = self._spawn(self._encoded(feed, socket.user, base, kind, asked, more))
            asyncio.get_running_loop().call_later(SHARED_SECONDS, self._answers.pop, key, None)
        feed.answer(socket, base, await asyncio.shield(self._answers[key]))

    async def _encoded(self, feed: Feed, user: Any, base: int, kind: str, asked: Uids, more: int) -> str:
        """An answer to a subscription. It is as good for whoever subscribes until the next delta: that brings what came since."""

        def load() -> str:
            message = feed.message(kind, base, asked, feed.topic.load(user, asked))
            return orjson.dumps(message | {"more": more} if more else message).decode()

        return await self.run(load)

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

    async def recheck(self, socket: Socket) -> list[str]:
        """Take away the topics that the socket's user may not see any more; their names."""
        user = socket.user
        wanted = {name: feed.topic.action for name, feed in self._feeds.items() if socket in feed.subscriptions}
        lost = await self.run(lambda: [name for name, action in wanted.items() if not policy().may(user, action)])
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
        patience, away = Patience(0.1, 10.0), Away("live pages hear nothing, for the channel layer does not answer")
        while True:
            try:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(GROUP, channel)
                self._heard.set()
                patience.reset()
                away.answered()
                await self._hear_on(layer, channel)
            except Exception as error:  # noqa: BLE001 - whatever a layer raises, the hub comes back
                away.failed(error)
                self._heard.set()
                await asyncio.sleep(patience.next())
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
            await _ended({receiving})  # the layer counts who receives

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

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _flush(self, feed: Feed) -> None:
        """Send what is pending, then rest for the interval; again while there is more."""
        try:
            while feed.pending or feed.everything:
                if not feed.subscriptions:
                    break
                began = time.monotonic()
                await self._flush_once(feed)
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                # Who has much to do rests as long as that took: with very many pages, deltas become fewer and larger.
                await asyncio.sleep(max(feed.topic.interval, time.monotonic() - began))
        finally:
            self._flushing.discard(feed.name)

    async def _flush_once(self, feed: Feed) -> None:
        uids = feed.take()
        groups = _by_rights(feed.subscriptions)
        feed.unsent = set(groups)
        for rights, sockets in groups.items():
            try:
                if uids is None and not feed.topic.is_list:
                    feed.unsent.discard(rights)
                    for socket in sockets:
                        await self.refresh(socket, feed.name)
                else:
                    await self._send_delta(feed, rights, sockets[0].user, uids)
            except Exception:
                log.exception("a live topic could not be loaded", topic=feed.name)
                feed.everything = True
                await asyncio.sleep(1.0)
            finally:
                feed.unsent.discard(rights)

    async def _send_delta(self, feed: Feed, rights: str, user: Any, uids: Uids) -> None:
        """Load once what changed and send it to all with these rights, also to who came meanwhile."""
        everybody = _by_rights(feed.subscriptions).get(rights, [])
        asked = uids if uids is not None else frozenset[str]().union(*(feed.subscriptions[s].shown for s in everybody))
        answer = await self.run(lambda: feed.topic.delta(user, asked))
        everybody = _by_rights(feed.subscriptions).get(rights, [])
        feed.send_delta(rights, everybody, asked, answer, all_lists=uids is None)

    async def stop(self) -> None:
        """End its tasks and threads (the server is going down, or a test is over)."""
        tasks = [*self._tasks, *([self._listener] if self._listener else [])]
        await _ended(set(tasks))
        self._feeds.clear()
        together = threading.Barrier(WORKERS)

        def close() -> None:
            together.wait(5)
            connection.close()

        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(self._pool, close) for _ in range(WORKERS)))
        self._pool.shutdown(wait=False)


async def _ended(tasks: set[asyncio.Future[Any]]) -> None:
    """Cancel tasks until they have ended: a cancellation that meets the end of a library's own wait is swallowed by it."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=1.0)


class _Kept(threading.local):
    """This thread's connections to databases, with when they were opened."""

    def __init__(self) -> None:
        self.since: dict[str, tuple[Any, float]] = {}

    def renew(self) -> None:
        """Close those that failed or are old. The others stay open, unlike those of requests: sockets ask often."""
        for opened in connections.all(initialized_only=True):
            if opened.connection is None:
                continue
            held, since = self.since.get(opened.alias, (None, 0.0))
            if held is not opened.connection:
                self.since[opened.alias] = opened.connection, time.monotonic()
            elif opened.errors_occurred or time.monotonic() - since > KEEP_CONNECTION:
                opened.close()


def _by_rights(subscriptions: Collection[Socket]) -> dict[str, list[Socket]]:
    groups: defaultdict[str, list[Socket]] = defaultdict(list)
    for socket in subscriptions:
        groups[socket.rights].append(socket)
    return groups


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running loop."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]
