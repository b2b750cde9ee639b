"""enqueue, backfill, shuffle and allocate as Volcano's tables have them: cluster in, phases, binds and evictions out."""

from __future__ import annotations

import pytest

from scheduler.framework import registry
from scheduler.snapshot import Offline, Snapshot
from tests.scheduler.tables.clusters import bound, cluster, conf, decide, evicted

ENQUEUE = conf("enqueue", "drf proportion sla gang", sla={"arguments": {"sla-waiting-time": "3m"}})


@pytest.mark.parametrize(
    ("lines", "phases"),
    [
        ("queue c1 capability=cpu:4,memory:4G\ngroup pg1 c1 min=2\npod a pg1 - cpu=1\npod b pg1 - cpu=1", {"pg1": "Inqueue"}),
        (
            "queue c1 capability=cpu:4,memory:4G\nqueue c2 capability=cpu:4,memory:4G\n"
            "group pg1 c1 phase=Pending\ngroup pg2 c2 phase=Pending\npod a pg1 - cpu=3\npod b pg2 - cpu=1",
            {"pg1": "Inqueue", "pg2": "Inqueue"},
        ),
        ("queue c1\ngroup pg1 c1 min=2 phase=Running\npod a pg1 n1 cpu=1\npod b pg1 n1 cpu=1", {"pg1": "Running"}),
        ("queue c2\ngroup pg1 c1 min=0 phase=Pending", {"pg1": "Pending"}),
        ("queue c1 capability=cpu:1,memory:1G\ngroup pg1 c1 needs=cpu:8,memory:8G phase=Pending", {"pg1": "Pending"}),
        (
            "queue c1 capability=cpu:4\ngroup big c1 needs=cpu:8 phase=Pending\ngroup small c1 needs=cpu:2 phase=Pending",
            {"big": "Pending", "small": "Inqueue"},  # after a refusal the next job of the queue is tried
        ),
        (
            "queue c1 capability=cpu:4\ngroup one c1 needs=cpu:3 phase=Pending\ngroup two c1 needs=cpu:3 phase=Pending",
            {"one": "Inqueue", "two": "Pending"},  # who was admitted is charged at once
        ),
    ],
)
def test_who_is_admitted(lines, phases):
    offline = Offline(Snapshot.of(cluster(f"node n1 cpu=20 memory=64G\n{lines}"), ENQUEUE), now=1_893_456_000.0)
    offline.decide()
    assert {name: offline.cache.jobs[f"default/{name}"].phase for name in phases} == phases


def test_backfill_takes_jobs_by_priority_and_of_a_job_tasks_by_priority():
    """Volcano's order: all of the first job, its highest task first; nothing of what asks for something."""
    lines = "node n1 cpu=1 memory=1G\nqueue q1\n"
    for name, cls in (("pg1", "low"), ("pg2", "high")):
        lines += f"group {name} q1 min=1 class={cls}\n"
        for priority in (1, 3, 2, 4):
            lines += f"pod {name}-free-{priority} {name} - priority={priority}\npod {name}-asks-{priority} {name} - cpu=500m\n"
    done = decide(lines, conf("backfill", "priority drf"))
    assert [binding.name for binding in done.binds] == [f"{name}-free-{i}" for name in ("pg2", "pg1") for i in (4, 3, 2, 1)]


def test_backfill_asks_neither_whether_the_queue_is_overused_nor_whether_it_has_room():
    lines = """
        node n1 cpu=4 memory=4G
        queue q1 capability=cpu:1
        group old q1 min=1
        group new q1 min=1
        pod a old n1 cpu=4
        pod b new -
        """
    assert bound(decide(lines, conf("allocate, backfill", "gang proportion predicates"))) == {"b": "n1"}


def test_backfill_binds_nothing_of_a_gang_that_is_not_ready():
    lines = "node n1 cpu=1 memory=1G\nqueue q1\ngroup g q1 min=2\npod a g -\npod b g - cpu=9"
    assert bound(decide(lines, conf("allocate, backfill", "gang predicates"))) == {}


@registry.plugin
class _Weak:
    """Wants the tasks of lowest priority elsewhere."""

    name = "test-weak"

    def __init__(self, arguments):
        """No arguments."""

    def on_session_open(self, ssn):
        ssn.add_victim_tasks(self.name, lambda running: [task for task in running if task.priority == 1])

    def on_session_close(self, ssn):
        """Nothing to write."""


def test_shuffle_evicts_whom_a_plugin_names():
    lines = "node n1 cpu=4 memory=8Gi\nnode n2 cpu=4 memory=8Gi\nqueue default\n"
    pods = {"pg1": [(1, "n1"), (10, "n1"), (10, "n1")], "pg2": [(1, "n1"), (10, "n2")], "pg3": [(1, "n2"), (10, "n2")]}
    for name, tasks in pods.items():
        lines += f"group {name} default min=0 phase=Running\n"
        for number, (priority, node) in enumerate(tasks, 1):
            lines += f"pod {name}-{number} {name} {node} cpu=1 memory=2G priority={priority}\n"
    assert evicted(decide(lines, conf("shuffle", "test-weak"))) == ["pg1-1", "pg2-1", "pg3-1"]
    off = conf("shuffle", "test-weak", test_weak={"enabledVictim": False})
    assert evicted(decide(lines, off)) == []


ALLOCATE = conf("allocate", "drf proportion predicates nodeorder gang priority")
TABLE = {
    "no node has the label": (
        "node n1 cpu=2 memory=4Gi role=ps\nqueue c1\ngroup pg1 c1 min=1\npod p1 pg1 - cpu=1 on=role:worker",
        {},
    ),
    "a task that fits nowhere does not hold the others up while the minimum can be met": (
        "node n1 cpu=2 memory=4Gi role=worker\nqueue c1\ngroup pg1 c1 min=1\n"
        "pod p0 pg1 - cpu=1 on=role:master role=m\npod p1 pg1 - cpu=1 on=role:worker role=w\n"
        "pod p2 pg1 - cpu=1 on=role:worker role=w",
        {"p1": "n1", "p2": "n1"},
    ),
    "a role minimum that cannot be met ends the attempt": (
        "node n1 cpu=2 memory=4Gi role=worker\nqueue c1\ngroup pg1 c1 min=2 roles=m:1,w:1\n"
        "pod p0 pg1 - cpu=1 on=role:master role=m\npod p1 pg1 - cpu=1 on=role:worker role=w\n"
        "pod p2 pg1 - cpu=1 on=role:worker role=w",
        {},
    ),
    "one job of two pods": (
        "node n1 cpu=2 memory=4Gi\nqueue c1\ngroup pg1 c1 min=1\npod p1 pg1 - cpu=1 memory=1G\npod p2 pg1 - cpu=1 memory=1G",
        {"p1": "n1", "p2": "n1"},
    ),
    "two queues have one pod each": (
        "node n1 cpu=2 memory=4G\nqueue c1\nqueue c2\ngroup pg1 c1 min=1\ngroup pg2 c2 min=1\n"
        "pod a1 pg1 - cpu=1 memory=1G\npod a2 pg1 - cpu=1 memory=1G\npod b1 pg2 - cpu=1 memory=1G\npod b2 pg2 - cpu=1 memory=1G",
        {"a1": "n1", "b1": "n1"},
    ),
    "a job of a queue that comes first and fits nowhere does not block the others": (
        "node n1 cpu=2 memory=4G\nqueue c1\nqueue c2\ngroup pg1 c1 min=1 class=high\ngroup pg2 c2 min=1\n"
        "pod a1 pg1 - cpu=3 memory=1G\npod b1 pg2 - cpu=1 memory=1G",
        {"b1": "n1"},
    ),
}


@pytest.mark.parametrize("case", list(TABLE))
def test_what_allocate_binds(case):
    lines, where = TABLE[case]
    assert bound(decide(lines, ALLOCATE)) == where


def test_the_queue_whose_jobs_hold_least_has_its_turn_and_the_order_follows_what_was_given():
    lines = """
        node n1 cpu=2 memory=2G
        node n2 cpu=2 memory=2G
        queue q1
        queue q2
        group a q1 min=1
        group b q2 min=1
        pod a0 a n1 cpu=1 memory=1G
        pod a1 a - cpu=1 memory=1G
        pod a2 a - cpu=1 memory=1G
        pod b1 b - cpu=1 memory=1G
        pod b2 b - cpu=1 memory=1G
        """
    done = decide(lines, conf("allocate", "gang drf proportion predicates"))
    assert done.binds[0].name == "b1"
    assert sorted(bound(done)) == ["a1", "b1", "b2"]


def test_a_job_without_tasks_to_place_does_not_keep_its_queue_from_the_next():
    lines = """
        node n1 cpu=2 memory=2G
        queue q1
        group done q1 min=0
        group a q1 min=1
        pod d done n1 cpu=1
        pod a1 a - cpu=1
        """
    assert bound(decide(lines, conf("allocate", "gang drf proportion predicates"))) == {"a1": "n1"}
