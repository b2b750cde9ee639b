"""A statement's steps act at once and are undone by their inverses, in any order of statements."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import conf
from scheduler.framework.statement import Cause, Statement
from scheduler.model.tasks import TaskStatus
from tests.scheduler.world import BARE, World, gang, node, pod

ARRAYS = ("used", "releasing", "pipelined", "listed", "nonzero", "pod_count", "gpu_free")


def session(world: World):
    return world.offline.cache.open_session("s", conf.load(BARE), now=0.0, random=Random(0))


def picture(ssn) -> dict:
    found = {name: getattr(ssn.nodes, name).copy() for name in ARRAYS}
    found["jobs"] = {uid: (job.allocated.tolist(), [sorted(s) for s in job.by_status]) for uid, job in ssn.jobs.items()}
    found["tasks"] = [sorted(tasks) for tasks in ssn.nodes.tasks]
    found["ports"] = [+ports for ports in ssn.nodes.host_ports]
    return found


def same(left: dict, right: dict) -> bool:
    return all(np.array_equal(left[name], right[name]) for name in ARRAYS) and all(
        left[name] == right[name] for name in ("jobs", "tasks", "ports")
    )


def running(index: int, where: str):
    found = pod("old", "w", index, {"cpu": 1, "gpu": 1}, nodeName=where)
    found["status"]["phase"] = "Running"
    return found


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_discarding_statements_in_any_order_restores_everything(data):
    ports = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]}
    old = [running(i, f"n{i % 3}") for i in range(6)]
    world = World([node(f"n{i}", gpu=8) for i in range(3)], old, gang("a", 6, cpu=1, gpu=2), gang("b", 6, pod_spec=ports))
    ssn = session(world)
    before = picture(ssn)
    statements = []
    waiting = {uid: list(job.pending()) for uid, job in ssn.jobs.items()}
    leaving = [ssn.nodes.tasks[row][uid] for row in range(3) for uid in sorted(ssn.nodes.tasks[row])]
    for _ in range(data.draw(st.integers(1, 5))):
        statement = Statement(ssn)
        statements.append(statement)
        for _ in range(data.draw(st.integers(1, 4))):
            kind = data.draw(st.sampled_from(["allocate", "pipeline", "evict"]))
            if kind == "evict" and leaving:
                statement.evict(leaving.pop(), Cause("test"))
            elif kind != "evict":
                tasks = waiting[data.draw(st.sampled_from(sorted(waiting)))]
                count = min(len(tasks), data.draw(st.integers(1, 3)))
                if count:
                    rows = [data.draw(st.integers(0, 2)) for _ in range(count)]
                    getattr(statement, kind)([tasks.pop() for _ in range(count)], rows)
    for statement in data.draw(st.permutations(statements)):
        statement.discard()
    assert same(before, picture(ssn))
    assert not ssn.statements


def test_committing_binds_and_keeps_only_what_is_pipelined_to_be_undone():
    world = World(node("n0"), gang("a", 3, cpu=2))
    ssn = session(world)
    first, second, third = ssn.jobs["default/a"].pending()
    statement = Statement(ssn)
    statement.allocate([first, second], [0, 0])
    statement.pipeline([third], [0])
    statement.commit()
    assert [task.name for task in ssn.binds] == ["a-w-0", "a-w-1"]
    assert (first.status, third.status) == (TaskStatus.BINDING, TaskStatus.PIPELINED)
    ssn.undo()
    assert (first.status, third.status) == (TaskStatus.BINDING, TaskStatus.PENDING)
    assert ssn.nodes.used[0, 0] == 4000
    assert not ssn.nodes.pipelined.any()


def test_handlers_hear_of_every_step_and_of_its_undoing():
    world = World(node("n0"), gang("a", 2, cpu=2))
    ssn = session(world)
    heard: list[int] = []
    ssn.add_handlers(lambda e: heard.append(int(e.total[0])), lambda e: heard.append(-int(e.total[0])))
    statement = Statement(ssn)
    statement.allocate(list(ssn.jobs["default/a"].pending()), [0, 0])
    statement.discard()
    assert heard == [4000, -4000]
