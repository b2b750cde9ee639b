"""Where the configuration comes from: a file or a ConfigMap, read again when it changes; a broken version is not used."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.port import WatchEvent
from cluster.said import said
from scheduler import conf as configuration
from scheduler.conf import ConfError, Configuration, Fault
from scheduler.configmap import Listener, MapKey
from scheduler.unknown import unknown_arguments

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConfState:
    """The configuration in force, and what is wrong with a newer version of its file.

    `source` is the file's path, or the ConfigMap as `namespace/name:key`; empty for what is built in. `text` and `since`
    (seconds) are of what is in force, `broken` and `faults` of the version that is not used. `watched` is the ConfigMap that is
    looked for, whether there is one or not; empty for none.
    """

    source: str
    text: str
    since: float
    broken: str = ""
    faults: tuple[Fault, ...] = ()
    watched: str = ""


class ConfSource:
    """A configuration that may change; a broken version is reported and the last good one kept.

    It is in a file, or, as soon as there is one, in the ConfigMap `watched`, of which `hear` is told what the cluster says.
    `state` is another object whenever something of it changed. `last` is what the ConfigMap said when it was last in force:
    while it is broken from the start that is in force, rather than the file. Raises ConfError or OSError when there is no good
    version to begin with.
    """

    def __init__(
        self, source: Path | Configuration | None, now: float = 0.0, watched: MapKey | None = None, last: str = ""
    ) -> None:
        self._last = last
        self._path = source if isinstance(source, Path) else None
        self._map = Listener(watched) if watched is not None else None
        self._stamp = self._read_stamp()
        self.error: ConfError | None = None
        text = "" if isinstance(source, Configuration) else self._text()
        self.current = source if isinstance(source, Configuration) else configuration.load(text)
        self.state = ConfState(self._origin(), text, now, watched=str(watched or ""))
        self._warn()

    @property
    def is_settled(self) -> bool:
        """Whether it is known where the configuration is; until then `state` is not worth telling."""
        return self._map is None or self._map.is_settled

    def listen(self) -> None:
        """A watch begins, of which `hear` is told from now on."""
        if self._map is not None:
            self._map.begin()

    def hear(self, events: Iterable[WatchEvent]) -> bool:
        """Take events of the cluster in; whether `reload` has something to look at for them."""
        return self._map is not None and self._map.take(events)

    def reload(self, now: float = 0.0) -> bool:
        """Read it again if it changed; whether another configuration is in force now."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return False
        self._stamp, text = stamp, ""
        try:
            text = self._text()
            self.current, self.error = configuration.load(text), None
        except ConfError as error:
            self.error, changed = error, self._take_last(now)
            self.state = replace(self.state, broken=configuration.as_kept(text), faults=error.faults)
            logger.error("%s is not used, the last good configuration stays: %s", self._origin(), error)
            return changed
        if (text, self._origin(), "", ()) == (self.state.text, self.state.source, self.state.broken, self.state.faults):
            return False  # only something beside it changed
        self.state = ConfState(self._origin(), text, now, watched=self.state.watched)
        logger.info("%s was read again", self._origin())
        self._warn()
        return True

    def _take_last(self, now: float) -> bool:
        """What a ConfigMap said before this process began, in the place of the file; whether that is in force now."""
        if not self._last or self._origin() != self.state.watched or self.state.source == self.state.watched:
            return False
        try:
            self.current = configuration.load(self._last)
        except ConfError as error:
            logger.warning("what %s said last cannot be read any more: %s", self._origin(), error)
            return False
        self.state = ConfState(self._origin(), self._last, now, watched=self.state.watched)
        return True

    def _warn(self) -> None:
        """Say which arguments do nothing: Volcano takes them silently."""
        for fault in unknown_arguments(self.current):
            logger.warning("%s: %s", self._origin() or "the configuration", fault)

    @property
    def path(self) -> Path | None:
        """The file that is read, or will be at the next `reload`."""
        return self._path

    def follow(self, path: Path) -> None:
        """Read another file from now on. It is read at the next `reload`."""
        if path != self._path:
            self._path, self._stamp = path, None

    def _origin(self) -> str:
        return str(self._path or "") if self._map is None or self._map.said is None else str(self._map.place)

    def _text(self) -> str:
        if self._map is not None and self._map.said is not None:
            return _said(self._map)
        if self._path is None:
            return configuration.DEFAULT
        try:
            return self._path.read_text("utf-8")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise ConfError(Fault(line, said("the file is no UTF-8 text"))) from None
        except OSError as error:
            if not hasattr(self, "current"):
                raise
            raise ConfError(Fault(0, said("the file cannot be read: %(why)s", why=error.strerror or error))) from None

    def _read_stamp(self) -> object:
        if self._map is not None and self._map.said is not None:
            return self._map.said
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size) if found is not None else None


def _said(found: Listener) -> str:
    """The text of a ConfigMap. Raises ConfError where it has none."""
    assert found.said is not None
    if found.said.gone:
        raise ConfError(Fault(0, said("the ConfigMap %(map)s is not there any more", map=found.place.where)))
    if found.said.text is None:
        lacks = said("the ConfigMap %(map)s has no text at %(key)s", map=found.place.where, key=found.place.key)
        raise ConfError(Fault(0, lacks))
    return found.said.text
