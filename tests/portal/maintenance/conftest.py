"""What the tests of drains share."""

import pytest

from tests.portal.maintenance.world import Site


@pytest.fixture
def boss(make_user):
    return make_user("boss", staff=True)


@pytest.fixture
def site(db):
    made = Site()
    yield made
    made.close()
