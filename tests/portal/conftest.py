"""Fixtures of the portal's tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client
from django.utils import translation

from cluster.access import policy
from portal.asgi import application
from portal.live.hub import hub
from portal.live.publisher import publisher
from tests.portal.pages import signed_in

PASSWORD = "sesame open"


@pytest.fixture(autouse=True)
def _fast_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _fresh_policy():
    policy.cache_clear()
    yield
    policy.cache_clear()


@pytest.fixture(autouse=True)
def _in_english():
    """Whatever language a page was asked for in the test before."""
    translation.activate("en")


@pytest.fixture
def make_user(db) -> Callable[..., Any]:
    """A user by name; `staff=True` for a cluster admin."""

    def make(name: str = "ada", staff: bool = False) -> Any:
        return get_user_model().objects.create_user(name, password=PASSWORD, is_staff=staff)

    return make


@pytest.fixture
def ada(make_user: Callable[..., Any], client: Client) -> Any:
    """A person without rank, signed in with the test client."""
    user = make_user("ada")
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return user


@pytest.fixture
def staff(make_user: Callable[..., Any]) -> Client:
    """The client of an administrator."""
    return signed_in(make_user("root-of-all", staff=True))


@pytest.fixture
def member(make_user: Callable[..., Any]) -> Client:
    """The client of a person without rank."""
    return signed_in(make_user("mia"))


class Page(ApplicationCommunicator):
    """A browser page's live connection (channels' own communicator wants daphne)."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        scope = {"type": "websocket", "path": "/ws/live/", "query_string": b"", "headers": headers, "subprotocols": []}
        super().__init__(application, scope)

    async def connect(self) -> bool:
        await self.send_input({"type": "websocket.connect"})
        return (await self.receive_output(15))["type"] == "websocket.accept"

    async def disconnect(self) -> None:
        if not self.future.done():
            await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(15)

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def ask(self, op: str = "subscribe", **message: Any) -> None:
        await self.say(json.dumps({"op": op} | message))

    async def hear(self, topic: str = "", timeout: float = 15) -> dict[str, Any]:
        """The next message, or the next of a topic."""
        while True:
            sent = await self.receive_output(timeout)
            assert sent["type"] == "websocket.send", sent
            message = json.loads(sent["text"])
            if not topic or message.get("topic") == topic:
                return message


@pytest.fixture
async def open_page(transactional_db) -> AsyncIterator[Callable[..., Any]]:
    """Opens pages: `await open_page(user)`; the publisher and the hub live as long as the test."""
    publisher.attach(asyncio.get_running_loop())
    pages: list[Page] = []

    async def open_it(user: Any = None, origin: str = "http://localhost", token: str = "") -> Page:
        """A page of a user; or, with a token, a program, which says no origin."""
        headers = [(b"host", b"localhost")]
        headers.append((b"authorization", f"Token {token}".encode()) if token else (b"origin", origin.encode()))
        if user is not None:
            headers.append((b"cookie", await _session(user)))
        page = Page(headers)
        pages.append(page)
        return page

    yield open_it
    for page in pages:
        await page.disconnect()
    publisher.attach(None)
    await hub().stop()
    await database_sync_to_async(connections.close_all)()


@database_sync_to_async
def _session(user: Any) -> bytes:
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode()
