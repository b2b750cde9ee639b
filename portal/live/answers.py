"""What a topic is: which changes concern it, and the rows it answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Uids = Collection[str] | None
"""Names of rows; None means any number of them."""


@dataclass
class Answer:
    """Rows by their name, and what else the message carries."""

    rows: dict[str, Row] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    unchanged: Collection[str] = ()
    """Rows that are there and are left out, since everybody has them as they are."""


class Topic(ABC):
    """One topic. `action` is the right that it takes, `interval` the least number of seconds between two deltas.

    `is_list`: pages name the rows that they show, and of very many others are told the number only. `is_personal`: users
    of equal rights may get different answers.
    """

    action = "jobs.view"
    interval = 0.25
    is_list = False
    is_personal = False

    @abstractmethod
    def touched(self, topic: str, uids: Uids) -> Uids:
        """Which of this topic's rows a notice is about: names, None for all of them, empty for none."""

    @abstractmethod
    def load(self, user: Any, uids: Uids) -> Answer:
        """The rows of these names that the user may see, or all."""

    def delta(self, user: Any, uids: Uids) -> Answer:
        """The same, for a delta; a topic may leave out what did not change."""
        return self.load(user, uids)

    def gone(self, asked: Uids, rows: dict[str, Row]) -> list[str]:
        """Which of the rows that were asked for are not there any more."""
        return sorted(set(asked or ()) - set(rows))


class Plain(Topic):
    """A topic whose rows are one kind of row, told by notices of its own name."""

    def __init__(self, name: str, action: str, load: Callable[[Any, Uids], dict[str, Row]]) -> None:
        self.name, self.action, self._load = name, action, load

    def touched(self, topic: str, uids: Uids) -> Uids:
        """Its own rows."""
        return uids if topic == self.name else ()

    def load(self, user: Any, uids: Uids) -> Answer:
        """The rows that are asked for."""
        return Answer(self._load(user, uids))
