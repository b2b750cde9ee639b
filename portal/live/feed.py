"""One topic in one process: its sockets, its numbering, and what a page that was away has missed."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from portal.live.topics import Answer, Topic, Uids

REMEMBERED = 400
"""Deltas whose names are remembered for those who come back."""
CAP = 200
"""Rows that one delta carries to a page that does not show them."""


class Socket(Protocol):
    """One page's connection, as the hub sees it."""

    user: Any

    def offer(self, topic: str, text: bytes) -> None:
        """Take a message, or fall behind: never blocks."""
        ...


@dataclass
class Subscription:
    """What a page shows of a topic; messages are held while its first answer is being loaded."""

    shown: frozenset[str]
    ready: bool = False
    held: list[tuple[int, bytes]] = field(default_factory=list)


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

    def message(self, kind: str, seq: int, asked: Uids, answer: Answer) -> dict[str, Any]:
        """A message; whoever asked for a row that is not there learns that it is gone."""
        gone = self.topic.gone(asked, answer.rows)
        return {"topic": self.name, "type": kind, "seq": seq, "changed": list(answer.rows.values()), "gone": gone} | answer.extras

    def send_delta(self, sockets: Collection[Socket], seq: int, asked: Uids, answer: Answer) -> None:
        """One encoding for all these sockets; a delta of very many rows is cut to what each page shows."""
        if len(answer.rows) <= CAP or self.name != "jobs":
            text = orjson.dumps(self.message("delta", seq, asked, answer))
            for socket in sockets:
                self._give(socket, seq, text)
            return
        encoded = {uid: orjson.Fragment(orjson.dumps(row)) for uid, row in answer.rows.items()}
        body = self.message("delta", seq, asked, answer)
        for socket in sockets:
            shown = [encoded[uid] for uid in self.subscriptions[socket].shown if uid in encoded]
            self._give(socket, seq, orjson.dumps(body | {"changed": shown, "more": len(encoded) - len(shown)}))

    def _give(self, socket: Socket, seq: int, text: bytes) -> None:
        subscription = self.subscriptions[socket]
        if subscription.ready:
            socket.offer(self.name, text)
        else:
            subscription.held.append((seq, text))

    def answer(self, socket: Socket, kind: str, seq: int, asked: Uids, answer: Answer) -> None:
        """The first answer to a subscription, and what came while it was loaded."""
        subscription = self.subscriptions.get(socket)
        if subscription is None:
            return
        socket.offer(self.name, orjson.dumps(self.message(kind, seq, asked, answer)))
        for number, text in subscription.held:
            if number > seq:
                socket.offer(self.name, text)
        subscription.held, subscription.ready = [], True
