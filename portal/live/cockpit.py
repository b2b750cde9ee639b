"""The scheduler's first page, for one choice of range, colours and cycle: its parts, drawn anew when cycles were kept."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from cluster.access import policy
from portal.cockpit import front
from portal.cockpit.front import Asked
from portal.live.answers import Answer, Row, Topic, Uids
from portal.live.told import Told

INTERVALS = {"2m": 0.25, "1h": 0.5, "24h": 5.0}
"""Seconds between two deltas, by the range: of the thousands of cycles of a long one a second moves little."""


class CockpitTopic(Topic):
    """A delta has the parts that are not as they were told last."""

    action = "scheduler.view"

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.interval = INTERVALS[asked.window]
        self._told: defaultdict[str, Told[Row]] = defaultdict(Told)

    def touched(self, topic: str, uids: Uids) -> Uids:
        """All parts, or none."""
        return front.PARTS if topic in ("scheduler", "configuration") else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        """Every part."""
        rows = front.parts(user, self._asked)
        self._told[policy().rights(user)].saw(rows)
        return Answer(rows)

    def delta(self, user: Any, uids: Uids) -> Answer:
        """The parts that changed."""
        told = self._told[policy().rights(user)]
        doubted = told.begin()
        rows = front.parts(user, self._asked)
        before = told.tell(rows, doubted)
        return Answer({name: row for name, row in rows.items() if row != before[name]})

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """Parts stay."""
        return []


def cockpit(name: str) -> Topic | None:
    """The topic of a choice as its page names it; None for what no page has."""
    asked = Asked.named(name)
    return CockpitTopic(asked) if asked is not None else None
