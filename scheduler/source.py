"""Where the configuration comes from: a file that is read again when it changes, of which a broken version is not used."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from scheduler import conf as configuration
from scheduler.conf import ConfError, Configuration, Fault
from scheduler.unknown import unknown_arguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConfState:
    """The configuration in force, and what is wrong with a newer version of its file.

    `source` is the file's path, empty for what is built in; `text` and `since` (seconds) are of what is in force, `broken`
    and `faults` of the version that is not used.
    """

    source: str
    text: str
    since: float
    broken: str = ""
    faults: tuple[Fault, ...] = ()


class ConfSource:
    """A configuration in a file that may change; a broken version is reported and the last good one kept.

    `state` is another object whenever something of it changed. Raises ConfError or OSError when there is no good version
    to begin with.
    """

    def __init__(self, source: Path | Configuration | None, now: float = 0.0) -> None:
        self._path = source if isinstance(source, Path) else None
        self._stamp = self._read_stamp()
        self.error: ConfError | None = None
        text = "" if isinstance(source, Configuration) else self._text()
        self.current = source if isinstance(source, Configuration) else configuration.load(text)
        self.state = ConfState(str(self._path or ""), text, now)
        self._warn()

    def reload(self, now: float = 0.0) -> bool:
        """Read the file again if it changed; whether another configuration is in force now."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return False
        self._stamp, text = stamp, ""
        try:
            text = self._text()
            self.current, self.error = configuration.load(text), None
        except ConfError as error:
            self.error = error
            self.state = replace(self.state, broken=text, faults=error.faults)
            logger.error("%s is not used, the last good configuration stays: %s", self._path, error)
            return False
        self.state = ConfState(str(self._path or ""), text, now)
        logger.info("%s was read again", self._path)
        self._warn()
        return True

    def _warn(self) -> None:
        """Say which arguments do nothing: Volcano takes them silently."""
        for fault in unknown_arguments(self.current):
            logger.warning("%s: %s", self._path or "the configuration", fault)

    def follow(self, path: Path) -> None:
        """Read another file from now on. It is read at the next `reload`."""
        if path != self._path:
            self._path, self._stamp = path, None

    def _text(self) -> str:
        if self._path is None:
            return configuration.DEFAULT
        try:
            return self._path.read_text("utf-8")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise ConfError(Fault(line, "the file is no UTF-8 text")) from None
        except OSError as error:
            if not hasattr(self, "current"):
                raise
            raise ConfError(Fault(0, f"the file cannot be read: {error.strerror or error}")) from None

    def _read_stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size) if found is not None else None
