"""Workers of other processes have local copies of their own: a key that is asked for is worked once a copy shows why."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from cluster.clock import SystemClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import JOB, POD_GROUP
from jobs.controller.crew import Dispatcher, Worker
from jobs.controller.shared import SharedQueue
from tests.jobs.test_shared_queue import A, connection, pytestmark, queue  # noqa: F401 - fixtures, and what they need
from tests.jobs.world import SCHEDULERS, World, all_rules, job


def test_what_the_dispatcher_saw_and_what_the_last_worker_wrote_both_count(queue: SharedQueue) -> None:  # noqa: F811
    queue.add(A, {"jobs": 5})
    first = queue.take()
    assert first is not None
    assert first.versions == {"jobs": 5}
    queue.add(A, {"jobs": 9, "pods": 3})
    queue.add(A, {"jobs": 8})
    queue.done(first, {"jobs": 7, "podgroups": 4})
    second = queue.take()
    assert second is not None
    assert second.versions == {"jobs": 9, "pods": 3, "podgroups": 4}


class Late:
    """A cluster whose watches show nothing while they are held up, as on a busy machine."""

    def __init__(self, inner: EmbeddedCluster) -> None:
        self._inner, self.held = inner, threading.Event()

    def watch(self, *what: Any, **how: Any) -> Any:
        return _LateWatch(self._inner.watch(*what, **how), self.held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _LateWatch:
    def __init__(self, inner: Any, held: threading.Event) -> None:
        self._inner, self._held = inner, held

    def drain(self) -> list[Any]:
        return [] if self._held.is_set() else self._inner.drain()

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize("news", ["a new job", "a job that went"])
def test_a_worker_whose_copy_is_late_waits_for_what_it_was_asked_for(queue: SharedQueue, news: str) -> None:  # noqa: F811
    cluster, clock = EmbeddedCluster(admission=all_rules()), SystemClock()
    late, stop = Late(cluster), threading.Event()
    world = World.over(cluster, clock)
    worker = Worker(late, clock, queue, schedulers=SCHEDULERS)
    dispatcher = Dispatcher(cluster, clock, queue, lambda n: None, lambda: 0, schedulers=SCHEDULERS)
    threading.Thread(target=dispatcher.run, args=(stop,), daemon=True).start()
    try:
        assert worker.start()
        assert dispatcher.leads.wait(10)
        settle(worker)
        if news == "a job that went":
            world.submit(job())
            settle(worker)
            assert [obj["metadata"]["name"] for obj in cluster.list(JOB).items] == ["train"]
        late.held.set()
        if news == "a new job":
            world.submit(job())
        else:
            group = cluster.list(POD_GROUP).items[0]["metadata"]
            cluster.delete(POD_GROUP, group["name"], group["namespace"])
        release = threading.Timer(0.5, late.held.clear)
        release.start()
        settle(worker)
        assert len(cluster.list(POD_GROUP).items) == 1, "the pass was made before the copy showed the news, and none came after"
    finally:
        stop.set()
        worker.stop()


def settle(worker: Worker, quiet: float = 1.5) -> None:
    """Work until nothing was asked for a while."""
    last = time.monotonic()
    while time.monotonic() - last < quiet:
        if worker.work_one():
            last = time.monotonic()
        else:
            time.sleep(0.01)
