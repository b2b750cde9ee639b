"""What people set for themselves, and whose clock their times are shown by."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from jobs.pages.axis import Axis
from portal.models import Preferences
from portal.timezones import offset_of
from tests import factories as make

pytestmark = pytest.mark.django_db(databases="__all__")
ALL = {"theme": "dark", "language": "zh-hans", "time_zone": "Asia/Shanghai", "density": "roomy"}
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "instant", "said"),
    [
        ("UTC", MOMENT, "UTC"),
        ("Asia/Shanghai", MOMENT, "UTC+8"),
        ("Asia/Kolkata", MOMENT, "UTC+5:30"),
        ("America/St_Johns", MOMENT, "UTC−3:30"),
        ("Europe/Berlin", datetime(2026, 3, 29, 0, 59, tzinfo=UTC), "UTC+1"),
        ("Europe/Berlin", datetime(2026, 3, 29, 1, 0, tzinfo=UTC), "UTC+2"),
    ],
)
def test_a_zone_is_said_as_its_distance_from_utc_at_that_instant(zone: str, instant: datetime, said: str):
    assert offset_of(instant.astimezone(ZoneInfo(zone))) == said


def test_all_that_is_set_holds_at_once_and_after_the_next_sign_in_elsewhere(client: Client, make_user):
    make_user("ada")
    client.post(reverse("login"), {"username": "ada", "password": "sesame open"})
    assert client.post(reverse("preferences"), ALL)["Location"] == reverse("preferences")
    for each in (client, elsewhere := Client()):
        if each is elsewhere:
            elsewhere.cookies["tz"] = "America/New_York"
            elsewhere.post(reverse("login"), {"username": "ada", "password": "sesame open"})
        html = each.get(reverse("preferences")).content.decode()
        for said in (
            'lang="zh-hans"',
            'data-bs-theme="dark"',
            'data-zone="Asia/Shanghai"',
            'data-density="roomy"',
            'value="Asia/Shanghai" selected',
        ):
            assert said in html


def test_what_is_no_zone_theme_or_language_is_refused_and_nothing_kept(client: Client, ada):
    answer = client.post(
        reverse("preferences"), {"theme": "pink", "language": "tlh", "time_zone": "../etc/passwd", "density": "x"}
    )
    assert answer.status_code == 422
    assert answer.content.decode().count('aria-invalid="true"') == 4
    assert not Preferences.objects.exists()


def test_the_browsers_zone_counts_until_one_is_chosen_and_the_servers_when_there_is_none(client: Client, ada, settings):
    settings.BASALT_TIME_ZONE = "Asia/Tokyo"
    assert 'data-zone="Asia/Tokyo"' in client.get("/sign-in/", follow=True).content.decode()
    client.cookies["tz"] = "Asia/Kolkata"
    assert 'data-zone="Asia/Kolkata"' in client.get("/").content.decode()
    client.post(reverse("preferences"), ALL | {"language": "en"})
    assert 'data-zone="Asia/Shanghai"' in client.get("/").content.decode()
    client.post(reverse("preferences"), ALL | {"language": "en", "time_zone": "", "theme": ""})
    html = client.get("/").content.decode()
    assert 'data-zone="Asia/Kolkata"' in html
    assert "data-theme-chosen" not in html.split(">", 2)[1]


def test_the_time_that_the_page_tells_is_the_clusters(client: Client, ada, monkeypatch):
    monkeypatch.setattr("portal.preferences.runtime.now", lambda: MOMENT)
    client.post(reverse("preferences"), ALL | {"language": "en"})
    assert "it is 20:00." in client.get(reverse("preferences")).content.decode()


def test_preferences_cost_other_pages_no_query(client: Client, ada):
    client.post(reverse("preferences"), ALL | {"language": "en"})
    with CaptureQueriesContext(connection) as captured:
        assert 'data-zone="Asia/Shanghai"' in client.get("/queues/").content.decode()
    assert not [query["sql"] for query in captured if "preferences" in query["sql"]]


def test_every_stamp_says_its_zone(client: Client, ada):
    make.save([job := make.job("one", created_at=make.now() - timedelta(days=3))])
    client.cookies["tz"] = "Asia/Kolkata"
    html = client.get(reverse("jobs:detail", args=(job.uid,))).content.decode()
    stamps = [stamp for stamp in re.findall(r"<time [^>]*>", html) if "data-since" not in stamp and "data-clock" not in stamp]
    assert stamps
    assert all(re.search(r'title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\+5:30"', stamp) for stamp in stamps)


@pytest.mark.parametrize(
    ("begin", "ticks"),
    [
        # the clocks leave out 02:00, and have it twice
        (datetime(2026, 3, 28, 23, tzinfo=UTC), ["00:00", "01:00", "03:00", "04:00", "05:00", "06:00"]),
        (datetime(2026, 10, 24, 22, tzinfo=UTC), ["00:00", "01:00", "02:00", "03:00", "04:00"]),
    ],
)
def test_a_time_axis_over_a_change_of_the_clocks_has_times_that_there_are(begin: datetime, ticks: list[str]):
    with timezone.override("Europe/Berlin"):
        axis = Axis.__new__(Axis)
        object.__setattr__(axis, "start", begin)
        object.__setattr__(axis, "end", begin + timedelta(hours=5, minutes=20))
        found = axis.ticks()
    assert [text for _, text, _ in found if text.endswith(":00")] == ticks
    assert len({at for _, _, at in found}) == len(found)
    assert all(at.astimezone(UTC).astimezone(ZoneInfo("Europe/Berlin")).strftime("%H:%M") == text for _, text, at in found)
