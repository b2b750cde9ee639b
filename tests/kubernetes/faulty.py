"""A proxy before the real server, through which requests go wrong as a test says: refused, cut off, slow, answered otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import orjson
from aiohttp import web

from cluster.kubernetes import KubernetesCluster, connect
from testbed.server import TOKEN, ApiServer

Lines = AsyncIterator[bytes]


@dataclass
class Fault:
    """What happens to the next `times` requests of a method to a path that has `part` in it, and `query` in its query.

    First `first` is called and `seconds` go by; then the connection is closed (`cut`, before or after the server was asked), or
    `status` is answered, or the server's answer goes through `body`, or its stream through `lines`.
    """

    method: str
    part: str
    times: int
    status: int = 0
    reason: str = ""
    first: Callable[[], Any] | None = None
    query: str = ""
    seconds: float = 0.0
    cut: Literal["", "before", "after"] = ""
    body: Callable[[bytes], bytes] | None = None
    lines: Callable[[Lines], Lines] | None = None


class Faulty:
    """Faults in the order in which they were put. `dead`: every write is refused. `seen` counts requests that were passed on."""

    def __init__(self, server: ApiServer) -> None:
        self._server, self._lock = server, threading.Lock()
        self._loop = asyncio.new_event_loop()
        self.faults: list[Fault] = []
        self.met = 0
        self.dead = False
        self.allowed: str | None = None
        """The only token that is let in; None: whatever the server says."""
        self.seen: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.url = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def put(self, fault: Fault) -> None:
        """One more."""
        with self._lock:
            self.faults.append(fault)

    def stop(self) -> None:
        """End, and break what is open."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = self._loop.run_until_complete(self._start())
        self._loop.run_forever()
        self._loop.run_until_complete(self._session.close())
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _start(self) -> web.AppRunner:
        trust = ssl.create_default_context(cafile=str(self._server.authority))
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None), read_bufsize=2**21)
        runner = web.AppRunner(_application(self._handle), shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        return runner

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()  # what was sent is passed on, also when the client waits no longer
        bearer = request.headers.get("Authorization", "").partition(" ")[2]
        self.tokens[bearer] += 1
        if self.allowed not in (None, bearer):
            return _refused(401, "Unauthorized")
        if self.dead and request.method != "GET":
            return _refused(503, "ServiceUnavailable")
        fault = self._find(request)
        if fault is None:
            return await self._passed(request, None)
        if fault.first is not None:
            await asyncio.to_thread(fault.first)
        await asyncio.sleep(fault.seconds)
        if fault.cut == "before":
            return _cut(request)
        if fault.status:
            return _refused(fault.status, fault.reason)
        return await self._passed(request, fault)

    async def _passed(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        body = await request.read()
        heads = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "content-length", "accept-encoding")}
        if self.allowed is not None:
            heads["Authorization"] = f"Bearer {TOKEN}"
        self.seen[f"{request.method} {request.path}"] += 1
        async with self._session.request(request.method, self._server.url + request.path_qs, data=body, headers=heads) as answer:
            if fault is not None and fault.cut == "after":
                await answer.read()
                return _cut(request)
            kept = {k: v for k, v in answer.headers.items() if k.lower() in ("content-type", "retry-after")}
            if "watch=" not in request.query_string:
                said = await answer.read()
                return web.Response(status=answer.status, headers=kept, body=fault.body(said) if fault and fault.body else said)
            stream = web.StreamResponse(status=answer.status, headers=kept)
            await stream.prepare(request)
            lines: Lines = answer.content.__aiter__()
            async for line in fault.lines(lines) if fault and fault.lines else lines:
                await stream.write(line)
            return stream

    def _find(self, request: web.Request) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                fits = fault.method == request.method and fault.part in request.path and fault.query in request.query_string
                if fault.times and fits:
                    fault.times -= 1
                    self.met += 1
                    return fault
        return None


def _application(handle: Any) -> web.Application:
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", handle)
    return application


def _cut(request: web.Request) -> web.Response:
    """Close the connection without a word."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def _refused(status: int, reason: str) -> web.Response:
    said = {"kind": "Status", "reason": reason, "message": "a fault of the tests", "code": status}
    heads = {"Retry-After": "1"} if status == 429 else {}
    return web.Response(status=status, body=orjson.dumps(said), headers=heads, content_type="application/json")


@contextlib.contextmanager
def faulty(server: ApiServer, **options: Any) -> Iterator[tuple[KubernetesCluster, Faulty]]:
    """A client of the server, and what makes it fail."""
    proxy = Faulty(server)
    cluster = connect(proxy.url, TOKEN, **options)
    try:
        yield cluster, proxy
    finally:
        cluster.close()
        proxy.stop()


async def swallowed(lines: Lines) -> Lines:
    """A stream whose lines are all lost on the way."""
    async for _ in lines:
        pass
    return
    yield b""
