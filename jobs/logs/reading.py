"""Records of many containers in the order of time: all, or the last ones, and then those that come."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from cluster.logs.records import Record
from cluster.logs.remote import RemoteStream, Troubles
from cluster.logs.streams import START, Position
from jobs.logs.asked import Asked
from jobs.logs.sources import Source

CHUNK, SMALLEST = 262_144, 32_768
HELD = 64 * 2**20
"""Bytes of records that one reader may have in memory."""
AT_ONCE = 8
"""Requests for the ends of logs that one reader has under way."""
Line = tuple[Source, Record]


@dataclass
class Reading:
    """Where one reader stands in each of its sources. Not to be used by two threads at once."""

    asked: Asked
    sources: dict[str, Source] = field(default_factory=dict)
    troubles: Troubles = field(default_factory=Troubles)
    _positions: dict[str, Position] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)

    def add(self, sources: list[Source]) -> list[Source]:
        """Take up sources; those that are new. They are read from their beginning, or from `begin` on."""
        new = [source for source in sources if source.key not in self.sources]
        for source in new:
            self.sources[source.key] = source
            if isinstance(source.stream, RemoteStream):
                source.stream.troubles = self.troubles
            self._positions.setdefault(source.key, START)
        return new

    def begin(self) -> Iterator[list[Line]]:
        """What is there now, in pieces: the last lines that were asked for, or everything."""
        sources = list(self.sources.values())
        if self.asked.tail is not None:
            yield self._tails(sources, self.asked.tail)
            return
        piece: list[Line] = []
        size = 0
        merged = heapq.merge(*(self._all(source) for source in sources), key=lambda line: line[1].at)
        for line in merged:
            piece.append(line)
            size += len(line[1].text) + 64
            if size > CHUNK:
                yield piece
                piece, size = [], 0
        yield piece

    def more(self) -> list[Line]:
        """What came since; all of it is read once its source has nothing to add."""
        found: list[Line] = []
        for key, source in self.sources.items():
            if key in self._over:
                continue
            ended = source.is_over()  # asked first: what is written before the end is then read
            records, self._positions[key] = source.stream.read(self._positions[key], self._chunk)
            found += [(source, record) for record in records]
            if ended and not records:
                self._over.add(key)
        found.sort(key=lambda line: line[1].at)
        return found

    def close(self) -> None:
        """Let go of what sources hold for this reader."""
        for source in self.sources.values():
            if isinstance(source.stream, RemoteStream):
                source.stream.close()

    @property
    def is_over(self) -> bool:
        """Whether no source will give any more."""
        return len(self._over) == len(self.sources)

    def _tails(self, sources: list[Source], lines: int) -> list[Line]:
        """The last lines of all together: however many sources there are, no more is held than is wanted."""
        found: list[Line] = []
        for source, (records, position) in zip(sources, self._ends(sources, lines), strict=True):
            self._positions[source.key] = position
            found += [(source, record) for record in records if record.at >= self.asked.since]
            found.sort(key=lambda line: line[1].at)
            found = found[len(found) - _from(found, lines) :]
        return found

    def _ends(self, sources: list[Source], lines: int) -> Iterator[tuple[list[Record], Position]]:
        """The end of each source in turn; those that are asked for over the network are asked for together."""
        if not any(isinstance(source.stream, RemoteStream) for source in sources):
            yield from (source.stream.tail(lines) for source in sources)
            return
        with ThreadPoolExecutor(AT_ONCE, "log-ends") as pool:
            yield from pool.map(lambda source: source.stream.tail(lines), sources)

    def _all(self, source: Source) -> Iterator[Line]:
        position = source.stream.since(self.asked.since) if self.asked.since else START
        while True:
            records, position = source.stream.read(position, self._chunk)
            self._positions[source.key] = position
            if not records:
                return
            yield from ((source, record) for record in records if record.at >= self.asked.since)

    @property
    def _chunk(self) -> int:
        """Bytes that are read of a source at a time: less of each, the more there are."""
        return max(SMALLEST, min(CHUNK, HELD // max(1, len(self.sources))))


def _from(found: list[Line], lines: int) -> int:
    """How many records at the end make so many lines, and no more bytes than may be held."""
    full = held = 0
    for count, (_, record) in enumerate(reversed(found)):
        held += len(record.text) + 64
        full += record.full
        if full > lines or held > HELD:
            return count
    return len(found)
