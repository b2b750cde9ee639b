"""Secrets do not get into logs: each value is replaced, also where it comes in pieces."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

SHORTEST = 6
"""Bytes of a value that is masked; a shorter one would be found everywhere."""
MASK = b"******"
_LONGEST_HELD = 65_536


def patterns(values: Iterable[bytes]) -> list[bytes]:
    """What to look for: each value, its lines when it has several, and its base64 form; longest first."""
    found: set[bytes] = set()
    for value in values:
        value = value.strip(b"\r\n")
        pieces = {value, *(line.strip() for line in value.splitlines())}
        found |= {piece for piece in pieces if len(piece) >= SHORTEST}
        if len(value) >= SHORTEST:
            found.add(base64.b64encode(value).rstrip(b"="))
    return sorted(found, key=lambda piece: (-len(piece), piece))


class Mask:
    """One stream. `feed` gives back what is safe to keep; the start of a possible secret is held until the next piece."""

    def __init__(self, secrets: list[bytes]) -> None:
        self._secrets = [secret for secret in secrets if len(secret) <= _LONGEST_HELD]
        self._found = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._starts = {secret[0] for secret in self._secrets}
        self._longest = max(map(len, self._secrets), default=0)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The next piece, masked as far as it is known what it is."""
        if self._found is None:
            return data
        data = self._held + data
        keep = len(data) - self._open_tail(data)
        kept, self._held = data[:keep], data[keep:]
        return self._found.sub(MASK, kept)

    def end(self) -> bytes:
        """What was still held."""
        held, self._held = self._held, b""
        return held if self._found is None else self._found.sub(MASK, held)

    def _open_tail(self, data: bytes) -> int:
        """How many bytes at the end may belong to a secret that is not all there yet."""
        assert self._found is not None
        begin = max(0, len(data) - self._longest + 1)
        for match in self._found.finditer(data, begin and max(0, begin - self._longest)):
            begin = max(begin, match.end())  # a whole secret begins nothing
        for index in range(begin, len(data)):
            if data[index] in self._starts:
                tail = data[index:]
                if any(secret.startswith(tail) and len(secret) > len(tail) for secret in self._secrets):
                    return len(tail)
        return 0
