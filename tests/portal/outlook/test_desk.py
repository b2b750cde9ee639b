"""Whose question about starts has the next turn. No thread runs here: what is answered is said by the test."""

from __future__ import annotations

import pytest

from portal.outlook import desk as room
from portal.outlook.desk import EACH, Desk
from portal.outlook.questions import Outlook, Question


class Still(Desk):
    """A desk that answers when it is told to."""

    def _start(self) -> None:
        """Nothing runs."""

    def turn(self) -> str:
        """Answer who has the next turn; the question's data, or nothing."""
        asked = self._next()
        if asked is None:
            return ""
        self._serve(asked)
        self._keep(asked.question, Outlook("done", taken=room.time.monotonic()))
        return str(asked.question.data)


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    monkeypatch.setattr(room, "current", lambda: "the copy")
    return Still()


def test_who_asks_much_keeps_nobody_else_waiting(still: Still) -> None:
    still.ask(Question("draft", "bob's"), who=2)
    for number in range(3):
        still.ask(Question("draft", f"ann's {number}"), who=1)
    assert still.turn() == "ann's 2"  # the newest, as nobody was answered yet
    still.ask(Question("draft", "ann's 3"), who=1)
    assert still.turn() == "bob's"
    assert [still.turn() for _ in range(4)] == ["ann's 3", "ann's 1", "ann's 0", ""]


def test_a_user_has_so_many_questions_waiting_and_the_oldest_goes_first(still: Still) -> None:
    for number in range(EACH - 1):
        still.ask(Question("draft", number), who=1)
    still.ask(Question("draft", "bob's"), who=2)
    assert [each.question.data for each in still._queue.values()] == [*range(EACH - 1), "bob's"]
    for number in range(EACH - 1, 3 * EACH):
        still.ask(Question("draft", number), who=1)
    assert [each.question.data for each in still._queue.values()] == ["bob's", *range(2 * EACH, 3 * EACH)]


def test_who_still_waits_is_answered_though_a_newer_question_was_given_up(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, passed = room.time.monotonic(), [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: begin + passed[0])
    still._put(Question("draft", "patient"), begin + 60, 1)
    still._put(Question("draft", "hasty"), begin + 15, 2)
    still._put(Question("draft", "patient"), begin + 15, 3)  # another asks the same: nobody waits for less
    passed[0] = 20.0
    assert [still.turn(), still.turn()] == ["patient", ""]
    still._put(Question("draft", "gone"), begin + 30, 1)
    passed[0] = 31.0
    assert still.turn() == ""
    assert not still._queue  # nothing is kept that nobody waits for
