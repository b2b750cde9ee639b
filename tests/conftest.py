"""Fixtures that every room's tests share."""

from pathlib import Path

import pytest


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real manifests, traces and topologies beside the project; tests that need it skip without it."""
    if not (SHARED / "data").is_dir():
        pytest.skip("no folder of shared data beside the project")
    return SHARED
