"""After too many wrong passwords a name is locked for a while, and told so, on both of Django's ways through a request."""

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.test import AsyncClient
from django.urls import reverse

pytestmark = pytest.mark.django_db(transaction=True)
WRONG = {"username": "ivo", "password": "guess"}


def posted(way, client, url):
    """A wrong password sent the way a WSGI server does, or the way an ASGI server does."""
    kind = {"content_type": "application/json"} if "/api/" in url else {}
    return async_to_sync(AsyncClient().post)(url, WRONG, **kind) if way == "asgi" else client.post(url, WRONG, **kind)


@pytest.mark.parametrize("way", ["wsgi", "asgi"])
def test_a_person_gets_a_page(way, client, make_user):
    make_user("ivo")
    answers = [posted(way, client, reverse("login")) for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert [answer.status_code for answer in answers[:-1]] == [200] * (settings.AXES_FAILURE_LIMIT - 1)
    assert answers[-1].status_code == 429
    assert answers[-1]["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("way", ["wsgi", "asgi"])
def test_a_program_gets_a_problem(way, client, make_user):
    make_user("ivo")
    answers = [posted(way, client, "/api/v1/auth/login") for _ in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[0].status_code == 401
    assert (answers[-1].status_code, answers[-1]["Content-Type"]) == (429, "application/problem+json")
    assert answers[-1]["Retry-After"] == "900"
