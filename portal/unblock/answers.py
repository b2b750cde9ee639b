"""Answers about waiting jobs, worked out in a thread of their own and kept for a moment, so that no page waits for cycles."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import connections

from cluster.errors import ApiError
from cluster.port import Obj
from jobs.choices import JobPhase
from jobs.roles import told_phase
from portal.unblock import line
from portal.unblock.copy import Copy, View, current
from portal.unblock.trial import places
from portal.unblock.ways import Asked, Way, ways
from scheduler.framework.record import EvictionRecord
from scheduler.whatif.refused import Free, free_gpus

log = structlog.get_logger(__name__)

BUDGET = 1.0
"""Seconds of computing that the search for ways may take; what was found until then is proved."""
FRESH = 5.0
"""Wall seconds for which an answer is handed out as it is."""
STALE = 60.0
"""Wall seconds for which an answer is handed out, with its age, while the next one is worked out."""
KEPT = 500
"""Answers that are kept."""
REST = 60.0
"""Wall seconds without a question after which the thread ends."""
PLACES = 2_000
"""Places of pods that an answer carries at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """A proved way without the copy that it was proved on. `places` are pod, node and GPU indices."""

    code: str
    values: dict[str, Any]
    patch: Obj | None
    in_place: bool
    starts: int
    pods: int
    cycles: int
    places: tuple[tuple[str, str, tuple[int, ...]], ...]
    evicted: tuple[EvictionRecord, ...]
    delayed: tuple[str, ...]


@dataclass(slots=True)
class Answer:
    """What is known of one job: `state` is working, done, none where there is nothing to look for, or unavailable.

    `rank` of `among` is its place among the waiting jobs of its queue, `place` of `line` among all; 0: it is not in line.
    A pod `asks` so many GPUs; `free` says where there are some for it.
    """

    state: str = "working"
    version: int = 0
    at: float = 0.0
    taken: float = 0.0
    rank: int = 0
    among: int = 0
    place: int = 0
    line: int = 0
    found: list[Found] = field(default_factory=list)
    asks: int = 0
    free: list[Free] = field(default_factory=list)
    milliseconds: float = 0.0
    tried: int = 0

    @property
    def age(self) -> float:
        """Wall seconds since the instant that it is about."""
        return time.monotonic() - self.taken if self.taken else 0.0


Key = tuple[str, str, str, tuple[str, ...]]
"""uid, namespace and name of a job, and the queues to which who asks may submit."""


class Desk:
    """Takes questions and answers them one after the other. Safe from any thread."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, Answer] = OrderedDict()
        self._queue: OrderedDict[Key, None] = OrderedDict()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._copy: Copy | None = None

    def ask(self, key: Key, wait: float = 0.0) -> Answer:
        """The answer as far as it is known within `wait` seconds. Raises Unavailable when there is no cluster."""
        copy, end = current(), time.monotonic() + wait
        with self._changed:
            if self._copy is not copy:
                self._copy = copy
                self._answers.clear()
            known = self._answers.get(key)
            if known is None or (known.state != "working" and known.age > FRESH):
                self._queue[key] = None
                self._start()
                self._changed.notify_all()
            if known is not None and known.state != "working" and known.age < STALE:
                return known  # with its age; the next one is being worked out
            while (left := end - time.monotonic()) > 0:
                answer = self._answers.get(key)
                if answer is not None and answer is not known and answer.state != "working":
                    break
                if key not in self._queue and answer is not None and answer.state != "working":
                    break
                self._changed.wait(left)
            return self._answers.get(key) or known or Answer()

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="unblock", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._changed.wait_for(lambda: bool(self._queue), REST):
                    self._thread = None
                    return
                key = next(reversed(self._queue))  # the newest first: somebody is waiting for it
                copy = self._copy
            try:
                if copy is not None:
                    self._work(copy, key)
            except ApiError as error:
                log.warning("a question about a job could not be answered", job=key[0], error=error.message)
                self._keep(key, Answer("unavailable", taken=time.monotonic()))
            except Exception:
                log.exception("a question about a job failed", job=key[0])
                self._keep(key, Answer("unavailable", taken=time.monotonic()))
            finally:
                with self._changed:
                    self._queue.pop(key, None)
                    self._changed.notify_all()
                connections.close_all()

    def _work(self, copy: Copy, key: Key) -> None:
        began = time.perf_counter()
        with copy.pinned() as view:
            answer = Answer(version=view.version, at=view.at, taken=view.taken)
            job = view.job(key[1], key[2])
            if job is None or (group := view.gang(job)) is None or job["metadata"]["uid"] != key[0]:
                answer.state = "none"
                self._keep(key, answer)
                return
            _place(view, group.uid, answer)
            answer.asks, answer.free = view.alone(lambda: free_gpus(view.sandbox, group.uid))
            known = self._answers.get(key)
            if known is not None and known.found:
                answer.found = list(known.found)  # until the new ones are proved
            self._keep(key, answer)
            if group.ready_count() or told_phase(job) != JobPhase.PENDING:
                answer.state, answer.found = "none", []
            else:
                self._search(view, job, key, answer)
                answer.state = "done"
            answer.milliseconds = (time.perf_counter() - began) * 1000
            self._keep(key, answer)

    def _search(self, view: View, job: Obj, key: Key, answer: Answer) -> None:
        end, runs = time.thread_time() + BUDGET, view.sandbox.runs
        asked = Asked(view, job, key[3], lambda: time.thread_time() > end)
        found: list[Found] = []
        if asked.uid not in view.baseline.started:
            for way in ways(asked):
                found.append(plain(way))
                if len(found) >= len(answer.found):
                    answer.found = list(found)
                    self._keep(key, answer)
        answer.found, answer.tried = found, view.sandbox.runs - runs

    def _keep(self, key: Key, answer: Answer) -> None:
        with self._changed:
            self._answers[key] = answer
            self._answers.move_to_end(key)
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)
            self._changed.notify_all()


def _place(view: View, uid: str, answer: Answer) -> None:
    """The job's place among those that wait, its queue's and all."""
    answer.line = len(line.waiting(view.baseline))
    found = line.position(view.baseline, view.cache.jobs, uid)
    if found is not None:
        answer.place, answer.rank, answer.among = found.place, found.rank, found.among


def plain(way: Way) -> Found:
    """A way as data."""
    binds = way.played.binds.get(way.change.uid, [])
    return Found(
        way.code, way.values, way.patch, way.in_place, way.starts, way.pods, way.played.cycles,
        tuple(places(binds)[:PLACES]), tuple(way.evicted), tuple(way.delayed),
    )  # fmt: skip


desk = Desk()
