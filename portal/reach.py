"""Whether the cluster answers this process, and since when it does not: pages go on showing what the database knows of it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import structlog

from cluster import runtime
from cluster.errors import ApiError, Unavailable
from cluster.kinds import QUEUE

log = structlog.get_logger(__name__)

PAUSE = 5.0
"""Seconds between two looks."""


class Reach:
    """What the last look found. `away_since` is None while the cluster answers, or nobody looks; `looked` once somebody did."""

    def __init__(self) -> None:
        self.away_since: datetime | None = None
        self.looked = False

    def look(self) -> None:
        """Ask for as little as can be asked. A refusal is an answer."""
        self.looked = True
        try:
            runtime.current().list(QUEUE, limit=1)
        except Unavailable as error:
            if self.away_since is None:
                self.away_since = datetime.now(UTC)
                log.warning("the cluster does not answer", error=str(error))
            return
        except ApiError as error:
            log.debug("the cluster refused, and so answers", error=str(error))
        if self.away_since is not None:
            log.info("the cluster answers again", after_seconds=(datetime.now(UTC) - self.away_since).total_seconds())
            self.away_since = None

    def run(self, stop: threading.Event) -> None:
        """Look now and then, until told to stop."""
        while not stop.is_set():
            self.look()
            stop.wait(PAUSE)


reach = Reach()
