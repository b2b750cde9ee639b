"""Fixtures of the tests of jobs."""

from __future__ import annotations

import pytest

from tests.jobs.world import World


@pytest.fixture
def world() -> World:
    """A fresh world with four nodes and the built-in queues."""
    return World()
