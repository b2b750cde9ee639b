"""A cluster that does not answer is said on every page and by the probe, with since when; pages go on."""

from __future__ import annotations

import pytest
from django.test import Client

from cluster import runtime
from cluster.errors import Forbidden, Unavailable
from portal.reach import reach
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")


class Away:
    """A cluster whose every verb says the same."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def list(self, *_: object, **__: object) -> None:
        raise self.error


@pytest.fixture(autouse=True)
def _afterwards():
    yield
    runtime.use(None)
    reach.away_since = None


def test_pages_say_since_when_and_show_what_is_known(client: Client, ada):
    make.save([make.job("alpha")])
    runtime.use(Away(Unavailable("no route")))
    reach.look()
    since = reach.away_since
    reach.look()
    assert reach.away_since == since
    html = client.get("/jobs/").content.decode()
    assert "The cluster has not answered since" in html
    assert since.isoformat() in html
    assert "alpha" in html
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["cluster"] == f"does not answer since {since:%Y-%m-%dT%H:%M:%SZ}"


def test_a_refusal_is_an_answer(client: Client, ada):
    runtime.use(Away(Unavailable("no route")))
    reach.look()
    runtime.use(Away(Forbidden("not for you")))
    reach.look()
    assert reach.away_since is None
    assert "has not answered" not in client.get("/jobs/").content.decode()
