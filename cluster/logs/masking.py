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
        self._held = b""
        self.learn(secrets)

    def learn(self, secrets: list[bytes]) -> None:
        """From now on mask these: patterns, longest first."""
        self._secrets = [secret for secret in secrets if len(secret) <= _LONGEST_HELD]
        self._found = re.compile(b"|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._starts = {secret[0] for secret in self._secrets}
        self._longest = max(map(len, self._secrets), default=0)

    def feed(self, data: bytes) -> bytes:
        """The next piece, masked as far as it is known what it is."""
        data, self._held = self._held + data, b""
        if self._found is None:
            return data
        whole = [match.span() for match in self._found.finditer(data)]
        keep = self._settled(data, whole)
        self._held = data[keep:]
        pieces, position = [], 0
        for begin, end in whole:
            if end <= keep:
                pieces += [data[position:begin], MASK]
                position = end
        return b"".join([*pieces, data[position:keep]])

    def end(self) -> bytes:
        """What was still held."""
        held, self._held = self._held, b""
        return held if self._found is None else self._found.sub(MASK, held)

    def _settled(self, data: bytes, whole: list[tuple[int, int]]) -> int:
        """How many bytes from the start belong to no secret that may still go on, or go on further."""
        inside = {index for begin, end in whole for index in range(max(begin + 1, len(data) - self._longest), end)}
        for index in range(max(0, len(data) - self._longest + 1), len(data)):
            if data[index] in self._starts and index not in inside:
                tail = data[index:]
                if any(len(secret) > len(tail) and secret.startswith(tail) for secret in self._secrets):
                    return index
        return len(data)
