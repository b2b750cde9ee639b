"""Leadership by a Lease, in a time that tests move by hand; and in threads, where the work has to end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cluster.embedded.store import EmbeddedCluster
from cluster.errors import NotFound, Unavailable
from cluster.kinds import LEASE
from cluster.leadership import Election


class Time:
    """Seconds that only a test lets pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def candidate(cluster: Any, who: str, time: Time) -> Election:
    return Election(cluster, "part", "default", who=who, monotonic=time)


def lease(cluster: EmbeddedCluster) -> dict[str, Any]:
    return cluster.get(LEASE, "part", "default")["spec"]


def test_the_first_one_leads_and_the_second_waits(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)
    assert (first.attempt(), second.attempt()) == (True, False)
    assert (first.leads, second.leads, second.holder) == (True, False, "first")
    assert (lease(cluster)["holderIdentity"], lease(cluster)["leaseDurationSeconds"]) == ("first", 10)


def test_who_is_renewed_leads_on(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)
    for _ in range(20):
        assert first.attempt()
        assert not second.attempt()
        time.now += 1.5
    assert lease(cluster)["leaseTransitions"] == 0


def test_a_leader_stops_writing_before_anybody_else_begins(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)
    first.attempt()
    second.attempt()
    both, gap = False, False
    for _ in range(200):  # the first one hangs
        time.now += 0.1
        second.attempt()
        both = both or (first.leads and second.leads)
        gap = gap or not (first.leads or second.leads)
    assert (both, gap, second.leads) == (False, True, True)
    assert not first.attempt()
    with pytest.raises(Unavailable, match="second holds the lease part"):
        first.check()


def test_a_standby_takes_over_within_fifteen_seconds(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)
    first.attempt()
    second.attempt()
    died = time.now
    while not second.attempt():
        time.now += 1.5
    assert time.now - died <= 15
    assert lease(cluster)["leaseTransitions"] == 1


def test_wall_clocks_do_not_count(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)
    first.attempt()
    known = cluster.get(LEASE, "part", "default")
    skewed = {**known["spec"], "renewTime": "2001-01-01T00:00:00.000000Z"}
    cluster.replace(LEASE, {**known, "spec": skewed})
    assert not second.attempt()


def test_a_slow_answer_makes_no_leader(cluster: EmbeddedCluster, time: Time) -> None:
    class Slow:
        def __getattr__(self, verb: str) -> Any:
            def late(*arguments: Any) -> Any:
                time.now += 8
                return getattr(cluster, verb)(*arguments)

            return late

    assert not candidate(Slow(), "first", time).attempt()


def test_of_two_who_ask_at_once_one_leads(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)

    class Between:
        """Lets the second one in between the first one's look and its write."""

        def get(self, *arguments: Any) -> Any:
            try:
                return cluster.get(*arguments)
            finally:
                second.attempt()

        create, replace = cluster.create, cluster.replace

    first._cluster = Between()  # type: ignore[assignment]
    assert (first.attempt(), second.leads) == (False, True)


def test_who_resigns_makes_nobody_wait(cluster: EmbeddedCluster, time: Time) -> None:
    first, second = candidate(cluster, "first", time), candidate(cluster, "second", time)
    first.attempt()
    second.attempt()
    first.resign()
    assert (first.leads, second.attempt()) == (False, True)


def test_a_deleted_lease_is_made_again(cluster: EmbeddedCluster, time: Time) -> None:
    first = candidate(cluster, "first", time)
    first.attempt()
    cluster.delete(LEASE, "part", "default")
    assert first.attempt()


@pytest.mark.parametrize(("lease", "deadline", "retry"), [(5, 7, 1), (10, 1, 2), (10, 7, 0)])
def test_times_that_make_no_sense_are_refused(cluster: EmbeddedCluster, lease: float, deadline: float, retry: float) -> None:
    with pytest.raises(ValueError, match="must be below"):
        Election(cluster, "part", "default", lease=lease, deadline=deadline, retry=retry)


class Away:
    """A cluster that can be taken away."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster, self.away = cluster, False

    def __getattr__(self, verb: str) -> Any:
        if self.away:
            raise Unavailable("away")
        return getattr(self.cluster, verb)


def test_the_work_ends_with_the_lead_and_begins_again_with_it(cluster: EmbeddedCluster) -> None:
    away, stop = Away(cluster), threading.Event()
    began, ended = threading.Semaphore(0), threading.Semaphore(0)

    def work(end: threading.Event) -> None:
        began.release()
        end.wait(30)
        ended.release()

    election = Election(away, "part", "default", lease=1.5, deadline=0.5, retry=0.05)  # type: ignore[arg-type]
    thread = threading.Thread(target=election.run, args=(stop, work), daemon=True)
    thread.start()
    assert began.acquire(timeout=10)
    away.away = True
    assert ended.acquire(timeout=10)
    with pytest.raises(Unavailable):
        election.check()
    away.away = False
    assert began.acquire(timeout=10)
    stop.set()
    thread.join(10)
    assert ended.acquire(timeout=1)
    assert lease(cluster)["holderIdentity"] == ""


def test_nothing_is_made_by_a_candidate_that_resigns(cluster: EmbeddedCluster, time: Time) -> None:
    candidate(cluster, "first", time).resign()
    with pytest.raises(NotFound):
        cluster.get(LEASE, "part", "default")
