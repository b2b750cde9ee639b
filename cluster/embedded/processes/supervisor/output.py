"""What a container prints, kept line by line with its time, in files that take turns.

A record is `<instant> <o|e> <F|P> <bytes>` and a newline: standard output or error; a full line, or a piece of a longer one.
"""

from __future__ import annotations

import contextlib
import os
import time
from datetime import UTC, datetime

from cluster.logs.masking import Mask

LONGEST_PIECE = 16_384
STREAMS = {"stdout": b"o", "stderr": b"e"}


class LogWriter:
    """The log of one attempt of one container. `most` bytes are kept, in files of a tenth of that; the oldest go."""

    def __init__(self, folder: str, secrets: list[bytes], most: int) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder, self._most = folder, most
        self._each = max(65_536, most // 10)
        self._number, self._size = 0, 0
        self._file = -1
        self._secrets = secrets
        self._masks = {name: Mask(secrets) for name in STREAMS}
        self._open_lines = dict.fromkeys(STREAMS, b"")
        self._next()

    def learn(self, secrets: list[bytes]) -> None:
        """More to be masked, from now on."""
        self._secrets = sorted({*self._secrets, *secrets}, key=lambda secret: (-len(secret), secret))
        for mask in self._masks.values():
            mask.learn(self._secrets)

    def masked(self, text: bytes) -> bytes:
        """A text that goes another way than by the log."""
        mask = Mask(self._secrets)
        return mask.feed(text) + mask.end()

    def write(self, stream: str, data: bytes) -> None:
        """The next bytes of a stream."""
        self._keep(stream, self._masks[stream].feed(data))

    def end(self, stream: str) -> None:
        """The stream is over: a last line without its newline is one too."""
        self._keep(stream, self._masks[stream].end())
        if rest := self._open_lines[stream]:
            self._open_lines[stream] = b""
            self._put(_stamp() + b" " + STREAMS[stream] + b" F " + rest + b"\n")

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        self._put(_stamp() + b" e F " + text.encode() + b"\n")

    def last(self, lines: int, most: int) -> bytes:
        """The last lines that were kept, without their stamps."""
        with open(self._path(self._number), "rb") as file:
            file.seek(max(0, self._size - 4 * most))
            records = file.read().splitlines()[-lines:]
        return b"\n".join(record.split(b" ", 3)[-1] for record in records)[-most:]

    def close(self) -> None:
        """End both streams."""
        for stream in STREAMS:
            self.end(stream)
        os.close(self._file)
        self._file = -1

    def _keep(self, stream: str, data: bytes) -> None:
        if not data:
            return
        start = _stamp() + b" " + STREAMS[stream]
        whole, newline, rest = data.rpartition(b"\n")
        records = b""
        if newline:
            whole = self._open_lines[stream] + whole
            self._open_lines[stream] = b""
            if len(whole) > LONGEST_PIECE and any(len(line) > LONGEST_PIECE for line in whole.split(b"\n")):
                records = b"".join(_pieces(line, start) for line in whole.split(b"\n"))
            else:
                records = start + b" F " + whole.replace(b"\n", b"\n" + start + b" F ") + b"\n"
        rest = self._open_lines[stream] + rest
        while len(rest) > LONGEST_PIECE:
            records += start + b" P " + rest[:LONGEST_PIECE] + b"\n"
            rest = rest[LONGEST_PIECE:]
        self._open_lines[stream] = rest
        if records:
            self._put(records)

    def _put(self, records: bytes) -> None:
        """Write whole records; one file takes what fits, the next one the rest."""
        while records:
            room = self._each - self._size
            if len(records) <= room:
                cut = len(records)
            else:
                cut = records.rfind(b"\n", 0, max(room, 0)) + 1
                if not cut:
                    cut = len(records) if self._size == 0 else 0
            if cut:
                _write_all(self._file, records[:cut])
                self._size += cut
                records = records[cut:]
            if records:
                self._next()

    def _next(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._number, self._size = self._number + 1, 0
        self._file = os.open(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        oldest = self._number - max(1, self._most // self._each)
        for path in (self._path(oldest), f"{self._path(oldest)}.gz"):
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:06d}.log"


def _pieces(line: bytes, start: bytes) -> bytes:
    cut = [line[at : at + LONGEST_PIECE] for at in range(0, len(line), LONGEST_PIECE)] or [b""]
    return b"".join(start + b" P " + piece + b"\n" for piece in cut[:-1]) + start + b" F " + cut[-1] + b"\n"


def _stamp() -> bytes:
    now = time.time_ns()
    return datetime.fromtimestamp(now // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode() + b".%09dZ" % (now % 10**9)


def _write_all(file: int, data: bytes) -> None:
    """A full disk costs the log, never the program."""
    view = memoryview(data)
    with contextlib.suppress(OSError):
        while view:
            view = view[os.write(file, view) :]
