"""No request body is read beyond what any view takes: the server keeps long ones out before Django spools them to disk."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.problems import CONTENT_TYPE, problem

LIMIT = 2 * 2**20


class BodyLimit:
    """ASGI middleware: 413 for a body that says it is longer than `LIMIT`; one that does not say is cut off there."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > LIMIT:
            await _refuse(send)
            return
        read = 0

        async def counted() -> Any:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            return {"type": "http.disconnect"} if read > LIMIT else message

        await self._app(scope, counted, send)


async def _refuse(send: Any) -> None:
    body = orjson.dumps(problem(413, f"A body has at most {LIMIT:,} bytes."))
    headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
