"""A running Basalt, and a signed-in user with a configuration of his own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import basalt
from tests.e2e.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests of the command line that this process runs; its time runs sixty times faster."""
    running = Server(tmp_path_factory.mktemp("basalt"), "--speed", "60")
    running.start()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration but what a test makes, and none of this machine's environment."""
    for name in ("SERVER", "TOKEN", "CONTEXT", "CONFIG", "CA"):
        monkeypatch.delenv(f"BASALT_{name}", raising=False)
    for name in ("VOLCANO_DEFAULT_IMAGE", "VOLCANO_DEFAULT_JOB_NAMESPACE", "VOLCANO_SCHEDULER_NAME", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def token(server: Server) -> str:
    """A token of the first user (sign-ins are throttled, so one serves all tests)."""
    return server.client().headers["Authorization"].removeprefix("Token ")


@pytest.fixture
def signed_in(server: Server, token: str) -> Server:
    """The server, with a context for it."""
    basalt("login", server.url, "--token-stdin", stdin=f"{token}\n")
    return server
