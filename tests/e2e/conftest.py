"""Fixtures of the whole product."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One running Basalt for the tests of a module, in time that runs sixty times faster."""
    running = Server(tmp_path_factory.mktemp("basalt"), "--speed", "60")
    running.start()
    yield running
    running.stop()


@pytest.fixture
def fresh_data(tmp_path: Path) -> Path:
    """An empty data folder."""
    return tmp_path
