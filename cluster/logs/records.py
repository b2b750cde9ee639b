"""One record of a log, and its text as people can read it.

On disk a record is `<instant> <o|e> <F|P> <bytes>` and a newline: standard output or error; a full line, or a piece of a
longer one. The instant is RFC 3339 in UTC with nine decimals, so that records sort by it as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cluster.objects import parse_time, stamp

_HEAD = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) ([oe]) ([FP]) ")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()*+][A-Za-z0-9]|[@-_a-z=>]?)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Record:
    """A line, or a piece of one (`full` is False when more of it follows)."""

    at: str
    stream: str  # "o" or "e"
    full: bool
    text: bytes

    def shown(self) -> str:
        """The text for a page: valid, without escapes; a line that was written over shows what was written last."""
        text = _ANSI.sub("", self.text.decode(errors="replace").rstrip("\r"))
        if "\r" in text:
            text = text.rpartition("\r")[2]
        return _CONTROL.sub("\ufffd", text)


def parse(line: bytes) -> Record | None:
    """The record of a line on disk; None for one that was torn when the machine went down."""
    found = _HEAD.match(line)
    if found is None:
        return None
    return Record(found[1].decode(), found[2].decode(), found[3] == b"F", line[found.end() :])


def instant(seconds: float) -> str:
    """An instant as records write it."""
    return f"{stamp(seconds)[:-1]}.{round((seconds % 1) * 1e9) % 10**9:09d}Z"


def seconds(at: str) -> float:
    """And back."""
    return parse_time(at[:26] + "Z")
