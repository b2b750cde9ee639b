"""A small world for the tests of plugins."""

import pytest

from tests.jobs.world import World


@pytest.fixture
def world():
    return World()
