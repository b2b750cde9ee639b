"""The ASGI application: one request is one verb of the port, in a thread; a watch is a stream of lines.

Nobody gets in without a bearer token, so there are no cookies and nothing to forge.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from cluster.disclosure import shown
from cluster.embedded.http.answers import failure, status
from cluster.embedded.http.discovery import document
from cluster.embedded.http.gate import Gate
from cluster.embedded.http.paths import Target, target
from cluster.embedded.http.table import as_table, is_wanted
from cluster.embedded.http.verbs import Body, answer
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import ApiError, BadRequest, Expired, Forbidden, Unavailable
from cluster.port import Obj

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Show = Callable[[Obj], Obj]

BOOKMARK_SECONDS = 10.0
LONGEST_WATCH = 1800.0
LONGEST_BODY = 3 * 2**20

log = logging.getLogger(__name__)


class Unauthorized(Exception):
    """No token, or none that is known."""


def _path(scope: Scope) -> str:
    """The path below the root, which may hold a token: it goes into no log."""
    return str(scope["path"][len(scope.get("root_path", "")) :])


def whole(obj: Obj) -> Obj:
    """The object as it is."""
    return obj


class KubernetesApi:
    """Serves whatever cluster `current` returns below the path that the scope's root path names."""

    def __init__(self, current: Callable[[], Any], gate: Gate) -> None:
        self._current, self._gate = current, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Whatever goes wrong is answered with a Status."""
        try:
            await self._serve(scope, receive, send)
        except asyncio.CancelledError:
            return  # the server stops
        except Unauthorized:
            await _reply(send, 401, status("Failure", "Unauthorized: send a bearer token of the portal", "Unauthorized", 401))
        except ApiError as error:
            await _reply(send, error.status, failure(error))
        except Exception:
            log.exception("a request to the Kubernetes API failed: %s %s", scope["method"], _path(scope))
            await _reply(send, 500, status("Failure", "the server failed; its log says why", "InternalError", 500))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _path(scope)
        user = await self._user(scope)
        if scope["method"] == "GET" and (found := document(path, scope.get("root_path", ""))) is not None:
            await _reply(send, 200, found)
            return
        cluster = self._current()
        if not isinstance(cluster, EmbeddedCluster):
            raise Unavailable("this process has no embedded cluster to serve")
        wanted = target(path)
        query = {key: values[-1] for key, values in parse_qs(scope.get("query_string", b"").decode("latin-1")).items()}
        if scope["method"] == "GET" and not await asyncio.to_thread(self._gate.may_read, user, wanted.kind, wanted.part):
            raise Forbidden(f"{user} may not read {wanted.kind}" + (f"/{wanted.part}" if wanted.part else ""))
        show: Show = whole if await asyncio.to_thread(self._gate.sees_all, user) else shown
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        tabled = scope["method"] == "GET" and is_wanted(headers.get(b"accept", ""))

        def table(objects: list[Obj], meta: Obj) -> Obj:
            return as_table(
                wanted.kind, [show(obj) for obj in objects], cluster.clock.now(), meta, query.get("includeObject", "")
            )

        if scope["method"] == "GET" and query.get("watch") in ("1", "true"):
            each = (lambda obj: table([obj], {"resourceVersion": obj["metadata"]["resourceVersion"]})) if tabled else show
            await self._watch(cluster, wanted, query, each, receive, send)
            return
        body = Body(await _read(receive), headers.get(b"content-type", ""))
        code, said = await asyncio.to_thread(answer, cluster, self._gate, user, scope["method"], wanted, query, body)
        if isinstance(said, str):
            await _reply_text(send, said)
        elif tabled:
            await _reply(send, code, table(said.get("items", [said]), said["metadata"] if "items" in said else {}))
        elif "items" in said:
            await _reply(send, code, {**said, "items": [show(obj) for obj in said["items"]]})
        else:
            await _reply(send, code, show(said) if "metadata" in said and said.get("kind") != "Status" else said)

    async def _user(self, scope: Scope) -> Any:
        kind, _, token = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1").partition(" ")
        user = await asyncio.to_thread(self._gate.user, token.strip()) if kind.lower() == "bearer" and token else None
        if user is None:
            raise Unauthorized
        return user

    async def _watch(
        self, cluster: EmbeddedCluster, wanted: Target, query: dict[str, str], show: Show, receive: Receive, send: Send
    ) -> None:
        fields = query.get("fieldSelector", "")
        if wanted.name:
            fields = f"metadata.name={wanted.name}"
        lines = _lines(cluster, wanted, query, fields, show)
        first = await anext(lines)  # what is refused at once is no stream
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": first, "more_body": True})
        pouring, gone = asyncio.ensure_future(_pour(lines, send)), asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({pouring, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pouring, gone):
                task.cancel()
            outcome, _ = await asyncio.gather(pouring, gone, return_exceptions=True)
            await lines.aclose()
        if isinstance(outcome, Exception):  # it is too late for a Status: the stream ends, and whoever reads begins again
            log.error("a watch of %s failed", wanted.kind, exc_info=outcome)
        with contextlib.suppress(Exception):  # the reader may be gone
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _pour(lines: AsyncGenerator[bytes, None], send: Send) -> None:
    async for line in lines:
        await send({"type": "http.response.body", "body": line, "more_body": True})


async def _lines(
    cluster: EmbeddedCluster, wanted: Target, query: dict[str, str], fields: str, show: Show
) -> AsyncGenerator[bytes, None]:
    """Events as JSON lines: what is there when no version is given, then what changes. The first may be empty."""
    kind, namespace, labels = wanted.kind, wanted.namespace, query.get("labelSelector", "")
    start = query.get("resourceVersion", "")
    first: list[bytes] = []
    if start in ("", "0"):
        page = await asyncio.to_thread(cluster.list, kind, namespace, labels=labels, fields=fields)
        first, start = [_line("ADDED", show(obj)) for obj in page.items], page.resource_version
    if not (start.isdecimal() and len(start) < 19):
        raise BadRequest(f"resourceVersion={start!r} is no version of this cluster")
    tail = cluster.tail(kind, int(start), namespace=namespace, labels=labels, fields=fields)
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and its watches with it
            loop.call_soon_threadsafe(news.set)

    leave = cluster.on_change([kind], wake)
    end = loop.time() + min(_seconds(query.get("timeoutSeconds")), LONGEST_WATCH)
    try:
        yield b"".join(first)
        while loop.time() < end:
            news.clear()
            try:
                events = await asyncio.to_thread(tail.read)
            except Expired as error:
                yield orjson.dumps({"type": "ERROR", "object": failure(error)}) + b"\n"
                return
            if events:
                yield b"".join(_line(event, show(obj)) for event, obj in events)
            elif not tail.is_behind:
                try:
                    await asyncio.wait_for(news.wait(), min(BOOKMARK_SECONDS, max(end - loop.time(), 0.01)))
                except TimeoutError:
                    if query.get("allowWatchBookmarks") not in ("1", "true"):
                        continue
                    meta = {"resourceVersion": str(tail.version)}
                    yield _line("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})
    finally:
        leave()


def _line(event: str, obj: Obj) -> bytes:
    return orjson.dumps({"type": event, "object": obj}) + b"\n"


def _seconds(text: str | None) -> float:
    if not text:
        return LONGEST_WATCH
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(f"timeoutSeconds={text!r} is no whole number")
    return float(text) or LONGEST_WATCH


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the request ended before its body did")
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > LONGEST_BODY:
            raise BadRequest(f"a body has at most {LONGEST_BODY:,} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


async def _reply(send: Send, code: int, obj: Obj) -> None:
    body = orjson.dumps(obj)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if code == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _reply_text(send: Send, text: str) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain; charset=utf-8")]})
    await send({"type": "http.response.body", "body": text.encode()})
