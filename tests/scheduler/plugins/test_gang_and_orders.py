"""gang, priority, conformance, drf and overcommit: small rules, exact answers."""

from __future__ import annotations

import pytest

from scheduler.framework.explain import Code, Stage, Verdict
from scheduler.model.tasks import TaskInfo, TaskStatus
from scheduler.plugins import gang
from tests.scheduler.plugins.world import World


def cluster(nodes: int = 2, cpu: int = 4) -> World:
    world = World()
    for i in range(nodes):
        world.node(f"n{i}", cpu=cpu, memory="8Gi", pods=10)
    return world


def gang_of(
    world: World, name: str, size: int, *, running: int = 0, minimum: int | None = None, **more: object
) -> list[TaskInfo]:
    cls = world.cls({"cpu": 1, "memory": "1Gi"})
    job = world.job(name, min_available=size if minimum is None else minimum, **more)
    return [world.task(job, cls, node=0 if i < running else -1) for i in range(size)]


# -- gang --------------------------------------------------------------------------------------------------------------


def test_a_gang_with_too_few_pods_is_not_valid() -> None:
    world = cluster()
    job = gang_of(world, "j", 2, minimum=3)[0].job
    assert job is not None
    verdict = Verdict(Stage.GANG, Code.GANG_TOO_FEW_PODS, "default", needed=3, placeable=2)
    assert world.session("gang").job_valid(job) == verdict


def test_a_role_below_its_minimum_is_named_unless_the_gang_asks_less_than_its_roles() -> None:
    world = cluster()
    cls = world.cls({"cpu": 1})
    job = world.job("j", min_available=3, role_min={"ps": 1, "worker": 2})
    world.task(job, cls, role="ps")
    for status in (TaskStatus.PENDING, TaskStatus.FAILED):
        world.task(job, cls, role="worker", status=status)
    assert gang.lacking(job) == Verdict(Stage.GANG, Code.GANG_TOO_FEW_PODS, "default", task="worker", needed=2, placeable=1)
    job.min_available = 2
    assert gang.lacking(job) is None, "minimum 2 is less than 1 + 2, so roles are not asked"


def test_jobs_that_are_not_ready_go_before_those_that_are() -> None:
    world = cluster()
    gang_of(world, "ready", 2, running=2)
    gang_of(world, "waiting", 2, running=1)
    session = world.session("gang")
    assert sorted(world.jobs, key=lambda uid: session.job_key(world.jobs[uid])) == ["ns/waiting", "ns/ready"]
    assert not session.job_ready(world.jobs["ns/waiting"])
    assert session.job_starving(world.jobs["ns/waiting"])
    assert session.job_ready(world.jobs["ns/ready"])


def test_only_what_a_gang_can_spare_may_be_taken() -> None:
    world = cluster()
    spare = gang_of(world, "spare", 4, running=4, minimum=2)
    tight = gang_of(world, "tight", 2, running=2)
    orphan = world.task(None, world.cls({"cpu": 1}), node=1)
    assert gang.surplus(spare[0], [tight[0], spare[3], orphan, spare[2], spare[1]]) == [spare[3], spare[2]]


def test_pods_that_ask_nothing_count_as_ready_while_they_wait() -> None:
    world = cluster()
    job = gang_of(world, "j", 2, running=2, minimum=3)[0].job
    assert job is not None
    session = world.session("gang")
    assert not session.job_ready(job)
    world.task(job, world.cls({}))
    assert session.job_ready(job)
    assert session.job_starving(job), "they do not count for starving"


# -- priority and conformance ------------------------------------------------------------------------------------------


def test_priority_orders_jobs_and_tasks_and_spares_the_equal() -> None:
    world = cluster()
    low = gang_of(world, "low", 2, running=2, priority=1)
    high = gang_of(world, "high", 2, running=1, priority=9)
    session = world.session("priority")
    assert sorted(world.jobs, key=lambda uid: session.job_key(world.jobs[uid])) == ["ns/high", "ns/low"]
    high[0].priority = 5
    high[1].priority = 7
    assert sorted(high, key=session.task_key) == [high[1], high[0]]
    assert session.victims.preemptable(high[1], [low[0], high[0]]).victims == [low[0], high[0]]
    assert session.victims.preemptable(low[0], [low[1], high[0]]).victims == []
    assert session.job_starving(world.jobs["ns/high"])
    assert not session.job_starving(world.jobs["ns/low"])


def test_what_keeps_the_cluster_alive_is_never_a_victim() -> None:
    world = cluster()
    tasks = gang_of(world, "j", 3, running=3)
    tasks[0].priority_class = "system-node-critical"
    tasks[1].namespace = "kube-system"
    session = world.session("conformance")
    assert session.victims.preemptable(tasks[2], tasks).victims == [tasks[2]]
    assert session.victims.reclaimable(tasks[2], tasks).victims == [tasks[2]]


# -- drf ---------------------------------------------------------------------------------------------------------------


def test_the_dominant_share_is_the_largest_over_all_dimensions_pods_included() -> None:
    world = cluster()  # 8 CPUs, 16 GiB, 20 pods
    cpu, memory, nothing = world.cls({"cpu": 2}), world.cls({"memory": "6Gi"}), world.cls({})
    a, b, c, d = (world.job(name) for name in "abcd")
    world.task(a, cpu, node=0)
    world.task(b, memory, node=0)
    for _ in range(6):
        world.task(c, nothing, node=1)
    world.task(d, cpu)
    session = world.session("drf")
    share = session.functions("job_order")[0]
    assert [share(job) for job in (a, b, c, d)] == pytest.approx([2 / 8, 6 / 16, 6 / 20, 0])
    assert sorted(world.jobs, key=lambda uid: session.job_key(world.jobs[uid])) == ["ns/d", "ns/a", "ns/c", "ns/b"]


def test_what_waits_on_a_node_counts_as_held() -> None:
    world = cluster()
    job = world.job("j")
    world.task(job, world.cls({"cpu": 2}), node=0, status=TaskStatus.PIPELINED)
    assert world.session("drf").functions("job_order")[0](job) == pytest.approx(2 / 8)


def test_candidates_are_taken_off_their_job_one_after_the_other_and_a_tie_evicts() -> None:
    world = cluster()
    poor, rich = world.job("poor"), world.job("rich")
    cls = world.cls({"cpu": 1})
    preemptor = world.task(poor, cls)
    held = [world.task(rich, cls, node=0) for _ in range(3)]
    # With the preemptor poor has 1/8; rich is left with 2/8, 1/8 (a tie), 0.
    assert world.session("drf").victims.preemptable(preemptor, held).victims == held[:2]


# -- overcommit --------------------------------------------------------------------------------------------------------


def test_admission_stops_at_the_factor_less_what_is_used() -> None:
    world = cluster(nodes=1, cpu=10)
    world.task(world.job("running", phase="Running"), world.cls({"cpu": 2}), node=0)
    first, second, third = (world.job(name, min_resources={"cpu": 5}) for name in ("a", "b", "c"))
    tiny = world.job("tiny", min_resources={"memory": "1Gi"})
    session = world.session("overcommit")
    # 10 · 1.2 − 2 = 10 CPUs.
    for job in (first, second):
        assert session.enqueueable(job) is None
        session.enqueued(job)
    assert session.enqueueable(third) == Verdict(
        Stage.ADMISSION, Code.OVERCOMMIT, "default", resource="cpu", asked=5000, free=0, short=5000, limit=12_000
    )
    assert session.enqueueable(tiny) is None, "only what the job asks for is looked at"


@pytest.mark.parametrize(("factor", "limit"), [(2, 20_000), (1.5, 15_000), (0.5, 12_000)])
def test_a_factor_below_one_is_the_default(factor: float, limit: int) -> None:
    world = cluster(nodes=1, cpu=10)
    job = world.job("j", min_resources={"cpu": 100})
    answer = world.session(("overcommit", {"overcommit-factor": factor})).enqueueable(job)
    assert answer is not None
    assert answer.limit == limit


def test_jobs_that_were_admitted_before_are_charged_in_full() -> None:
    world = cluster(nodes=1, cpu=10)
    waiting = world.job("waiting", phase="Inqueue", min_resources={"cpu": 8, "memory": "1Gi"})
    world.task(waiting, world.cls({"cpu": 4}), node=0)
    job = world.job("j", min_resources={"cpu": 1})
    # 12 − 4 used − 8 waiting: the reference counts the placed half twice here, and so do we.
    answer = world.session("overcommit").enqueueable(job)
    assert answer is not None
    assert (answer.free, answer.limit) == (0, 12_000)
