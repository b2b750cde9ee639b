"""Runs the controllers: one watch feeds one local copy; what changed becomes keys; workers take the keys.

`run` does it in threads until told to stop. `settle` does it in the caller's thread until nothing is left to do now, which is
what tests, scenarios and simulated time need.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from cluster.clock import Clock
from cluster.errors import ApiError
from cluster.patience import Patience
from cluster.port import Cluster
from cluster.rests import Rests
from jobs.controller.roster import Roster
from jobs.controller.workqueue import WorkQueue

WORKERS = 3
COALESCE_SECONDS, AT_ONCE_SECONDS, MANY = 0.02, 0.003, 20
"""Changes that come within so many wall seconds of each other are worked together: the first while many come, else the second."""
SHORT_PASS, LONGEST_PAUSE = 0.02, 1.0
"""A key whose passes take more than the first in processor seconds waits twice as long for changes, at most the second. What a
pass waits for a server is no reason to wait longer."""
LONGEST_WAIT = 10.0
"""Wall seconds between two tries to watch a cluster that is away, or to make what must be there, at most."""

log = logging.getLogger(__name__)


class ControllerManager:
    """All controllers over one cluster: of jobs, plain pods, queues, flows and cron jobs.

    `rest` are the seconds that a status rests before it is written when only counts have changed.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        workers: int = WORKERS,
        schedulers: Sequence[str] | None = None,
        rest: float = 0.0,
    ) -> None:
        self._roster = Roster.over(cluster, clock, schedulers=schedulers, rests=Rests(rest))
        self.informer, self._controllers = self._roster.informer, self._roster.controllers
        self._clock, self._workers = clock, workers
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(clock)
        self._pauses: dict[tuple[str, str], float] = {}
        self._begun = False

    def due(self) -> int:
        """Keys that wait for a worker."""
        return len(self._queue)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; blocks. A worker that is in the middle of a key finishes it."""
        changed = threading.Event()
        threads: list[threading.Thread] = []
        patience = Patience(first=0.5, longest=LONGEST_WAIT)
        while not stop.is_set():
            try:
                self.informer.start(changed.set)
                break
            except ApiError as error:
                log.warning("the cluster cannot be watched yet: %s", error)
                stop.wait(patience.next())
        patience.reset()
        again = 0.0
        try:
            while not stop.is_set():
                changed.wait(0.2)
                changed.clear()
                many = self._pump() >= MANY
                if not threads and self.informer.synced and time.monotonic() >= again:
                    threads = self._spawn() if self._begin() else []
                    again = time.monotonic() + patience.next()
                stop.wait(0 if not threads else COALESCE_SECONDS if many else AT_ONCE_SECONDS)
        finally:
            self._queue.close()
            for thread in threads:
                thread.join()
            self.informer.stop()

    def _spawn(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._work, name=f"controller-{n}", daemon=True) for n in range(self._workers)]
        for thread in threads:
            thread.start()
        return threads

    def settle(self, limit: int = 100_000) -> int:
        """Work in this thread until nothing is left to do at this moment of the clock; how many keys were worked.

        Raises RuntimeError when it takes more than `limit` keys: two parties then undo each other's work.
        """
        if not self._begun:
            self.informer.start()
            self._pump()
            self._begin()
        worked = 0
        while self._pump() or len(self._queue):
            while (key := self._queue.get(timeout=0)) is not None:
                self._handle(key)
                worked += 1
                if worked > limit:
                    raise RuntimeError(f"the controllers do not come to rest; the last key was {key}")
        return worked

    def close(self) -> None:
        """End what `settle` began."""
        self.informer.stop()

    def next_due(self) -> float | None:
        """When something falls due by itself (epoch seconds by the clock), None when nothing does."""
        return self._queue.next_due()

    def _pump(self) -> int:
        """Turn what changed into keys; how many changes there were."""
        changes = self.informer.pump()
        for key in self._roster.concerned(changes):
            self._ask(key)
        return len(changes)

    def _ask(self, key: tuple[str, str]) -> None:
        """Have a key worked: soon; one whose passes take long waits a little, so that many changes make one pass."""
        if pause := self._pauses.get(key):
            self._queue.add_after(key, pause)
        else:
            self._queue.add(key)

    def _pace(self, key: tuple[str, str], took: float) -> None:
        """Remember how long a key should wait for more changes, after a pass that took so many processor seconds."""
        scale = self._clock.real(1.0)
        if took > SHORT_PASS and scale > 0:
            self._pauses[key] = min(2 * took, LONGEST_PAUSE) / scale
        else:
            self._pauses.pop(key, None)

    def _begin(self) -> bool:
        """Once the local copy is complete, let the controllers make what must be there. Whether work may start."""
        if self._begun or not self.informer.synced:
            return self._begun
        try:
            for controller in self._controllers.values():
                controller.start()
        except ApiError as error:
            log.warning("the controllers cannot start yet: %s", error)
            return False
        self._begun = True
        return True

    def _work(self) -> None:
        while (key := self._queue.get()) is not None:
            self._handle(key)

    def _handle(self, key: tuple[str, str]) -> None:
        """Work one key; whatever goes wrong with it, the other keys go on."""
        name, item = key
        begin = time.thread_time()
        try:
            again = self._controllers[name].reconcile(item)
        except Exception as error:  # noqa: BLE001 - told on the object and in the log, and tried again
            self._roster.tell_failure(key, error, self._queue.retry(key))
        else:
            self._queue.succeeded(key)
            if again is not None:
                self._queue.add_after(key, again)
        finally:
            self._pace(key, time.thread_time() - begin)
            self._queue.done(key)
