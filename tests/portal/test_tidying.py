"""What is deleted because it is out of date, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from axes.models import AccessFailureLog, AccessLog
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management import call_command
from knox.models import AuthToken

from cluster.models import Event, IdempotentRequest
from portal import tidying

pytestmark = pytest.mark.django_db
NOW = datetime(2030, 5, 1, 3, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def event(uid: str, seen: datetime) -> Event:
    return Event.objects.create(
        uid=uid, name=uid, resource_version=1, created_at=seen, about_kind="Pod", about_name="p", about_uid="u",
        reason="Scheduled", first_seen=seen, last_seen=seen,
    )  # fmt: skip


def test_what_ran_out_goes_and_what_counts_stays() -> None:
    user = get_user_model().objects.create_user("ann")
    for name, age in (("old", 1), ("new", -1)):
        Session.objects.create(session_key=name, session_data="", expire_date=NOW - age * DAY)
        token = AuthToken.objects.create(user=user)[0]
        AuthToken.objects.filter(pk=token.pk).update(expiry=NOW - age * DAY)
    AuthToken.objects.create(user=user, expiry=None)
    for model, days in ((AccessLog, 91), (AccessLog, 89), (AccessFailureLog, 91)):
        model.objects.create(username=f"{days}", path_info="/")
        model.objects.filter(username=f"{days}").update(attempt_time=NOW - days * DAY)
    event("old", NOW - 91 * DAY)
    event("new", NOW - 89 * DAY)
    IdempotentRequest.objects.create(user="ann", key="k", fingerprint="f", at=NOW - 2 * DAY)
    done = tidying.tidy(NOW)
    assert done == {
        "sessions": 1, "tokens": 1, "sign-ins": 1, "refused sign-ins": 1, "attempts": 0, "events": 1, "answers": 1,
    }  # fmt: skip
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]
    assert AuthToken.objects.count() == 2
    assert list(AccessLog.objects.values_list("username", flat=True)) == ["89"]
    assert list(Event.objects.values_list("uid", flat=True)) == ["new"]
    assert sum(tidying.tidy(NOW).values()) == 0


def test_many_rows_go_in_parts_and_an_end_is_heard_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidying, "A_PART", 2)
    for number in range(5):
        event(f"e{number}", NOW - 200 * DAY)
    heard = iter([False] * 6 + [True] * 9)  # five tables before the events, then one part
    assert tidying.tidy(NOW, lambda: next(heard))["events"] == 2
    assert tidying.tidy(NOW)["events"] == 3


def test_the_command_says_what_it_did(settings: Any) -> None:
    settings.BASALT_EVENTS_KEEP_DAYS = 1
    event("old", datetime.now(UTC) - 3 * DAY)
    said = StringIO()
    call_command("tidy", stdout=said)
    assert "events: 1 deleted\n" in said.getvalue()
