"""What is asked of a log, by kubectl's own parameter names. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cluster.errors import BadRequest, FieldError
from cluster.logs.records import instant
from cluster.objects import parse_time
from cluster.said import said, told

MOST_LINES = 1_000_000
_TRUE, _FALSE = ("true", "1"), ("false", "0", "")
POD = (
    "container", "follow", "previous", "tailLines", "sinceSeconds", "sinceTime", "timestamps", "limitBytes",
    "uid", "format", "download",
)  # fmt: skip
JOB = (*POD, "task", "pod")


@dataclass(frozen=True, slots=True)
class Asked:
    """`tail` None: all lines; `since` an instant as records write it, or empty; `limit` bytes, None: no limit."""

    container: str = ""
    task: str = ""
    pod: str = ""
    follow: bool = False
    previous: bool = False
    tail: int | None = None
    since: str = ""
    stamps: bool = False
    limit: int | None = None
    uid: str = ""
    is_json: bool = False
    download: bool = False


def parse(given: Mapping[str, str], known: tuple[str, ...], now: float) -> Asked:
    """Every fault at once. `now` is the cluster's present. Raises BadRequest."""
    faults = [
        FieldError(f"?{key}", said("is no parameter of logs; there are %(known)s", known=", ".join(known)))
        for key in given
        if key not in known
    ]
    flags = {key: _flag(given.get(key, ""), key, faults) for key in ("follow", "previous", "timestamps", "download")}
    numbers = {key: _number(given.get(key), key, faults) for key in ("tailLines", "sinceSeconds", "limitBytes")}
    since = _since(given.get("sinceTime"), numbers["sinceSeconds"], now, faults)
    if given.get("format", "text") not in ("text", "json"):
        faults.append(FieldError("?format", said("is text or json")))
    if faults:
        raise BadRequest("; ".join(f"{fault.pointer} {fault.message}" for fault in faults), faults)
    return Asked(
        container=given.get("container", ""),
        task=given.get("task", ""),
        pod=given.get("pod", ""),
        follow=flags["follow"],
        previous=flags["previous"],
        tail=numbers["tailLines"],
        since=since,
        stamps=flags["timestamps"],
        limit=numbers["limitBytes"],
        uid=given.get("uid", ""),
        is_json=given.get("format") == "json",
        download=flags["download"],
    )


def _flag(text: str, key: str, faults: list[FieldError]) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        faults.append(FieldError(f"?{key}", said("is true or false, not %(text)r", text=text[:40])))
    return text.lower() in _TRUE


def _number(text: str | None, key: str, faults: list[FieldError]) -> int | None:
    if text is None or text == "":
        return None
    if not re.fullmatch(r"[0-9]{1,12}", text):
        faults.append(FieldError(f"?{key}", said("is a whole number of 0 or more, not %(text)r", text=text[:40])))
        return None
    return min(int(text), MOST_LINES) if key == "tailLines" else int(text)


def _since(text: str | None, seconds: int | None, now: float, faults: list[FieldError]) -> str:
    if text and seconds is not None:
        faults.append(FieldError("?sinceTime", said("goes not together with sinceSeconds")))
    if text:
        try:
            return instant(parse_time(text.replace(" ", "+")))
        except (ValueError, OverflowError, OSError) as error:
            faults.append(FieldError("?sinceTime", told(error)))
            return ""
    return "" if seconds is None else instant(max(0.0, now - seconds))
