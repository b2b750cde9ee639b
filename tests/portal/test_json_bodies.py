"""Bodies of requests that are no manifests: whatever a program sends is an answer of 400, never a failure."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

DOORS = ("/api/v1/drains", "/api/v1/bulk-operations", "/api/v1/auth/login")


@pytest.fixture
def boss(make_user):
    client = Client()
    client.force_login(make_user("boss", staff=True), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "body",
    [
        b"{", b"\xff\xfe", b"[" * 50_000 + b"]" * 50_000, b'{"a": "\\ud800"}', b'{"\\ud800": 1}', b'{"a": "\\u0000"}',
        b'{"a": 1, "a": 2}', b"{} {}", b"NaN", b'{"a": 1e999}',
    ],
    ids=lambda body: body[:20].decode(errors="replace"),
)  # fmt: skip
def test_what_is_no_json_or_holds_what_nobody_can_keep_is_refused(boss, door, body):
    answer = boss.post(door, body, "application/json", headers={"Authorization": "Basic eDp5"} if "login" in door else {})
    assert answer.status_code in (400, 401), answer.content
    assert answer.json()["detail"]
    if "login" not in door:
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
