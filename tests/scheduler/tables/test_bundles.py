"""What a gang can spare and what goes whole, as Volcano's table of bundles has it: counts in, bundles out."""

from __future__ import annotations

import pytest

from scheduler.eviction import bundles
from scheduler.model.jobs import JobInfo
from scheduler.snapshot import Offline, Snapshot
from tests.scheduler.tables.clusters import cluster, conf

CONF = conf("gangpreempt", "priority gang")


def gang(lines: str, policies: list[dict] | None = None, **spec: object) -> JobInfo:
    """The job `g` of a cluster with one large node."""
    objects = cluster(f"node n1 cpu=99 memory=99G\nqueue q\n{lines}")
    (group,) = [each for each in objects if each["kind"] == "PodGroup"]
    group["spec"] |= {**spec, **({"subGroupPolicy": policies} if policies else {})}
    return Offline(Snapshot.of(objects, CONF)).cache.jobs["default/g"]


def parted(job: JobInfo, *names: str) -> tuple[list[str], list[str]]:
    """Of the named tasks (all, when none is), those that may go one by one and those that go together."""
    tasks = [task for task in job.tasks.values() if not names or task.name in names]
    found = bundles.of_job(job, tasks, whole=True)
    assert [bundle.safe for bundle in found] == sorted((bundle.safe for bundle in found), reverse=True)
    return [b.tasks[0].name for b in found if b.safe], [t.name for b in found if not b.safe for t in b.tasks]


def workers(count: int, role: str = "w") -> str:
    return "\n".join(f"pod p{i} g n1 cpu=1 role={role} priority={i}" for i in range(count))


def test_the_surplus_of_role_and_gang_is_safe_lowest_priority_first():
    job = gang(f"group g q min=3 roles=w:3\n{workers(5)}")
    assert parted(job) == (["p0", "p1"], ["p2", "p3", "p4"])


def test_without_role_minimums_the_gangs_alone_counts():
    job = gang(f"group g q min=2\n{workers(4)}")
    assert parted(job) == (["p0", "p1"], ["p2", "p3"])


def test_role_minimums_that_the_gang_does_not_ask_for_are_not_kept():
    lines = "group g q min=2 roles=w:3\n" + workers(3)
    assert parted(gang(lines)) == (["p0"], ["p1", "p2"])


def test_a_gang_below_its_minimum_is_safe_to_take_apart():
    job = gang(f"group g q min=10\n{workers(2)}", [policy(size=3, least=2)])
    assert parted(job) == (["p0", "p1"], [])


def policy(name: str = "part", size: int = 2, least: int = 2) -> dict:
    return {"name": name, "matchLabelKeys": [name], "subGroupSize": size, "minSubGroups": least}


def parts(*names: str, key: str = "part") -> str:
    """Pods of parts: `1a` is of part 1."""
    return "\n".join(f"pod {name} g n1 cpu=1 role=w priority={100 + i} label={key}:{name[0]}" for i, name in enumerate(names))


def test_the_margin_of_a_group_of_parts_caps_what_is_safe():
    job = gang("group g q min=4\n" + parts("1a", "1b", "2a", "2b", "3a", "3b"), [policy()])
    assert parted(job, "1a", "2a", "3a") == (["1a"], ["2a", "3a"])


def test_a_part_that_is_broken_already_may_lose_more():
    job = gang("group g q min=3\n" + parts("1a", "2a", "2b", "3a", "3b"), [policy()])
    assert parted(job, "1a", "2a", "3a") == (["1a"], ["2a", "3a"])


def test_roles_and_parts_are_both_kept():
    masters = "\n".join(f"pod m{i} g n1 cpu=1 role=master priority={10 * (i - 1)} label=m:{i}" for i in (1, 2))
    names = {"1a": 1, "2a": 11, "2b": 12, "3a": 13, "3b": 14}
    others = "\n".join(f"pod {name} g n1 cpu=1 role=w priority={p} label=part:{name[0]}" for name, p in names.items())
    job = gang(f"group g q min=5 roles=w:5\n{masters}\n{others}", [policy("m", 1, 1), policy()])
    assert parted(job, "m1", "1a") == (["m1"], ["1a"])


@pytest.mark.parametrize(
    ("orders", "first"),
    [({"g1": 1, "g2": 0}, "g2"), ({"g1": 0, "g2": 0}, "g2")],
)
def test_safe_ones_first_then_the_order_of_jobs_then_what_is_lost_least(orders, first):
    objects = cluster(
        "node n1 cpu=99 memory=99G\nqueue q\n"
        "group g1 q min=4\npod a g1 n1 cpu=1\npod a2 g1 n1 cpu=1\npod a3 g1 n1 cpu=1\npod a4 g1 n1 cpu=1\n"
        "group g2 q min=2\npod b g2 n1 cpu=1\npod b2 g2 n1 cpu=1\n"
        "group g3 q min=0\npod c g3 n1 cpu=1\n"
    )
    cache = Offline(Snapshot.of(objects, CONF)).cache
    one, two, spare = (cache.jobs[f"default/g{i}"] for i in (1, 2, 3))
    offered = [
        *bundles.of_job(one, [one.tasks["pod-a"]], whole=True),
        *bundles.of_job(two, [two.tasks["pod-b"]], whole=True),
        *bundles.of_job(spare, list(spare.tasks.values()), whole=True),
    ]
    need = one.tasks["pod-a"].request * 1
    ranked = bundles.in_order(offered, need, lambda job: orders.get(job.name, 5))
    assert [bundle.job.name for bundle in ranked][:2] == ["g3", first]


def test_whole_gangs_are_not_offered_where_that_is_not_allowed():
    job = gang(f"group g q min=2\n{workers(3)}")
    assert [bundle.safe for bundle in bundles.of_job(job, list(job.tasks.values()), whole=False)] == [True]
