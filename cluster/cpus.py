"""Lists of CPUs as Linux writes them, `0-3,8`, and as the bits of an integer."""

from __future__ import annotations

import re

from cluster.said import said

LARGEST = 4095
"""The largest CPU id that is taken."""

_PART = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", re.ASCII)


def parse_cpus(text: str) -> int:
    """`0-3,8` as bits; an empty list has none. Raises ValueError."""
    mask = 0
    for part in text.split(",") if text else ():
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(said("%(text)r is no list of CPUs: write them as '0-3,8'", text=text[:100]))
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last <= LARGEST:
            raise ValueError(
                said(
                    "%(part)s is no range of CPUs: ids go from 0 to %(largest)s, the lower one first", part=part, largest=LARGEST
                )
            )
        mask |= ((1 << (last - first + 1)) - 1) << first
    return mask


def format_cpus(mask: int) -> str:
    """Bits as `0-3,8`."""
    parts, first = [], 0
    while mask >> first:
        skip = ((mask >> first) & -(mask >> first)).bit_length() - 1
        first += skip
        ones = ~(mask >> first)
        length = (ones & -ones).bit_length() - 1
        parts.append(str(first) if length == 1 else f"{first}-{first + length - 1}")
        first += length
    return ",".join(parts)


def each_cpu(mask: int) -> list[int]:
    """The ids in a mask, ascending."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
