"""proportion: water-filling in numbers worked by hand, and what follows from it for queues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.framework.plugin import UNLIMITED, Event, Vote
from scheduler.model.roster import Roster
from scheduler.model.tasks import TaskStatus
from scheduler.plugins.proportion import _Standing, real_capability, water_fill
from tests.scheduler.plugins.world import GIB, World

PODS = 1_000_000


def fill(
    total: list[float], weights: list[int], request: list[list[int]], *, real: list[list[int]] | None = None,
    guarantee: list[list[int]] | None = None,
) -> list[list[float]]:  # fmt: skip
    """Water-filling over (cpu, memory, pods)."""
    shape = np.array(request).shape
    return water_fill(
        np.array(total), np.array(weights), np.array(real) if real else np.full(shape, 2**62), np.array(request),
        np.array(guarantee) if guarantee else np.zeros(shape, np.int64),
    ).tolist()  # fmt: skip


def test_hungry_queues_share_by_weight() -> None:
    assert fill([90, 900, PODS], [1, 2], [[100, 1000, 5], [100, 1000, 5]]) == [[30, 300, 5], [60, 600, 5]]


def test_what_a_content_queue_leaves_goes_to_the_others_by_weight() -> None:
    # Round 1: 20, 40, 40 of 100; the first wants 10. Round 2: 10 for weights 2 and 2.
    assert fill([100, 100, PODS], [1, 2, 2], [[10, 10, 1], [90, 90, 1], [90, 90, 1]]) == [[10, 10, 1], [45, 45, 1], [45, 45, 1]]


def test_deserved_never_exceeds_the_request() -> None:
    assert fill([100, 100, PODS], [1, 1], [[10, 20, 1], [30, 5, 1]]) == [[10, 20, 1], [30, 5, 1]]


def test_real_capability_cuts_and_the_rest_is_given_on() -> None:
    real = [[20, 100, PODS], [100, 100, PODS]]
    assert fill([100, 100, PODS], [1, 1], [[90, 40, 1], [90, 90, 1]], real=real) == [[20, 40, 1], [80, 60, 1]]


def test_a_guarantee_lifts_above_request_and_weight() -> None:
    # 50 each at first; the first asks 10 and is guaranteed 60, so nothing remains to be given: 60 + 50 is more than there is.
    guarantee = [[60, 0, 0], [0, 0, 0]]
    assert fill([100, 100, PODS], [1, 1], [[10, 10, 1], [90, 10, 1]], guarantee=guarantee) == [[60, 10, 1], [50, 10, 1]]


def test_queues_of_weight_zero_deserve_nothing() -> None:
    assert fill([100, 100, PODS], [0, 0], [[10, 10, 1], [10, 10, 1]]) == [[0, 0, 0], [0, 0, 0]]


@given(st.lists(st.tuples(st.integers(1, 9), *[st.integers(0, 10**6)] * 3), min_size=1, max_size=6), *[st.integers(0, 10**6)] * 2)
def test_shares_keep_within_request_and_total_and_nothing_asked_for_is_left_over(
    queues: list[tuple[int, int, int, int]], cpu: int, memory: int
) -> None:
    request = [list(queue[1:]) for queue in queues]
    deserved = np.array(fill([cpu, memory, PODS * 10], [queue[0] for queue in queues], request))
    assert (deserved <= np.array(request) + 1e-6).all()
    assert (deserved.sum(axis=0) <= np.array([cpu, memory, PODS * 10]) + 1e-3).all()
    wanted = np.array(request).sum(axis=0)[:2]
    lacking = wanted - deserved.sum(axis=0)[:2]
    left = np.array([cpu, memory]) - deserved.sum(axis=0)[:2]
    assert ((lacking < 1) | (left < 1)).all(), "nobody goes without what nobody else takes"


def world(**queues: dict[str, object]) -> World:
    """Two nodes of 2 CPUs and 2 GiB; each queue with its words."""
    found = World()
    found.node("n1", cpu=2, memory="2Gi", pods=10)
    found.node("n2", cpu=2, memory="2Gi", pods=10)
    for name, words in queues.items():
        found.queue(name, **words)  # type: ignore[arg-type]
    return found


def test_a_queue_above_deserved_in_memory_may_still_take_cpu_alone() -> None:
    """Volcano's cases 0 and 1 of TestEnqueueAndAllocable: held 1 CPU and 2 GiB of a fair 2 CPUs and 1.5 GiB or so."""
    at = world(q1={"capability": {"cpu": 2, "memory": "2Gi"}}, q2={"capability": {"cpu": 3, "memory": "3Gi"}})
    big, wide = at.cls({"cpu": 1, "memory": "2Gi"}), at.cls({"cpu": 2, "memory": "1Gi"})
    at.task(at.job("j1", "q1", phase="Running", min_resources={"cpu": 1, "memory": "2Gi"}), big, node=0)
    at.task(at.job("j2", "q2", phase="Running", min_resources={"cpu": 2, "memory": "1Gi"}), wide, node=1)
    cpu, memory = at.cls({"cpu": 1}), at.cls({"memory": "1Gi"})
    cpu_job = at.job("j3", "q1", min_resources={"cpu": 1})
    at.task(cpu_job, cpu)
    both_job = at.job("j5", "q1", min_resources={"cpu": 1, "memory": "1Gi"})
    session = at.session("proportion")
    q1 = at.queues["q1"]
    assert session.enqueueable(cpu_job) is None
    assert session.room(q1, cpu) == 1
    assert session.room(q1, memory) == 0
    refusal = session.enqueueable(both_job)
    assert refusal == Verdict(
        Stage.ADMISSION, Code.QUEUE_CAPABILITY, "q1", resource="memory", asked=GIB, free=0, short=GIB, limit=2 * GIB
    )


def test_a_closed_queue_admits_and_takes_nothing() -> None:
    at = world(q={"state": "Closed"})
    job = at.job("j", "q", min_resources={"cpu": 1})
    cls = at.cls({"cpu": 1})
    at.task(job, cls)
    session = at.session("proportion")
    answer = session.enqueueable(job)
    assert answer is not None
    assert answer.code is Code.QUEUE_CLOSED
    assert session.room(at.queues["q"], cls) == 0
    refusal = session.room_refusal(at.queues["q"], cls)
    assert refusal is not None
    assert refusal.code is Code.QUEUE_CLOSED


def test_room_counts_copies_as_if_they_were_asked_one_by_one() -> None:
    at = world(q={"capability": {"cpu": "1500m"}})
    job = at.job("j", "q")
    cls, free = at.cls({"cpu": "400m", "memory": "1Mi"}), at.cls({})
    for _ in range(9):
        at.task(job, cls)
    session = at.session("proportion")
    queue = at.queues["q"]
    assert session.room(queue, cls) == 3, "3 · 400m of 1500m"
    assert session.room(queue, free) == UNLIMITED
    task = next(iter(job.tasks.values()))
    session.allocated(Event(job, [task] * 3, cls.request * 3))
    assert session.room(queue, cls) == 0
    assert session.room_refusal(queue, cls) == Verdict(
        Stage.QUEUE_LIMIT, Code.QUEUE_CAPABILITY, "q", resource="cpu", asked=400, free=300, short=100, limit=1500
    )
    session.deallocated(Event(job, [task], cls.request))
    assert session.room(queue, cls) == 1


def test_rounding_takes_nothing_from_a_queue() -> None:
    at = World()
    at.node("n", cpu=10, memory="1Gi")
    queue = at.queue("q")
    roster = Roster.of((), at.queues, at.dims.width)
    standing = _Standing(queue, at.dims.amounts({"cpu": 10_000}).values, roster.holdings("q"))
    standing.deserve(np.array([9_999.9999999, 0.95, 3.5, *[0.0] * (at.dims.width - 3)]))
    assert standing.left[:3] == [10_000, 1, 3]


def test_a_queue_is_overused_only_when_nothing_deserved_is_left() -> None:
    at = world(q={}, other={})
    job = at.job("j", "q")
    cls = at.cls({"cpu": 2, "memory": "1Gi"})
    at.task(job, cls, node=0)
    at.task(job, cls)
    small = at.task(job, at.cls({"memory": "1Gi"}))
    empty = at.task(job, at.cls({}))
    at.task(at.job("o", "other"), at.cls({"cpu": 9, "memory": "9Gi"}))
    session = at.session("proportion")
    # q deserves 2 CPUs and 2 GiB (half of 4) and the 4 pods that it asks: one dimension full is not overuse.
    assert session.overused(at.queues["q"]) is None
    session.allocated(Event(job, [small], small.request))
    assert session.overused(at.queues["q"]) is None, "2 of 4 pods"
    session.allocated(Event(job, [empty, empty], empty.request * 2))
    answer = session.overused(at.queues["q"])
    assert answer is not None
    assert answer.code is Code.QUEUE_OVERUSED


def test_queues_go_by_priority_then_by_share() -> None:
    at = world(a={}, b={}, c={"priority": 5})
    cls = at.cls({"cpu": 1, "memory": "1Gi"})
    for name in "abc":
        job = at.job(f"j{name}", name)
        for _ in range(4):
            at.task(job, cls)
    at.task(at.jobs["ns/ja"], cls, node=0)
    at.task(at.jobs["ns/jc"], cls, node=1)
    session = at.session("proportion")
    assert sorted(at.queues, key=lambda name: session.queue_key(at.queues[name])) == ["c", "b", "a"]


def test_guarantees_of_others_lower_everybodys_ceiling() -> None:
    at = world(poor={}, rich={"guarantee": {"cpu": 3, "memory": "1Gi"}})
    job = at.job("j", "poor", min_resources={"cpu": 2})
    session = at.session("proportion")
    answer = session.enqueueable(job)
    assert answer is not None
    assert (answer.resource, answer.limit, answer.short) == ("cpu", 1000, 1000)


def test_a_capability_without_cpu_is_no_limit_on_cpu() -> None:
    at = World()
    queue = at.queue("q", capability={"cpu": 0, "gpu": 2}, guarantee={"cpu": 1})
    lendable = at.dims.amounts({"cpu": 7000, "memory": 100, "nvidia.com/gpu": 8000}).values
    units = at.dims.units(real_capability(queue, lendable))
    assert units == {"cpu": 8000, "memory": 100, "nvidia.com/gpu": 2000}


def test_admission_counts_what_waits_and_not_what_can_be_reclaimed() -> None:
    at = world(q={})
    elastic = at.job("elastic", "q", phase="Running", min_resources={"cpu": 1})
    for _ in range(2):
        at.task(elastic, at.cls({"cpu": 1}), node=0)
    first = at.job("first", "q", min_resources={"cpu": 2})
    second = at.job("second", "q", min_resources={"cpu": 2})
    session = at.session("proportion")
    # Of 4 CPUs 2 are held, 1 of them beyond the minimum: 2 + 2 − 1 ≤ 4, and after the first 2 + 2 + 2 − 1 > 4.
    assert session.enqueueable(first) is None
    session.enqueued(first)
    answer = session.enqueueable(second)
    assert answer is not None
    assert (answer.free, answer.short) == (1000, 1000)


def test_a_job_without_min_resources_is_admitted() -> None:
    at = world(q={})
    job = at.job("j", "q")
    assert at.session("proportion").functions("enqueueable")[0](job) is Vote.PERMIT


def test_victims_are_taken_while_their_queue_holds_more_than_it_deserves() -> None:
    at = world(mine={}, theirs={})
    cls = at.cls({"cpu": 1, "memory": "512Mi"})
    held = at.job("held", "theirs")
    tasks = [at.task(held, cls, node=node) for node in (0, 0, 1, 1)]
    wanting = at.job("wanting", "mine")
    preemptor = at.task(wanting, cls)
    at.task(wanting, cls)
    session = at.session("proportion")
    # theirs deserves 2 of 4 CPUs and holds 4: two may go.
    assert session.victims.reclaimable(preemptor, tasks).victims == tasks[:2]
    assert session.preemptive(at.queues["mine"], [preemptor])


def test_shares_are_told_for_every_queue() -> None:
    at = world(q={}, idle={})
    job = at.job("j", "q", phase="Inqueue", min_resources={"cpu": 2})
    at.task(job, at.cls({"cpu": 1}), node=0)
    at.task(job, at.cls({"cpu": 1}))
    session = at.session("proportion")
    session.close()
    share = session.queue_shares["q"]
    assert share.share == pytest.approx(0.5)
    assert (share.allocated, share.deserved) == ({"cpu": 1000, "pods": 1}, {"cpu": 2000, "pods": 2})
    assert (share.request, share.inqueue) == ({"cpu": 2000, "pods": 2}, {"cpu": 1000})
    assert session.queue_shares["idle"].deserved == {}
    assert job.count(TaskStatus.PENDING) == 1
