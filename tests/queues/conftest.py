"""Fixtures of the tests of queues."""

from __future__ import annotations

import pytest

from tests.jobs.world import World


@pytest.fixture
def world() -> World:
    """A fresh world with the built-in queues."""
    return World()
