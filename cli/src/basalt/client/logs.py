"""Logs of jobs: the lines of all containers, in the order of time, once or as they come."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from basalt.client.errors import ServerFailed, Unreachable
from basalt.client.transport import Query, Transport

RETRY, AGAIN = 2.0, 0.5
"""Seconds between two tries to come back to a log that broke off, and to one that is not begun."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a container, with the instant at which it was written. `full` is False for a line that goes on in the next."""

    pod: str
    task: str
    container: str
    at: str
    stream: str
    text: str
    full: bool


def read(
    transport: Transport,
    job: str,
    namespace: str,
    query: Query,
    *,
    still: Callable[[], bool] = lambda: False,
    on_trouble: Callable[[str], None] | None = None,
) -> Iterator[Line]:
    """The lines of a job. Followed (`follow`), a log that breaks off is taken up where it was, each line once.

    A followed log is at its end when no container runs; `still` says whether more will come (pods are not made yet, or anew).
    """
    path = f"jobs/{quote(namespace, safe='')}/{quote(job, safe='')}/logs"
    asked: dict[str, Any] = {**query, "format": "json"}
    last: dict[tuple[str, str], str] = {}
    told = False
    while True:
        try:
            with transport.stream(path, asked) as lines:
                told = False
                over = yield from _lines(lines, last)
            if not asked.get("follow") or (over and not still()):
                return
            trouble = "" if over else "the log broke off"
        except (Unreachable, ServerFailed) as error:
            if not asked.get("follow") or not transport.has_answered:
                raise
            trouble = error.message
        if on_trouble and trouble and not told:
            on_trouble(f"{trouble.rstrip('.')}; trying again")
        told = told or bool(trouble)
        time.sleep(RETRY if trouble else AGAIN)
        if last:
            asked = {key: value for key, value in asked.items() if key not in ("tailLines", "sinceSeconds")}
            asked["sinceTime"] = min(last.values())


def _lines(chunks: Iterator[str], last: dict[tuple[str, str], str]) -> Generator[Line, None, bool]:
    """Lines that are newer than the last ones known of each container; returns whether the log is at its end."""
    sources: dict[int, dict[str, Any]] = {}
    before = dict(last)
    for chunk in chunks:
        if not chunk:
            continue
        said = json.loads(chunk)
        sources.update({source["id"]: source for source in said.get("sources", ())})
        for number, at, stream, full, text in said.get("lines", ()):
            source = sources[number]
            key = (source["pod"], source["container"])
            if at <= before.get(key, ""):
                continue
            last[key] = at
            yield Line(source["pod"], source["task"], source["container"], at, stream, text, bool(full))
        if said.get("end"):
            return True
    return False
