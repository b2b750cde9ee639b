"""Likely starts in words, for a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from basalt.terminal import starts

NOW = datetime(2030, 1, 1, 12, 0).astimezone()


def at(minutes: int) -> str:
    """An instant so many minutes from now, as the server writes it."""
    return (NOW + timedelta(minutes=minutes)).astimezone(UTC).isoformat()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "not known"),
        ({"p50": None, "p90": None}, "not in sight"),
        ({"p50": at(25), "p90": at(70)}, "12:25 (in 25m) in half of the futures, by 13:10 in nine of ten"),
        ({"p50": at(25), "p90": None}, "12:25 (in 25m) in half of the futures, or much later"),
        ({"p50": at(0), "p90": at(70), "due": True}, "at any moment, by 13:10 in nine of ten futures"),
        ({"p50": at(0), "p90": None, "due": True}, "at any moment"),
        ({"p50": at(1440), "p90": None}, "2030-01-02 12:00 (in 24h) in half of the futures, or much later"),
    ],
)
def test_a_start_in_words(found: dict[str, Any] | None, words: str) -> None:
    assert starts.span(found, NOW) == words


def test_a_draft_has_a_place_a_start_and_those_whom_it_delays() -> None:
    start = {
        "state": "done",
        "position": {"queue": {"rank": 2, "of": 3}, "all": {"rank": 7, "of": 9}},
        "jobs": [{"before": None, "after": {"p50": at(25), "p90": at(70)}}],
        "delayed": [{"job": "default/a", "delay_seconds": 4500}, {"job": "", "delay_seconds": None}],
        "delayed_total": 4,
    }
    assert list(starts.of_draft(start, "nlp", NOW)) == [
        "Place 2 of 3 in queue nlp, 7 of 9 in the cluster.",
        "Likely start: 12:25 (in 25m) in half of the futures, by 13:10 in nine of ten.",
        "Likely to start later for it: 4 jobs",
        "  default/a: 75m later",
        "  another job: no longer in sight",
    ]


@pytest.mark.parametrize(("state", "count"), [("none", 0), ("working", 1), ("unavailable", 1)])
def test_what_is_not_known_is_said(state: str, count: int) -> None:
    assert len(list(starts.of_draft({"state": state, "position": None}, "nlp", NOW))) == count
