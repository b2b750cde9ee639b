"""Many requests at once, through the client's asyncio flavour: an event loop in a thread of its own.

A write costs about 0.3 ms of processor time so, and 0.7 in a thread that blocks; TLS included.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent import futures
from typing import Any

from cluster.errors import ApiError, Unanswered, Unavailable
from cluster.kubernetes.answers import taken
from cluster.kubernetes.pace import MOST_PAUSES
from cluster.kubernetes.transport import CONNECT_SECONDS, Request, Transport
from cluster.port import Obj

log = logging.getLogger(__name__)

Landed = Obj | ApiError
"""What became of a request: its object, or why there is none."""


class Flights:
    """At most `at_once` requests under way over all batches together, which take turns; safe from any thread."""

    def __init__(self, transport: Transport, at_once: int) -> None:
        self._transport, self._at_once = transport, at_once
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._closed = False

    def run(self, requests: Sequence[Request]) -> list[Landed]:
        """Make all requests; what became of each, in order. Blocks until the last is answered."""
        if not requests:
            return []
        try:
            loop = self._started()
            return asyncio.run_coroutine_threadsafe(self._all(requests), loop).result()
        except (
            futures.CancelledError,
            asyncio.CancelledError,
            RuntimeError,
        ) as error:  # closed under way: what was sent is not known
            log.debug("a batch of %d requests was broken off: %s", len(requests), error)
            return [Unanswered("the client was closed") for _ in requests]

    def warm(self) -> None:
        """Load what the first request would have to wait for. Does not block."""
        asyncio.run_coroutine_threadsafe(self._open(), self._started())

    def close(self) -> None:
        """Break off what is under way, and end the thread."""
        with self._lock:
            self._closed, loop, self._loop = True, self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(self._end, loop)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("closed")
            if self._loop is None or self._process != os.getpid():  # a fork has no threads of its parent's
                self._process = os.getpid()
                self._loop = _new_loop()
                self._room = asyncio.Semaphore(self._at_once)
                self._session: Any = None
                threading.Thread(target=self._serve, args=(self._loop,), name="cluster-writes", daemon=True).start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            if self._session is not None:
                loop.run_until_complete(self._session.close())
        finally:
            loop.close()

    @staticmethod
    def _end(loop: asyncio.AbstractEventLoop) -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_soon(loop.stop)

    async def _open(self) -> None:
        if self._session is None:
            self._session, self._more = _session(self._transport)

    async def _all(self, requests: Sequence[Request]) -> list[Landed]:
        await self._open()
        landed: list[Landed] = [Unanswered("not made")] * len(requests)
        todo = iter(enumerate(requests))
        crew = (self._work(todo, landed) for _ in range(min(self._at_once, len(requests))))
        await asyncio.gather(*crew)
        return landed

    async def _work(self, todo: Iterator[tuple[int, Request]], landed: list[Landed]) -> None:
        for number, request in todo:
            async with self._room:
                try:
                    landed[number] = await self._one(request)
                except ApiError as error:
                    landed[number] = error

    async def _one(self, request: Request) -> Obj:
        transport = self._transport
        for tried in itertools.count():
            if request.writes:
                if (turn := transport.pace.reserve()) > 0:
                    await asyncio.sleep(turn)
                transport.guard()
            status, after, said = await self._send(request)
            transport.heard(request.method, status)
            pause = transport.pause(status, after, said, tried)
            if pause is None or tried >= MOST_PAUSES:
                break
            await asyncio.sleep(pause)
        return taken(status, said)

    async def _send(self, request: Request) -> tuple[int, str | None, bytes]:
        import aiohttp
        from yarl import URL

        url, headers, data = self._transport.encoded(request)
        try:
            async with self._session.request(
                request.method, URL(url, encoded=True), data=data, headers=headers, allow_redirects=False, **self._more
            ) as answer:
                return answer.status, answer.headers.get("Retry-After"), await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._transport.heard(request.method, 0)
            unsent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
            unclear = request.writes and not isinstance(error, unsent)
            said = f"the cluster does not answer: {error or type(error).__name__}"
            raise (Unanswered if unclear else Unavailable)(said) from None


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not on every system
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _session(transport: Transport) -> tuple[Any, dict[str, Any]]:
    """Connections as the client's asyncio flavour makes them from the same configuration, and what each request says besides."""
    import aiohttp
    from kubernetes.aio.client import Configuration
    from kubernetes.aio.client.rest import RESTClientObject
    from kubernetes.client.rest import should_bypass_proxies

    known = transport.configuration
    fresh = Configuration()
    for name in ("host", "ssl_ca_cert", "ca_cert_data", "cert_file", "key_file", "verify_ssl", "disable_strict_ssl_verification",
                 "tls_server_name", "connection_pool_maxsize"):  # fmt: skip
        if hasattr(known, name) and hasattr(fresh, name):
            setattr(fresh, name, getattr(known, name))
    fresh.client_session_kwargs = {"trust_env": False, "auto_decompress": True}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=transport.answer_seconds)
    more: dict[str, Any] = {"timeout": timeout, **({"server_hostname": known.tls_server_name} if known.tls_server_name else {})}
    if known.proxy and not should_bypass_proxies(known.host, known.no_proxy or ""):
        more |= {"proxy": known.proxy, **({"proxy_headers": known.proxy_headers} if known.proxy_headers else {})}
    return RESTClientObject(fresh)._create_pool_manager(), more
