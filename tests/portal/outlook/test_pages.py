"""How starts move, on pages and in REST: with a draft, another priority, many at once, a queue's change; asked again while it is
worked out, and by nobody else."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.test import Client

from cluster import runtime
from jobs.models import Job
from portal.outlook import desk as desks
from portal.outlook import questions, shown
from portal.outlook.desk import Desk
from portal.outlook.questions import Move, Outlook, Question, Span
from portal.unblock.line import Position
from tests.portal.unblock.world import Stage, manifest

pytestmark = pytest.mark.django_db(databases="__all__")
MODEL = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions are answered in the thread that asks: a test's database is one connection's."""

    def ask(self: Desk, question: Question, wait: float = 0.0, who: Any = None) -> Outlook:
        if self._known(question) is None:
            self._keep(question, questions.answer(desks.current(), question, futures=3, pause=0))
        return self._answers[question.key]

    monkeypatch.setattr(Desk, "ask", ask)
    monkeypatch.setattr(shown, "desk", Desk())


@pytest.fixture
def client(make_user: Any) -> Client:
    found = Client()
    found.force_login(make_user("ann", staff=True), MODEL)
    return found


def draft(**more: Any) -> str:
    return yaml.safe_dump(manifest("draft", 1, cpu=4, gpu=8, **more))


def test_a_dry_run_says_rank_and_start_in_rest(stage: Stage, client: Client) -> None:
    said = client.post("/api/v1/jobs/dry-run", draft(), content_type="application/yaml").json()
    start = said["start"]
    assert (said["starts"], start["state"], start["futures"]) == (False, "done", 3)
    assert start["position"] == {"queue": {"rank": 3, "of": 3}, "all": {"rank": 3, "of": 3}}
    (mine,) = start["jobs"]
    assert mine["before"] is None
    assert start["at"] < mine["after"]["p50"] <= mine["after"]["p90"]
    assert (start["delayed"], start["delayed_total"], start["sooner_total"]) == ([], 0, 0)


def test_a_dry_run_says_rank_and_start_on_the_page(stage: Stage, client: Client) -> None:
    page = client.post("/submit/dry-run/", {"yaml": draft(), "text": draft(), "draft": draft()}).content.decode()
    assert "It would wait" in page
    assert "Place 3 of 3 in default, 3 of 3 in the cluster." in page
    assert re.search(r'data-outlook="done".*≈ <time', page, re.S)


def test_another_priority_says_how_starts_move(stage: Stage, client: Client) -> None:
    job = Job.objects.get(name="third")
    said = client.get(f"/api/v1/jobs/{job.uid}/priority?class=high").json()["start"]
    (mine,) = said["jobs"]
    assert (mine["job"], mine["uid"]) == ("default/third", job.uid)
    assert mine["after"]["p50"] < mine["before"]["p50"]
    assert mine["delay_seconds"] < 0
    assert [(each["job"], each["delay_seconds"] > 0) for each in said["delayed"]] == [("default/second", True)]
    page = client.get(f"/jobs/{job.uid}/priority/?class=high").content.decode()
    assert "1 job is likely to start later for it" in page
    assert re.search(r"\d+ (h \d+ )?min earlier", page)
    assert re.search(r"\d+ (h \d+ )?min later", page)


def test_a_queues_change_says_how_starts_move(stage: Stage, client: Client) -> None:
    change = {"spec": {"capability": {"nvidia.com/gpu": "4"}}}
    said = client.post("/api/v1/queues/default/preview", change, content_type="application/json").json()["start"]
    assert (said["state"], said["jobs"], said["delayed_total"]) == ("done", [], 2)
    assert {each["delay_seconds"] for each in said["delayed"]} == {None}
    assert {each["after"]["p50"] for each in said["delayed"]} == {None}


def test_what_is_worked_out_is_asked_again_by_whom_it_was_given_alone(
    stage: Stage,
    client: Client,
    make_user: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job.objects.get(name="third")
    monkeypatch.setattr(Desk, "ask", lambda self, question, wait=0.0, who=None: Outlook())
    page = client.get(f"/jobs/{job.uid}/priority/?class=high").content.decode()
    assert 'data-outlook="working"' in page
    token = re.search(r'name="question" value="([^"]+)"', page)[1]
    at = runtime.now().timestamp() + 60
    done = Outlook("done", at, [Move("default/none", Span(at + 7200, at + 9000), Span(at + 3540, at + 7200))])
    monkeypatch.setattr(Desk, "ask", lambda self, question, wait=0.0, who=None: done)
    part = client.post("/starts/", {"question": token}, headers={"HX-Request": "true"}).content.decode()
    assert 'data-outlook="done"' in part
    assert "1 h 01 min earlier" in part
    assert "another job" in part  # one that the reader may not see has no name
    other = Client()
    other.force_login(make_user("bob"), MODEL)
    assert other.post("/starts/", {"question": token}).status_code == 400
    assert client.post("/starts/", {"question": token + "x"}).status_code == 400


def test_a_start_that_has_passed_meanwhile_is_at_any_moment() -> None:
    now = runtime.now()
    passed = (now - timedelta(minutes=3)).timestamp()
    found = shown.start(Span(passed, passed), now)
    assert (found.p50, found.p90, found.is_due) == (now, None, True)


def test_places_and_differences_in_words() -> None:
    found = Outlook("done", position=Position(2, 5, 1200, 3400))
    assert shown.place(found, "research") == "Place 2 of 5 in research, 1,200 of 3,400 in the cluster.".replace(",", "\u2009", 0)
    words = [shown.moved(each) for each in (4500.0, -90.0, float("inf"), float("-inf"), 0.0)]
    assert words == ["1 h 15 min later", "1 min earlier", "no longer in sight", "comes into sight", "as before"]
