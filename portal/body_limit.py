"""What no view has to think of: bodies longer than any view takes are not read, addresses with a NUL character not looked up."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import orjson
from django.core.handlers.asgi import ASGIRequest
from django.utils import translation

from cluster.rest.problems import CONTENT_TYPE, problem
from cluster.said import said, words

LIMIT = 2 * 2**20


class BodyLimit:
    """ASGI middleware: 413 for a body that says it is longer than `LIMIT`; one that does not say is cut off there.

    400 for a NUL character in the address, for which PostgreSQL has no text.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > LIMIT:
            await _refuse(scope, send, 413, said("A body has at most %(most)s bytes.", most=f"{LIMIT:,}"))
            return
        if "\0" in scope.get("path", "") or b"%00" in scope.get("query_string", b""):
            await _refuse(scope, send, 400, said("An address holds no NUL character (%(code)s).", code="%00"))
            return
        read = 0

        async def counted() -> Any:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            return {"type": "http.disconnect"} if read > LIMIT else message

        await self._app(scope, counted, send)


async def _refuse(scope: Any, send: Any, status: int, detail: str) -> None:
    asked = ASGIRequest(scope | {"path": "/", "query_string": b""}, BytesIO())
    with translation.override(translation.get_language_from_request(asked)):
        body = orjson.dumps(problem(status, words(detail)))
    headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
