"""Queues that were let in a moment ago and may not be there to read yet.

A webhook answers before the object is kept: two queues that come at once would each be weighed against a tree without the
other. So what this process lets in counts as there for a moment, until it is seen, or was given up by another's refusal.
Another replica does not know of it; what slips through there is told by the scheduler's verdicts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster import objects
from cluster.errors import NotFound
from cluster.kinds import QUEUE, Kind
from cluster.port import Obj, Page, Reader

if TYPE_CHECKING:
    from portal.webhooks.review import Asked

HELD_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Write:
    """What was let in: the queue as it will be (None: deleted), and the version that it was written over."""

    obj: Obj | None
    over: int
    until: float


class Pending:
    """The writes of the last moments, by name. Queues are weighed one after the other."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._writes: dict[str, _Write] = {}
        self._now = now

    @contextmanager
    def weighing(self, asked: Asked, live: Reader) -> Iterator[_Overlaid]:
        """The cluster with what is under way; call `let_in` of it when the write of `asked` may go on."""
        with self._lock:
            now = self._now()
            self._writes = {name: write for name, write in self._writes.items() if write.until > now}
            yield _Overlaid(live, self._writes, asked, now + HELD_SECONDS)


class _Overlaid:
    """A reader that shows queues as they will be."""

    def __init__(self, live: Reader, writes: dict[str, _Write], asked: Asked, until: float) -> None:
        self._live, self._writes, self._asked, self._until = live, writes, asked, until

    def let_in(self) -> None:
        """The write goes on, unless it is only tried."""
        asked = self._asked
        if asked.kind == QUEUE and not asked.dry_run:
            over = objects.resource_version(asked.old) if asked.old is not None else 0
            obj = None if asked.operation == "DELETE" else asked.obj
            self._writes[objects.name(asked.obj)] = _Write(obj, over, self._until)

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        """The object."""
        if kind != QUEUE:
            return self._live.get(kind, name, namespace)
        found = next((queue for queue in self.list(QUEUE).items if objects.name(queue) == name), None)
        if found is None:
            raise NotFound(f"there is no Queue {name!r}")
        return found

    def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 0, token: str = ""
    ) -> Page:
        """Objects of a kind."""
        page = self._live.list(kind, namespace, labels=labels, fields=fields, limit=limit, token=token)
        if kind != QUEUE or not self._writes:
            return page
        there = {objects.name(queue): queue for queue in page.items}
        for name, write in self._writes.items():
            seen = objects.resource_version(there[name]) if name in there else 0
            if seen != write.over:
                continue  # it is kept already, or somebody wrote over it
            if write.obj is None:
                there.pop(name, None)
            else:
                there[name] = {**write.obj, "status": (there.get(name) or {}).get("status") or {}}
        return Page(list(there.values()), page.resource_version, page.continue_token)
