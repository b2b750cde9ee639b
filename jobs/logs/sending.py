"""A log as it goes over the wire: plain text as kubectl prints it, or JSON by lines for pages; once, or followed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import orjson
from asgiref.sync import sync_to_async
from django.db import connections
from django.http import StreamingHttpResponse

from cluster.errors import TooManyRequests
from cluster.said import said
from jobs.logs.asked import Asked
from jobs.logs.reading import Line, Reading
from jobs.logs.sources import Source

T = TypeVar("T")
POLL, LOOK, QUIET = 0.3, 2.0, 15.0
"""Seconds between two looks for lines, for new pods and rights, and between two signs of life."""
MOST_FOLLOWERS = 64

_followers = threading.Semaphore(MOST_FOLLOWERS)


class Text:
    """Lines as text; with more than one container, each says whose it is."""

    def __init__(self, asked: Asked, *, many: bool) -> None:
        self._asked, self._many = asked, many
        self._open = ""

    def begin(self, sources: list[Source]) -> bytes:
        return b""

    def lines(self, found: list[Line]) -> bytes:
        out = []
        for source, record in found:
            if self._open != source.key:
                if self._open:
                    out.append("\n")
                if self._many:
                    out.append(f"[{source.pod} {source.container}] ")
                if self._asked.stamps:
                    out.append(f"{record.at} ")
            out.append(record.text.decode(errors="replace"))
            if record.full:
                out.append("\n")
            self._open = "" if record.full else source.key
        return "".join(out).encode()

    def quiet(self) -> bytes:
        return b""

    def end(self, reason: str) -> bytes:
        rest, self._open = (b"\n" if self._open else b""), ""
        return rest


class Json:
    """One JSON value a line: `{"sources": […]}`, `{"lines": [[source, instant, stream, full, text]…]}`, `{"end": why}`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def begin(self, sources: list[Source]) -> bytes:
        rows = []
        for source in sources:
            self._numbers[source.key] = number = len(self._numbers)
            rows.append(
                {
                    "id": number,
                    "pod": source.pod,
                    "task": source.task,
                    "index": source.index,
                    "container": source.container,
                    "attempt": source.attempt,
                    "cut": source.stream.is_cut(),
                }
            )
        return orjson.dumps({"sources": rows}) + b"\n" if rows else b""

    def lines(self, found: list[Line]) -> bytes:
        rows = [[self._numbers[s.key], r.at, r.stream, r.full, r.shown()] for s, r in found]
        return orjson.dumps({"lines": rows}) + b"\n" if rows else b""

    def quiet(self) -> bytes:
        return b"{}\n"

    def end(self, reason: str) -> bytes:
        return orjson.dumps({"end": reason}) + b"\n"


class Followed(StreamingHttpResponse):
    """An answer that goes on. Only so many at a time: raises TooManyRequests when made beyond that; closing it makes room."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not _followers.acquire(blocking=False):
            raise TooManyRequests(
                said(
                    "%(most)s logs are being followed already: try again later, or read without follow",
                    most=MOST_FOLLOWERS,
                )
            )
        self._holds = True
        super().__init__(*args, **kwargs)

    def close(self) -> None:
        """Also when the reader went away."""
        super().close()
        if self._holds:
            self._holds = False
            _followers.release()


async def send(
    asked: Asked, form: Text | Json, look: Callable[[], list[Source]], still: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The body of an answer. `look` finds the sources, asked again while following; `still` says whether the reader may go on."""
    async with aclosing(_body(asked, form, look, still)) as body:
        async for piece in _limited(body, asked.limit):
            yield piece


async def _body(
    asked: Asked, form: Text | Json, look: Callable[[], list[Source]], still: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """What is there now, and what comes then."""
    reading = Reading(asked)
    try:
        yield form.begin(reading.add(await _run(look)))
        pieces = reading.begin()
        while (piece := await _run(lambda: next(pieces, None))) is not None:
            yield form.lines(piece)
        if not asked.follow:
            yield form.end("read")
            return
        async for said in _follow(reading, form, look, still):
            yield said
    finally:
        reading.close()


async def _follow(
    reading: Reading, form: Text | Json, look: Callable[[], list[Source]], still: Callable[[], bool]
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    looked = spoke = loop.time()
    while True:
        found = await _run(reading.more)
        if found:
            spoke = loop.time()
            yield form.lines(found)
        if loop.time() - looked >= LOOK or (reading.is_over and not found):
            if not await _run(still):
                yield form.end("refused")
                return
            new = reading.add(await _run(look))
            if new:
                yield form.begin(new)
            elif reading.is_over and not found:
                yield form.end("over")
                return
            looked = loop.time()
        if loop.time() - spoke >= QUIET:
            spoke = loop.time()
            yield form.quiet()
        await asyncio.sleep(POLL)


async def _limited(pieces: AsyncIterator[bytes], limit: int | None) -> AsyncIterator[bytes]:
    """At most so many bytes, cut between characters."""
    left = limit
    async for piece in pieces:
        if left is None:
            if piece:
                yield piece
            continue
        cut = piece if len(piece) <= left else piece[:left].decode(errors="ignore").encode()
        left -= len(cut)
        if cut:
            yield cut
        if len(cut) < len(piece) or left <= 0:
            return


async def _run(function: Callable[[], T]) -> T:
    """Do in the request's own thread what reads files and the database."""

    def work() -> T:
        try:
            return function()
        finally:
            for connection in connections.all(initialized_only=True):
                if not connection.in_atomic_block:
                    connection.close_if_unusable_or_obsolete()

    return await sync_to_async(work)()
