"""What does not answer is told of once, and once more when it is back."""

from __future__ import annotations

from structlog.testing import capture_logs

from cluster.away import Away


def test_an_outage_is_two_lines_however_often_it_is_tried() -> None:
    away = Away("decisions wait to be written")
    with capture_logs() as said:
        away.answered()
        for cause in ("connection\n refused", "connection refused", "starting up"):
            away.failed(OSError(cause))
            assert away
        away.answered()
        away.answered()
    assert not away
    assert [(line["log_level"], line["event"]) for line in said] == [
        ("warning", "decisions wait to be written"),
        ("info", "decisions wait to be written: no more"),
    ]
    assert said[0]["error"] == "connection refused"
    assert said[1]["after_seconds"] >= 0


def test_the_next_outage_is_told_of_again() -> None:
    away = Away("pages hear nothing")
    with capture_logs() as said:
        for _ in range(2):
            away.failed(OSError("gone"))
            away.answered()
    assert len(said) == 4
