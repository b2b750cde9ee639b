"""The WebSocket of one page: thin; what is sent, and when, is the hub's."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer

from cluster.access import policy
from portal.live.hub import hub
from portal.live.sessions import who
from portal.live.topics import LONGEST, is_name

SIGNED_OUT = 4401
WRONG = 4400
CHECK = 15.0
"""Seconds between two looks at whether the session or token still holds."""
QUEUE = 32
"""Messages that wait for a slow browser before it is dropped to snapshots."""
TOPICS = 16
SHOWN = 500
MISTAKES = 20


class LiveConsumer(AsyncWebsocketConsumer):
    """Takes `subscribe`, `unsubscribe` and `ping`; sends what its topics say. Nobody signed in: closed with 4401."""

    channel_layer_alias = ""  # no channel of its own: the hub hears for all

    async def connect(self) -> None:
        self.user: Any = None
        self.rights = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._topics: set[str] = set()
        self._behind: set[str] = set()
        self._queue: asyncio.Queue[str] = asyncio.Queue(QUEUE)
        self._mistakes = 0
        await self.accept()
        self._who = who(self.scope)
        self._hub = hub()
        self.user, self.rights = await self._look()
        if self.user is None:
            await self.close(SIGNED_OUT)
            return
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._watch_session())]

    async def disconnect(self, code: int) -> None:
        for task in self._tasks:
            task.cancel()
        if self.user is not None:
            self._hub.leave(self)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.user is None:
            return
        try:
            message = orjson.loads(text_data or bytes_data or b"")
        except orjson.JSONDecodeError:
            message = None
        match message:
            case {"op": "ping"}:
                await self.send(text_data='{"type":"pong"}')
            case {"op": "subscribe" | "unsubscribe", "topic": str(topic)} if not is_name(topic):
                await self._wrong("", f"a topic's name has at most {LONGEST} characters and no NUL")
            case {"op": "subscribe", "uids": list(uids)} if any(isinstance(uid, str) and not is_name(uid) for uid in uids):
                await self._wrong(str(message.get("topic", "")), f"a uid has at most {LONGEST} characters and no NUL")
            case {"op": "subscribe", "topic": str(topic)} if wanted := _wanted(message):
                await self._subscribe(topic, *wanted)
            case {"op": "unsubscribe", "topic": str(topic)}:
                self._topics.discard(topic)
                self._hub.unsubscribe(self, topic)
            case _:
                await self._wrong("", 'send {"op": "subscribe" | "unsubscribe", "topic": …, "uids": […], "seq": number | null}')

    async def _subscribe(self, topic: str, shown: list[str] | None, seq: int | None) -> None:
        if topic not in self._topics and len(self._topics) >= TOPICS:
            await self._wrong(topic, f"a page has at most {TOPICS} topics")
            return
        refusal = await self._hub.subscribe(self, topic, shown, seq)
        if refusal:
            await self._wrong(topic, refusal)
        else:
            self._topics.add(topic)

    async def _wrong(self, topic: str, detail: str) -> None:
        self._mistakes += 1
        await self.send(text_data=orjson.dumps({"topic": topic[:64], "type": "error", "detail": detail}).decode())
        if self._mistakes >= MISTAKES:
            await self.close(WRONG)

    def offer(self, topic: str, text: str) -> None:
        """Queue a message; a browser that does not keep up loses what waits, and gets snapshots when it has caught up."""
        if topic in self._behind:
            return
        try:
            self._queue.put_nowait(text)
        except asyncio.QueueFull:
            while not self._queue.empty():
                self._queue.get_nowait()
            self._behind = set(self._topics)
            self._queue.put_nowait("")

    async def _write(self) -> None:
        while True:
            text = await self._queue.get()
            if text:
                await self.send(text_data=text)
            if self._behind and self._queue.empty():
                behind, self._behind = self._behind, set()
                for topic in behind:
                    await self._hub.refresh(self, topic)

    async def _look(self) -> tuple[Any, str]:
        """Who this is now, and with which rights; None when session or token has ended."""

        def look() -> tuple[Any, str]:
            user = self._who()
            return user, policy().rights(user) if user is not None else ""

        return await self._hub.run(look)

    async def _watch_session(self) -> None:
        while True:
            await asyncio.sleep(CHECK)
            user, rights = await self._look()
            if user is None:
                await self.close(SIGNED_OUT)
                return
            is_other, self.user, self.rights = rights != self.rights, user, rights
            for topic in await self._hub.recheck(self):
                self._topics.discard(topic)
                await self._wrong(topic, "you may not see this any more")
            for topic in list(self._topics) if is_other else ():  # what is shown may be too much by now, or too little
                await self._hub.refresh(self, topic)


def _wanted(message: dict[str, Any]) -> tuple[list[str] | None, int | None] | None:
    """The rows and the number that a subscription names, or None when they are not what they should be."""
    shown, seq = message.get("uids"), message.get("seq")
    fits = shown is None or (isinstance(shown, list) and len(shown) <= SHOWN and all(isinstance(uid, str) for uid in shown))
    counts = seq is None or (isinstance(seq, int) and not isinstance(seq, bool))
    return (shown, seq) if fits and counts else None
