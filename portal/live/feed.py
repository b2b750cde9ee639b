"""One topic in one process: its sockets, its numbering, and what a page that was away has missed."""

from __future__ import annotations

import secrets
from collections import defaultdict, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from portal.live.recent import Recent
from portal.live.topics import Answer, Topic, Uids

REMEMBERED = 400
"""Deltas whose names are remembered for those who come back."""
CAP = 60
"""Rows of a list that one message carries to a page that does not show them."""


class Socket(Protocol):
    """One page's connection, as the hub sees it. `rights` are the policy's key for the user, which may take a query to know."""

    user: Any
    rights: str

    def offer(self, topic: str, text: str) -> None:
        """Take a message, or fall behind: never blocks."""
        ...


@dataclass
class Subscription:
    """What a page shows of a topic; messages are held while its first answer is being loaded."""

    shown: frozenset[str]
    ready: bool = False
    held: list[tuple[int, str]] = field(default_factory=list)


class Feed:
    """The state of one topic. Numbers begin at random, so that another process's, or an earlier one's, are not taken for ours."""

    def __init__(self, name: str, topic: Topic) -> None:
        self.name, self.topic = name, topic
        self.subscriptions: dict[Socket, Subscription] = {}
        self.seq = secrets.randbelow(2**20) * 2**32
        self._log: deque[tuple[int, Uids]] = deque(maxlen=REMEMBERED)
        self._first = self.seq
        self.pending: set[str] = set()
        self.everything = False
        self._recent: defaultdict[str, Recent] = defaultdict(Recent)
        self.unsent: set[str] = set()
        """Rights of those to whom the newest delta is still to be sent."""

    def base(self, rights: str) -> int:
        """The number after which a page that comes now gets every delta."""
        return self.seq - 1 if rights in self.unsent else self.seq

    def note(self, topic: str, uids: Uids) -> bool:
        """Remember what a notice touches; whether that is anything."""
        touched = self.topic.touched(topic, uids)
        if touched is None:
            self.everything = True
        else:
            self.pending.update(touched)
        return self.everything or bool(self.pending)

    def take(self) -> Uids:
        """What changed since the last time, numbered as the next delta (None: anything)."""
        uids: Uids = None if self.everything else frozenset(self.pending)
        self.pending, self.everything = set(), False
        self.seq += 1
        if len(self._log) == REMEMBERED:
            self._first = self._log[0][0]
        self._log.append((self.seq, uids))
        return uids

    def missed(self, seq: int | None) -> Uids:
        """Names that changed after `seq`; None when that is not known any more, or never was."""
        if seq is None or not self._first <= seq <= self.seq:
            return None
        found: set[str] = set()
        for number, uids in self._log:
            if number > seq:
                if uids is None:
                    return None
                found.update(uids)
        return found

    def asked(self, shown: frozenset[str] | None, seq: int | None) -> tuple[str, Uids, int]:
        """How a page is answered that shows these rows and saw this number last: the kind of message, the rows that are
        loaded for it (None: all), and how many more there are of which it is only told that they changed."""
        missed = self.missed(seq)
        if missed is None:
            return "snapshot", shown, 0
        if self.topic.is_list and len(missed) > CAP:
            mine = frozenset(missed) & (shown or frozenset())
            return "delta", mine, len(missed) - len(mine)
        return "delta", frozenset(missed), 0

    def message(self, kind: str, seq: int, asked: Uids, answer: Answer) -> dict[str, Any]:
        """A message; whoever asked for a row that is not there learns that it is gone."""
        gone = [uid for uid in self.topic.gone(asked, answer.rows) if uid not in answer.unchanged]
        return {"topic": self.name, "type": kind, "seq": seq, "changed": list(answer.rows.values()), "gone": gone} | answer.extras

    def again(self, rights: str, seq: int | None) -> list[str] | None:
        """What a page that saw this number last has to hear; None when that must be loaded."""
        base = self.base(rights)
        if seq is None or not self._first <= seq <= base:
            return None
        if seq == base:
            return [orjson.dumps({"topic": self.name, "type": "delta", "seq": base, "changed": [], "gone": []}).decode()]
        return self._recent[rights].after(seq, base)

    def send_delta(
        self, rights: str, sockets: Collection[Socket], asked: Uids, answer: Answer, *, all_lists: bool = False
    ) -> None:
        """One encoding of the newest delta for all sockets of these rights; a list of very many rows is cut to what each shows.

        `all_lists`: anything may have changed, and the answer has what the pages show.
        """
        seq = self.seq
        body = self.message("delta", seq, asked, answer)
        if not self.topic.is_list or (len(answer.rows) <= CAP and not all_lists):
            text = orjson.dumps(body).decode()
            self._recent[rights].add(seq, text)
            for socket in sockets:
                self._give(socket, seq, text)
            return
        encoded = {uid: orjson.Fragment(orjson.dumps(row)) for uid, row in answer.rows.items()}
        texts: dict[frozenset[str], str] = {}
        for socket in sockets:
            shown = self.subscriptions[socket].shown
            if shown not in texts:
                rows = [encoded[uid] for uid in shown if uid in encoded]
                gone = [uid for uid in body["gone"] if uid in shown]
                more = len(encoded) - len(rows) or int(all_lists)
                texts[shown] = orjson.dumps(body | {"changed": rows, "gone": gone, "more": more}).decode()
            self._give(socket, seq, texts[shown])

    def _give(self, socket: Socket, seq: int, text: str) -> None:
        subscription = self.subscriptions[socket]
        if subscription.ready:
            socket.offer(self.name, text)
        else:
            subscription.held.append((seq, text))

    def answer(self, socket: Socket, seq: int, *texts: str) -> None:
        """The first answer to a subscription, up to a number, and what came while it was loaded."""
        subscription = self.subscriptions.get(socket)
        if subscription is None:
            return
        for text in texts:
            socket.offer(self.name, text)
        for number, held in subscription.held:
            if number > seq:
                socket.offer(self.name, held)
        subscription.held, subscription.ready = [], True
