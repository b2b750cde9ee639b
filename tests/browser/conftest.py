"""A server of our own (pages and live channel) on a free port, and Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Page

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from jobs.models import Job, Task
from portal.live.hub import hub
from tests import factories as make
from tests import fleet_rows
from tests.portal.site import make_world

NODE_MODULES = Path(__file__).resolve().parents[2] / "node_modules"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the browser."""
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session", autouse=True)
def _chromium_and_packages() -> None:
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium on this machine")
    if not (NODE_MODULES / "@tabler").is_dir():
        pytest.skip("npm ci was not run")


@pytest.fixture(scope="session", autouse=True)
def _orm_beside_playwright() -> Iterator[None]:
    """Playwright's loop runs in the test's thread; Django would take the ORM there for a mistake."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    yield
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return browser_context_args | {"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", "timezone_id": "UTC"}


class Server:
    """uvicorn in a thread; it can be stopped and started again on the same port."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        from portal.asgi import application

        config = uvicorn.Config(application, host="127.0.0.1", port=self.port, log_level="error", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.02)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


@pytest.fixture
def server(transactional_db: None, settings: Any) -> Iterator[Server]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    running = Server()
    yield running
    running.stop()
    assert hub() is not None


@pytest.fixture
def fleet(server: Server) -> Iterator[EmbeddedCluster]:
    """The demo fleet with work on it."""
    cluster = fleet_rows.demo_cluster()
    runtime.use(cluster)
    fleet_rows.occupy()
    fleet_rows.shares(steps=30)
    yield cluster
    runtime.use(None)


@pytest.fixture
def sign_in(server: Server, page: Page) -> Callable[..., Any]:
    """Gives the page the session of a new user."""

    def sign(name: str = "lena", staff: bool = True) -> Any:
        user = get_user_model().objects.create_user(name, password="sesame open", is_staff=staff)
        client = Client()
        client.force_login(user, "django.contrib.auth.backends.ModelBackend")
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": server.url}])
        return user

    return sign


@pytest.fixture
def world(server: Server) -> Iterator[dict[str, Any]]:
    """One of each kind, and a cluster at work around it."""

    def user(name: str, staff: bool = False) -> Any:
        return get_user_model().objects.create_user(name, is_staff=staff)

    yield make_world(user)
    runtime.use(None)


def at_work() -> Job:
    """A fleet, jobs of all kinds, and one that waits with all that its page can show."""
    make.fleet()
    job = make.job("gang", verdict=make.verdict(), replicas=8)
    make.save([*make.many_jobs(40), job], make.pods(job, 8, phase="Pending"), [make.event(job, "Held", "why")])
    Task.objects.create(job=job, name="worker", position=0, replicas=8)
    return job


@pytest.fixture(autouse=True)
def _no_script_errors(page: Page) -> Iterator[None]:
    """A page whose scripts fail, or that breaks its own content policy, fails the test."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if "Content Security Policy" in m.text else None)
    yield
    assert errors == []
