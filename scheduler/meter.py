"""Asks a monitoring server what nodes use, now and then. The caller hands in how it is fetched."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from math import inf

from scheduler import elasticsearch, prometheus
from scheduler.measuring import ELASTICSEARCH, Fetch, Source, Usage

logger = logging.getLogger(__name__)


def read(source: Source, fetch: Fetch, now: float) -> Usage:
    """The mean use of the last ten minutes, of every node of which cpu and memory are told.

    Raises OSError when the server cannot be asked and ValueError when it answers as another program.
    """
    ask = elasticsearch.read if source.kind == ELASTICSEARCH else prometheus.read
    return ask(source, fetch, now)


class Meter:
    """Asks now and then, beside the cycles. `usage` is the last good answer; how old it may be is for its readers to say."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._asked = -inf
        self._pending: Future[Usage] | None = None
        self._trouble = ""
        self.usage: Usage = {}

    def tick(self, source: Source, interval: float, now: float, pool: Executor | None) -> bool:
        """Take in an answer that came, ask again when it is time (without a pool: and wait); whether there is news."""
        news = False
        if self._pending is not None and self._pending.done():
            news, self._pending = self._take(self._pending.result), None
        if self._pending is None and now >= self._asked + interval:
            self._asked = now
            if pool is None:
                return self._take(lambda: read(source, self._fetch, now))
            self._pending = pool.submit(read, source, self._fetch, now)
        return news

    def _take(self, answer: Callable[[], Usage]) -> bool:
        try:
            self.usage, trouble = answer(), ""
        except (OSError, ValueError) as error:
            trouble = str(error)
        if trouble and trouble != self._trouble:
            logger.warning("what nodes use is not known: %s", trouble)
        self._trouble = trouble
        return not trouble
