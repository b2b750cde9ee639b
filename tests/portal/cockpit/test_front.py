"""The scheduler's first page in parts: each as the page itself has it, in both languages, as its viewer may see it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from django.http import QueryDict
from django.urls import reverse

from cluster import runtime
from portal.cockpit import front
from portal.cockpit.front import Asked
from scheduler.framework.record import Served
from tests.portal.cockpit.test_cycles import NOW, keep, record
from tests.portal.test_evictions import AT, narrow, two_jobs  # noqa: F401 - fixtures

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(runtime, "now", lambda: NOW)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("2m.action.all.0", Asked()),
        ("24h.plugin.flagged.17", Asked("24h", "plugin", "flagged", 17)),
        ("", None), ("2m", None), ("2m.action.all", None), ("2m.action.all.0.0", None), ("3m.action.all.0", None),
        ("2m.action.all.٣", None), ("2m.action.all.007", None), ("2m.action.all.-1", None), (f"2m.action.all.{'9' * 19}", None),
    ],
)  # fmt: skip
def test_a_topic_is_one_that_a_page_can_have(text, asked):
    assert Asked.named(text) == asked
    if asked is not None:
        assert str(asked) == text
        assert Asked.read(QueryDict(f"{asked.prefix}cycle={asked.cycle}")) == asked


@pytest.mark.parametrize("query", ["", "?by=plugin&window=1h", "?window=24h&evictions=flagged"])
def test_each_part_is_what_the_page_has_there(client, make_user, two_jobs, query):  # noqa: F811
    for number in range(1, 4):
        keep(record(number, AT - 60 + number, milliseconds=10.0 * number))
    client.force_login(user := make_user())
    answer = client.get(reverse("scheduler") + query)
    html = answer.content.decode()
    found = front.parts(user, answer.context["asked"])
    assert tuple(found) == front.PARTS
    for name, row in found.items():
        part = row["html"]["en"].strip()
        assert (row["uid"], part in html) == (name, True), name
    assert f'data-rendered="cockpit:{answer.context["asked"]}"' in html
    assert set(re.findall(r'data-part="(\w+)"', html)) == set(front.PARTS)


def test_parts_are_told_in_both_languages(make_user):
    keep(record(7))
    found = front.parts(make_user(), Asked())
    figures = found["figures"]["html"]
    assert "Cycle 7 10 ms" in words(figures["en"])
    assert "Pods placed" in words(figures["en"])
    assert "Pods placed" not in words(figures["zh-hans"])
    assert words(found["shape"]["html"]["en"]) == words(found["shape"]["html"]["zh-hans"]) == "110"


def test_the_bars_are_those_of_the_range_and_the_slowest_cycle_is_laid_out(make_user):
    for number, spent in ((1, 10.0), (2, 90.0), (3, 20.0)):
        keep(record(number, AT - 60 + number, milliseconds=spent))
    found = front.parts(make_user(), Asked())
    bars = json.loads(re.search(r">(\{.*\})<", found["bars"]["html"]["en"])[1])
    assert bars["numbers"] == [1, 2, 3]
    assert words(found["time"]["html"]["en"]).startswith("Cycle 2 ")
    assert re.findall(r'data-key="\d+"><td><a[^>]*>(\d+)<', found["last"]["html"]["en"]) == ["3", "2", "1"]


def test_without_cycles_there_is_no_chart_and_nothing_is_made_up(make_user):
    found = front.parts(make_user(), Asked())
    assert words(found["shape"]["html"]["en"]) == "000"
    assert words(found["figures"]["html"]["en"]).startswith("Last cycle – no cycle yet P50 / P95 / P99 –")
    assert words(found["state"]["html"]["en"]) in ("no cycle yet", "no cycle for –")


def test_a_cycles_moment_is_an_instant_that_the_reader_can_be_told_in_his_zone(make_user):
    keep(record(7))
    last = front.parts(make_user(), Asked())["last"]["html"]["en"]
    assert f'<time datetime="{datetime.fromtimestamp(AT, UTC).isoformat()}" title=' in last


@pytest.mark.usefixtures("two_jobs", "narrow")
def test_jobs_that_a_viewer_may_not_see_have_no_names_in_parts(make_user):
    keep(record(1, AT + 1, served={"default/theirs-uid-theirs": Served("default", AT, 2)}))
    whole = json.dumps(front.parts(make_user("boss", staff=True), Asked()))
    narrowed = json.dumps(front.parts(make_user("eve"), Asked()))
    assert "theirs" in whole
    assert "theirs" not in narrowed
    assert "mine" in narrowed
