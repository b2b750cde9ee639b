"""The work queue in Redis: the promises of `workqueue`, and what happens when a worker dies."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator

import pytest
import redis

from cluster.clock import SystemClock
from cluster.embedded.store import EmbeddedCluster
from cluster.kinds import CONFIG_MAP, JOB, POD, POD_GROUP
from jobs.controller.crew import Dispatcher, Worker
from jobs.controller.shared import SharedQueue
from tests.jobs.world import SCHEDULERS, World, all_rules, job, task

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(not os.environ.get("REDIS_URL"), reason="no Redis"),
]
A, B = ("job", "default/a"), ("job", "default/b")


@pytest.fixture
def connection() -> Iterator[redis.Redis]:
    connection = redis.Redis.from_url(os.environ["REDIS_URL"])
    yield connection
    connection.close()


@pytest.fixture
def queue(connection: redis.Redis) -> Iterator[SharedQueue]:
    """A queue of the test's own, whose leases are short."""
    name = f"test:{uuid.uuid4().hex}"
    yield SharedQueue(connection, name=name, lease_seconds=0.3)
    for key in connection.scan_iter(f"{name}*"):
        connection.delete(key)


def taken(queue: SharedQueue) -> list[tuple[str, str]]:
    found = []
    while (lease := queue.take()) is not None:
        found.append(lease.key)
    return found


def test_a_key_that_is_asked_for_twice_is_worked_once(queue: SharedQueue):
    assert [queue.add(A), queue.add(A), queue.add(B)] == [True, False, True]
    assert taken(queue) == [A, B]


def test_nobody_else_gets_a_key_that_is_being_worked_and_it_comes_again_afterwards(queue: SharedQueue):
    queue.add(A)
    lease = queue.take()
    assert lease is not None
    queue.add(A)
    assert queue.take() is None
    queue.done(lease, {})
    assert taken(queue) == [A]


def test_the_earliest_of_several_delays_holds(queue: SharedQueue):
    assert queue.add_after(A, 60) is True
    assert queue.add_after(A, 90) is False
    assert queue.take() is None
    assert queue.add_after(A, 0.05) is True
    time.sleep(0.1)
    assert taken(queue) == [A]


def test_a_key_that_fails_waits_twice_as_long_each_time_until_it_succeeds(queue: SharedQueue):
    assert [queue.retry(A) for _ in range(3)] == [1, 2, 3]
    queue.succeeded(A)
    assert queue.retry(A) == 1


def test_what_a_dead_worker_had_is_wanted_again_and_its_late_word_counts_no_more(queue: SharedQueue):
    queue.add(A)
    dead = queue.take()
    assert dead is not None
    assert queue.reap() == 0
    time.sleep(0.35)
    assert queue.reap() == 1
    again = queue.take()
    assert again is not None
    assert again.key == A
    assert queue.renew(dead) is False
    queue.done(dead, {})
    queue.add(A)
    assert queue.take() is None, "the dead worker must not give back what another has"
    queue.done(again, {})
    assert taken(queue) == [A]


def test_a_worker_that_renews_keeps_its_key(queue: SharedQueue):
    queue.add(A)
    lease = queue.take()
    assert lease is not None
    for _ in range(4):
        time.sleep(0.15)
        assert queue.renew(lease)
        assert queue.reap() == 0


def test_the_next_worker_is_told_what_it_must_have_seen(queue: SharedQueue):
    queue.add(A)
    lease = queue.take()
    assert lease is not None
    queue.done(lease, {"pods": 17})
    queue.add(A)
    following = queue.take()
    assert following is not None
    assert following.versions == {"pods": 17}


def test_one_leads_at_a_time_and_the_next_when_it_is_gone(queue: SharedQueue):
    assert queue.lead("first", 0.2)
    assert not queue.lead("second", 0.2)
    assert queue.lead("first", 0.2)
    time.sleep(0.25)
    assert queue.lead("second", 5)
    queue.resign("first")
    assert not queue.lead("first", 5)
    queue.resign("second")
    assert queue.lead("first", 5)


def test_refusals_are_counted_over_all_processes(queue: SharedQueue, connection: redis.Redis):
    other = SharedQueue(connection, name=queue._name)
    for count in range(3):
        (queue if count % 2 else other).refusals.add("default/a")
    assert queue.refusals.of("default/a") == other.refusals.of("default/a") == 3
    other.refusals.clear("default/a")
    assert queue.refusals.of("default/a") == 0


class Crew:
    """A dispatcher and workers over one cluster, in threads; bells are threads too."""

    def __init__(self, queue: SharedQueue, workers: int) -> None:
        self.cluster, self.clock = EmbeddedCluster(admission=all_rules()), SystemClock()
        self.world = World.over(self.cluster, self.clock)
        self.stop = threading.Event()
        self.workers = [Worker(self.cluster, self.clock, queue, schedulers=SCHEDULERS) for _ in range(workers)]
        self.dispatcher = Dispatcher(self.cluster, self.clock, queue, lambda n: None, lambda: 0, schedulers=SCHEDULERS)
        self.threads = [threading.Thread(target=self.dispatcher.run, args=(self.stop,), daemon=True)]
        for worker in self.workers:
            assert worker.start()
            self.threads += [threading.Thread(target=self._work, args=(worker,), daemon=True) for _ in range(2)]
        for thread in self.threads:
            thread.start()
        assert self.dispatcher.leads.wait(10)

    def _work(self, worker: Worker) -> None:
        while not self.stop.is_set():
            if not worker.work_one():
                time.sleep(0.01)

    def until(self, holds, seconds: float = 60) -> None:
        """Let stand-ins of scheduler and kubelet work until something holds."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end
            self.world.schedule()
            self.world.run_kubelet()
            time.sleep(0.02)

    def close(self) -> None:
        self.stop.set()
        for worker in self.workers:
            worker.stop()
        for thread in self.threads:
            thread.join(10)


@pytest.fixture
def crew(queue: SharedQueue) -> Iterator[Crew]:
    crew = Crew(queue, 2)
    yield crew
    crew.close()


def phases(crew: Crew) -> set[str]:
    return {((obj.get("status") or {}).get("state") or {}).get("phase", "") for obj in crew.cluster.list(JOB).items}


def test_two_workers_bring_many_jobs_through_restarts_to_their_end(crew: Crew):
    for number in range(8):
        crew.world.submit(job(f"train-{number}", task(replicas=3)))
    crew.until(lambda: phases(crew) == {"Running"})
    for number in range(8):
        crew.world.command("RestartJob", f"train-{number}")
    crew.until(
        lambda: all(obj["status"]["retryCount"] == 1 for obj in crew.cluster.list(JOB).items) and phases(crew) == {"Running"}
    )
    pods = crew.cluster.list(POD).items
    assert len(pods) == len({pod["metadata"]["name"] for pod in pods}) == 24
    assert {pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in pods} == {"1"}
    assert len(crew.cluster.list(POD_GROUP).items) == 8
    for pod in pods:
        crew.world.end(pod["metadata"]["name"])
    crew.until(lambda: phases(crew) == {"Completed"})
    assert [obj["status"]["succeeded"] for obj in crew.cluster.list(JOB).items] == [3] * 8


def test_a_redis_that_forgot_everything_is_told_all_again(crew: Crew, queue: SharedQueue, connection: redis.Redis):
    crew.world.submit(job())
    crew.until(lambda: phases(crew) == {"Running"})
    for key in connection.scan_iter(f"{queue._name}*"):
        connection.delete(key)
    for pod in crew.world.pods("train"):
        crew.world.end(pod["metadata"]["name"])
    for key in connection.scan_iter(f"{queue._name}*"):
        connection.delete(key)
    crew.until(lambda: phases(crew) == {"Completed"})
    assert [obj["status"]["succeeded"] for obj in crew.cluster.list(JOB).items] == [2]


def test_counts_rest_for_all_processes_together(queue: SharedQueue, connection: redis.Redis):
    first, second = (SharedQueue(connection, name=queue._name, rest=1.0).rests for _ in range(2))
    assert [first.left("default/a", 10.0), second.left("default/a", 10.5), first.left("default/a", 11.0)] == [1.0, 0.5, 0.0]
    second.written("default/a")
    assert first.left("default/a", 12.0) == 1.0
    assert queue.rests.left("default/a", 12.0) == 0.0


def test_a_worker_that_was_held_up_makes_nothing_for_a_job_that_has_ended_meanwhile(
    queue: SharedQueue, monkeypatch: pytest.MonkeyPatch
):
    """It looks for the ConfigMap, is held up until another worker has brought the job to its end, and would make it then."""
    cluster, held, ended = EmbeddedCluster(admission=all_rules()), threading.Event(), threading.Event()
    world = World.over(cluster, cluster.clock)
    slow, quick = (Worker(cluster, cluster.clock, queue, schedulers=SCHEDULERS) for _ in range(2))
    assert slow.start()
    assert quick.start()
    get, slow_thread = cluster.get, threading.Thread(target=lambda: slow.work_one())

    def hold(kind, name, namespace=""):
        if threading.current_thread() is slow_thread and kind == CONFIG_MAP and not held.is_set():
            held.set()
            assert ended.wait(20)
        return get(kind, name, namespace)

    monkeypatch.setattr(cluster, "get", hold)
    monkeypatch.setattr(slow, "_queue", HeldUp(queue, held))
    for title, parent in (("root", {}), ("default", {"parent": "root"})):
        world.make_queue(title, weight=1, **parent)
    world.submit(job(plugins={"svc": []}))
    queue.add(("job", "default/train"))
    slow_thread.start()
    assert held.wait(10)
    time.sleep(queue.lease_seconds + 0.1)
    assert queue.reap() == 1

    def goes(wanted: str) -> None:
        end = time.monotonic() + 20
        while world.phase() != wanted:
            assert time.monotonic() < end
            queue.add(("job", "default/train"))
            quick.work_one()
            world.schedule()
            world.run_kubelet()

    goes("Running")
    assert cluster.get(CONFIG_MAP, "train-svc", "default")
    for pod in world.pods("train"):
        world.end(pod["metadata"]["name"])
    goes("Completed")
    queue.add(("job", "default/train"))
    quick.work_one()
    assert cluster.list(CONFIG_MAP).items == []
    ended.set()
    slow_thread.join(10)
    assert cluster.list(CONFIG_MAP).items == []
    assert world.phase() == "Completed"
    for worker in (slow, quick):
        worker.stop()


class HeldUp:
    """The queue as a process sees it that does not run: nothing is renewed."""

    def __init__(self, queue: SharedQueue, held: threading.Event) -> None:
        self._queue, self._held = queue, held

    def renew(self, lease) -> bool:
        if self._held.is_set():
            raise redis.RedisError("this process does not run")
        return self._queue.renew(lease)

    def __getattr__(self, name: str):
        return getattr(self._queue, name)
