"""Questions about starts, answered one after the other in a thread of their own and kept a moment.

Who was answered longest ago has the next turn, with the newest question: nobody keeps others waiting by asking much.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

import structlog
from django.db import connections

from cluster.errors import ApiError
from portal.outlook.questions import Outlook, Question, answer
from portal.simulations import estimates
from portal.unblock.copy import Copy, current

log = structlog.get_logger(__name__)

STALE = 60.0
"""Wall seconds for which an answer is handed out."""
KEPT = 200
"""Answers that are kept."""
PATIENCE = 15.0
"""Wall seconds after which a question that nobody asked again is dropped: who types has a new one with each word."""
EACH = 20
"""Questions of one user that wait; older ones are dropped."""
BREATH = 10.0
"""Wall seconds of rest at most after an answer, which is as long as that took: of a core at most a third is spent."""
REST = 60.0
"""Wall seconds without a question after which the thread ends."""


class Asked(NamedTuple):
    """A question, until when (`time.monotonic`) somebody is thought to wait for the answer, and who asked it last."""

    question: Question
    until: float
    who: Hashable


class Desk:
    """Takes questions. Safe from any thread."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Outlook] = OrderedDict()
        self._queue: OrderedDict[str, Asked] = OrderedDict()
        self._served: dict[Hashable, float] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._copy: Copy | None = None

    def ask(self, question: Question, wait: float = 0.0, who: Hashable = None) -> Outlook:
        """The answer as far as it is known within `wait` seconds; `who` asks. Raises Unavailable when there is no cluster."""
        copy, end = current(), time.monotonic() + wait
        with self._changed:
            if self._copy is not copy:
                self._copy = copy
                self._answers.clear()
            if (known := self._known(question)) is not None:
                return known
            self._put(question, end + PATIENCE, who)
            self._start()
            self._changed.notify_all()
            while (left := end - time.monotonic()) > 0:
                self._changed.wait(left)
                if (known := self._known(question)) is not None:
                    return known
            return Outlook()

    def _known(self, question: Question) -> Outlook | None:
        found = self._answers.get(question.key)
        return found if found is not None and time.monotonic() - found.taken < STALE else None

    def _put(self, question: Question, until: float, who: Hashable) -> None:
        known = self._queue.pop(question.key, None)
        mine = [key for key, asked in self._queue.items() if asked.who == who]
        for key in mine[: max(0, len(mine) + 1 - EACH)]:
            del self._queue[key]
        self._queue[question.key] = Asked(question, max(until, known.until) if known is not None else until, who)

    def _next(self) -> Asked | None:
        """Whose turn it is, once those are left out that nobody waits for any more."""
        now = time.monotonic()
        for key in [key for key, asked in self._queue.items() if asked.until < now]:
            del self._queue[key]
        # Of equals the first counts: the newest, as somebody looks at the page that asked it.
        return min(reversed(self._queue.values()), key=lambda asked: self._served.get(asked.who, 0.0), default=None)

    def _serve(self, asked: Asked) -> None:
        waiting = {each.who for each in self._queue.values()}
        self._served = {who: at for who, at in self._served.items() if who in waiting} | {asked.who: time.monotonic()}

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="outlook", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                asked, copy = self._changed.wait_for(self._next, REST), self._copy
                if asked is None:
                    self._thread = None
                    return
                self._serve(asked)
            question, begin = asked.question, time.monotonic()
            try:
                assert copy is not None
                self._keep(question, answer(copy, question))
            except ApiError as error:
                log.info("a question about starts could not be answered", error=error.message)
                self._keep(question, Outlook("unavailable", taken=time.monotonic()))
            except Exception:
                log.exception("a question about starts failed")
                self._keep(question, Outlook("unavailable", taken=time.monotonic()))
            finally:
                estimates.rest_after(begin)
                connections.close_all()
            time.sleep(min(BREATH, time.monotonic() - begin))

    def _keep(self, question: Question, found: Outlook) -> None:
        with self._changed:
            self._queue.pop(question.key, None)
            self._answers[question.key] = found
            self._answers.move_to_end(question.key)
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)
            self._changed.notify_all()


desk = Desk()
