"""Two manifests side by side, line by line; long stretches that are alike are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

AROUND = 3
"""Lines that are shown around a change."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of the table. `kind`: same, change, gone (left only), new (right only), fold (`count` lines alike)."""

    kind: str
    left: str = ""
    right: str = ""
    left_number: int = 0
    right_number: int = 0
    count: int = 0


def compare(left: str, right: str) -> list[Pair]:
    """The lines of both; an empty list when they are equal."""
    a, b = left.splitlines(), right.splitlines()
    if a == b:
        return []
    pairs: list[Pair] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            pairs += _same(a, i1, i2, j1, is_first=i1 == 0, is_last=i2 == len(a))
            continue
        for at in range(max(i2 - i1, j2 - j1)):
            old, new = i1 + at < i2, j1 + at < j2
            pairs.append(
                Pair(
                    "change" if old and new else "gone" if old else "new",
                    a[i1 + at] if old else "",
                    b[j1 + at] if new else "",
                    i1 + at + 1 if old else 0,
                    j1 + at + 1 if new else 0,
                )
            )
    return pairs


def _same(a: Sequence[str], i1: int, i2: int, j1: int, *, is_first: bool, is_last: bool) -> list[Pair]:
    rows = [Pair("same", a[at], a[at], at + 1, j1 + at - i1 + 1) for at in range(i1, i2)]
    before, after = 0 if is_first else AROUND, 0 if is_last else AROUND
    hidden = len(rows) - before - after
    if hidden <= 2:
        return rows
    return [*rows[:before], Pair("fold", count=hidden), *rows[len(rows) - after :]]
