"""One attempt of one container as a stream of records: on disk, or made up for a simulated container."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from cluster.logs.records import Record, instant, parse

Position = tuple[int, int]
"""The number of a file and the byte in it, from which one reads on."""

START: Position = (0, 0)


class Stream(Protocol):
    """What can be read of one attempt."""

    def read(self, position: Position, most: int) -> tuple[list[Record], Position]:
        """About `most` bytes of records from a position, and where to go on; nothing when there is no more now."""
        ...

    def tail(self, lines: int) -> tuple[list[Record], Position]:
        """The last so many lines (pieces of one line count as one), and where to go on."""
        ...

    def since(self, at: str) -> Position:
        """Where the records of an instant and later begin, roughly: never too late."""
        ...

    def size(self) -> int:
        """Bytes that are kept."""
        ...

    def is_cut(self) -> bool:
        """Whether its beginning was let go already."""
        ...


@dataclass(frozen=True, slots=True)
class FileStream:
    """Files `<number>.log`, some of them compressed; positions count bytes as they were before."""

    folder: Path

    def _files(self) -> list[tuple[int, Path]]:
        found: dict[int, Path] = {}
        try:
            entries = list(os.scandir(self.folder))
        except FileNotFoundError:
            return []
        for entry in entries:
            head, _, kind = entry.name.partition(".")
            if head.isdecimal() and kind in ("log", "log.gz") and (int(head) not in found or kind == "log"):
                found[int(head)] = Path(entry.path)
        return sorted(found.items())

    def read(self, position: Position, most: int) -> tuple[list[Record], Position]:
        number, offset = position
        records: list[Record] = []
        room = most
        files = self._files()
        for index, (file_number, path) in enumerate(files):
            if file_number < number:
                continue
            if file_number > number:
                number, offset = file_number, 0
            data = _piece(path, offset, room)
            end = data.rfind(b"\n") + 1
            is_last = index == len(files) - 1
            if not end and data and not is_last and len(data) < room:
                end = len(data)  # torn, and nobody will write its rest
            records += [record for line in data[:end].split(b"\n") if (record := parse(line))]
            offset += end
            room -= end
            if room <= 0 or (data and not end) or (is_last and end < len(data)) or len(data) >= room + end:
                break
        return records, (number, offset)

    def tail(self, lines: int) -> tuple[list[Record], Position]:
        files = self._files()
        if not files:
            return [], START
        kept: list[list[Record]] = []
        end: Position | None = None
        count = 0
        for number, path in reversed(files):
            data = _whole(path)
            cut = data.rfind(b"\n") + 1
            if end is None:
                end = (number, cut)
            found = _last(data[:cut], lines - count)
            kept.append(found)
            count += sum(record.full for record in found)
            if count >= lines:
                break
        assert end is not None
        records = [record for found in reversed(kept) for record in found]
        return _last_lines(records, lines), end

    def since(self, at: str) -> Position:
        begin = START
        for number, path in self._files():
            first = parse(_piece(path, 0, 32_768).partition(b"\n")[0])
            if first is not None and first.at > at:
                break
            begin = (number, 0)
        return begin

    def size(self) -> int:
        return sum(path.stat().st_size if path.suffix != ".gz" else _plain_size(path) for _, path in self._files())

    def is_cut(self) -> bool:
        files = self._files()
        return bool(files) and files[0][0] > 1


def _last(data: bytes, lines: int) -> list[Record]:
    """The last lines of a file's bytes, with all pieces of the first of them."""
    found: list[Record] = []
    full = 0
    for record in _backwards(data):
        if record.full:
            if full == lines:
                break
            full += 1
        found.append(record)
    return found[::-1]


def _backwards(data: bytes) -> Iterator[Record]:
    end = len(data)
    while end > 0:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if record := parse(data[begin : end - 1]):
            yield record
        end = begin


def _last_lines(records: list[Record], lines: int) -> list[Record]:
    """Cut to the last lines; an unfinished one at the end comes beside them."""
    full = 0
    for index in range(len(records) - 1, -1, -1):
        if records[index].full:
            full += 1
            if full > lines:
                return records[index + 1 :]
    return records


def _piece(path: Path, offset: int, most: int) -> bytes:
    """At most so many bytes from there on; -1: all."""
    if path.suffix == ".gz":
        return _unpacked(str(path), path.stat().st_mtime_ns)[offset : offset + most if most >= 0 else None]
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(most)
    except FileNotFoundError:  # compressed or let go since it was listed
        packed = path.with_name(f"{path.name}.gz")
        return _piece(packed, offset, most) if packed.exists() else b""


def _whole(path: Path) -> bytes:
    return _piece(path, 0, -1)


@lru_cache(4)
def _unpacked(path: str, _changed: int) -> bytes:
    with gzip.open(path) as file:
        return file.read()


def _plain_size(path: Path) -> int:
    """Bytes before compression: gzip keeps them at its end."""
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


@dataclass(frozen=True, slots=True)
class SimulatedStream:
    """What a simulated container would have printed: a few lines that say so, from its times alone.

    `times` gives its start and end in seconds and its exit code, each None while it is not known; it is asked again
    at each look. `now` is the cluster's present.
    """

    container: str
    times: Callable[[], tuple[float | None, float | None, int | None]]
    now: Callable[[], float]

    def _records(self) -> list[Record]:
        start, end, code = self.times()
        if start is None:
            return []
        until = self.now() if end is None else end
        steps = min(int(max(0.0, until - start) / _STEP), _MOST_STEPS)
        said = [(start, "started (simulated: no program runs)")]
        said += [(start + k * _STEP, f"step {k} (simulated)") for k in range(1, steps + 1)]
        if end is not None:
            said.append((end, f"ended (simulated), exit code {0 if code is None else code}"))
        return [Record(instant(at), "o", True, f"{self.container}: {text}".encode()) for at, text in said]

    def read(self, position: Position, most: int) -> tuple[list[Record], Position]:
        records = self._records()[position[1] : position[1] + max(1, most // 64)]
        return records, (0, position[1] + len(records))

    def tail(self, lines: int) -> tuple[list[Record], Position]:
        records = self._records()
        return records[len(records) - min(lines, len(records)) :], (0, len(records))

    def since(self, at: str) -> Position:
        return (0, sum(record.at < at for record in self._records()))

    def size(self) -> int:
        return sum(len(record.text) + 1 for record in self._records())

    def is_cut(self) -> bool:
        return False


_STEP, _MOST_STEPS = 5.0, 10_000
