"""Reading pages as people do: signed in, and for their words."""

from __future__ import annotations

import html
import re
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpResponse, StreamingHttpResponse
from django.test import Client


def signed_in(user: Any) -> Client:
    """A client with the session of a user."""
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def text(answer: HttpResponse) -> str:
    """A page's words without its tags."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode())))


def streamed(answer: StreamingHttpResponse) -> str:
    """The whole of a file that is sent piece by piece, without the mark that it is UTF-8."""

    async def whole() -> bytes:
        return b"".join([part async for part in answer])

    return async_to_sync(whole)().decode("utf-8-sig")
