"""Fixtures that every room's tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real manifests, traces and topologies beside the project; tests that need it skip without it."""
    path = Path(__file__).resolve().parents[2] / "shared"
    if not (path / "data").is_dir():
        pytest.skip("no folder of shared data beside the project")
    return path
