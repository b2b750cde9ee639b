"""Something that a loop needs and that does not answer: told once when it goes, and once when it is back."""

from __future__ import annotations

import time

import structlog

log = structlog.get_logger(__name__)


class Away:
    """For one loop that tries again and again. `what` is lost meanwhile, or waits, in words that begin a line of the log."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._since: float | None = None

    def __bool__(self) -> bool:
        return self._since is not None

    def failed(self, error: Exception) -> None:
        """One more try that failed."""
        if self._since is None:
            self._since = time.monotonic()
            log.warning(self._what, error=" ".join(str(error).split()))

    def answered(self) -> None:
        """A try that did not fail."""
        if self._since is not None:
            log.info(f"{self._what}: no more", after_seconds=round(time.monotonic() - self._since, 1))
            self._since = None
