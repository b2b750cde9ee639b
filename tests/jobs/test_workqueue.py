"""The work queue: once each, one worker a key, later, and again after failures."""

from __future__ import annotations

import threading
import time

from cluster.clock import ManualClock, SystemClock
from jobs.controller.workqueue import WorkQueue


def drain(queue: WorkQueue[str]) -> list[str]:
    found = []
    while (key := queue.get(timeout=0)) is not None:
        found.append(key)
        queue.done(key)
    return found


def test_a_key_asked_for_twice_is_worked_once_and_in_order():
    queue: WorkQueue[str] = WorkQueue(ManualClock())
    for key in ("a", "b", "a"):
        queue.add(key)
    assert drain(queue) == ["a", "b"]


def test_a_key_asked_for_while_it_is_worked_is_worked_again_afterwards_and_not_at_once():
    queue: WorkQueue[str] = WorkQueue(ManualClock())
    queue.add("a")
    assert queue.get(timeout=0) == "a"
    queue.add("a")
    assert queue.get(timeout=0) is None
    queue.done("a")
    assert drain(queue) == ["a"]


def test_a_delayed_key_comes_when_the_clock_says_so_and_the_earliest_wish_holds():
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    assert queue.next_due() == 5
    clock.advance(4.9)
    assert drain(queue) == []
    clock.advance(0.1)
    assert drain(queue) == ["a"]
    clock.advance(100)
    assert drain(queue) == []


def test_failures_double_the_delay_up_to_a_limit_and_success_forgets_them():
    clock = ManualClock()
    queue: WorkQueue[str] = WorkQueue(clock, first_delay=1, longest_delay=5)
    delays = []
    for _ in range(5):
        queue.retry("a")
        due = queue.next_due()
        assert due is not None
        delays.append(due - clock.now())
        clock.advance(delays[-1])
        drain(queue)
    assert delays == [1, 2, 4, 5, 5]
    queue.succeeded("a")
    assert queue.retry("a") == 1


def test_no_key_is_ever_worked_by_two_threads_at_once():
    queue: WorkQueue[int] = WorkQueue(SystemClock())
    busy: set[int] = set()
    clashes, worked, lock = [], [], threading.Lock()

    def work() -> None:
        while (key := queue.get()) is not None:
            with lock:
                if key in busy:
                    clashes.append(key)
                busy.add(key)
            time.sleep(0.0005)
            with lock:
                busy.discard(key)
                worked.append(key)
            queue.done(key)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        queue.add(turn % 7)
    deadline = time.monotonic() + 5
    while (len(queue) or busy) and time.monotonic() < deadline:
        time.sleep(0.005)
    queue.close()
    for thread in threads:
        thread.join()
    assert not clashes
    assert set(worked) == set(range(7))


def test_closing_lets_waiting_workers_go():
    queue: WorkQueue[str] = WorkQueue(SystemClock())
    got: list[str | None] = []
    thread = threading.Thread(target=lambda: got.append(queue.get()))
    thread.start()
    queue.close()
    thread.join(timeout=5)
    assert got == [None]
