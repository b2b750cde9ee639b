"""The Queue controller: built-in queues, opening and closing, and the counts."""

from __future__ import annotations

import pytest

from cluster.commands import command
from cluster.errors import BadRequest, Conflict, Invalid, NotFound
from cluster.kinds import COMMAND, POD_GROUP, QUEUE
from queues import operations
from tests.jobs.world import World, job


def state(world: World, name: str) -> str:
    return world.queue(name)["status"]["state"]


def act(world: World, name: str, action: str) -> None:
    operations.act(world.cluster, name, action)
    world.settle()


def group(world: World, name: str, queue: str, phase: str = "Pending") -> None:
    meta = {"name": name, "namespace": "default"}
    obj = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 1, "queue": queue}}
    world.cluster.create(POD_GROUP, obj | {"status": {"phase": phase}})


def test_root_and_default_are_made_at_the_start_and_not_again(world: World):
    root, default = world.queue("root"), world.queue("default")
    assert (root["spec"]["reclaimable"], "parent" in root["spec"]) == (False, False)
    assert (default["spec"]["reclaimable"], default["spec"]["parent"]) == (True, "root")
    world.restart()
    world.settle()
    assert world.queue("root")["metadata"]["uid"] == root["metadata"]["uid"]


def test_a_new_queue_is_opened_and_hung_below_root(world: World):
    world.make_queue("team")
    world.settle()
    assert (state(world, "team"), world.queue("team")["spec"]["parent"]) == ("Open", "root")


def test_an_empty_queue_closes_at_once_and_refuses_jobs_until_it_opens(world: World):
    world.make_queue("team")
    act(world, "team", "close")
    assert state(world, "team") == "Closed"
    with pytest.raises(Invalid, match="Closed"):
        world.submit(job(queue="team"))
    act(world, "team", "open")
    assert state(world, "team") == "Open"
    world.submit(job(queue="team"))
    assert world.cluster.list(COMMAND).items == []


def test_counters_that_somebody_made_nonsense_of_are_counted_again(world: World):
    world.make_queue("team")
    group(world, "g", "team", "Running")
    world.cluster.patch_status(QUEUE, "team", "", {"running": "many", "pending": {"a": 1}})
    world.clock.advance(2)
    world.settle()
    status = world.cluster.get(QUEUE, "team")["status"]
    assert (status["running"], status["pending"], status["state"]) == (1, 0, "Open")


def test_a_queue_with_work_closes_when_the_last_group_has_gone(world: World):
    world.make_queue("team")
    group(world, "g", "team", "Running")
    act(world, "team", "close")
    assert state(world, "team") == "Closing"
    world.cluster.delete(POD_GROUP, "g", "default")
    world.settle()
    assert state(world, "team") == "Closed"


def test_running_jobs_of_a_closing_queue_run_to_their_end(world: World):
    world.make_queue("team")
    world.settle()
    world.started(job(queue="team"))
    act(world, "team", "close")
    world.end("train-worker-0")
    world.end("train-worker-1")
    world.turn()
    assert (world.phase(), state(world, "team")) == ("Completed", "Closed")


def tree(world: World) -> None:
    world.make_queue("dept")
    world.make_queue("a", parent="dept")
    world.make_queue("b", parent="dept")
    world.make_queue("a-1", parent="a")
    world.settle()


def test_closing_a_parent_closes_all_below_and_opening_it_opens_only_those(world: World):
    tree(world)
    act(world, "b", "close")
    act(world, "dept", "close")
    assert [state(world, name) for name in ("dept", "a", "a-1", "b")] == ["Closed"] * 4
    act(world, "dept", "open")
    assert [state(world, name) for name in ("dept", "a", "a-1", "b")] == ["Open", "Open", "Open", "Closed"]


def test_a_queue_below_a_closed_one_cannot_be_opened(world: World):
    tree(world)
    act(world, "dept", "close")
    with pytest.raises(Conflict, match="open dept first"):
        operations.act(world.cluster, "a", "open")


def test_a_queue_that_was_still_closing_opens_with_its_parent(world: World):
    tree(world)
    group(world, "g", "a", "Running")
    act(world, "dept", "close")
    assert (state(world, "dept"), state(world, "a")) == ("Closed", "Closing")
    act(world, "dept", "open")
    assert state(world, "a") == "Open"
    act(world, "a", "close")  # now by hand
    act(world, "dept", "close")
    act(world, "dept", "open")
    assert state(world, "a") == "Closing"


def test_a_queue_that_is_made_below_a_closed_one_is_closed_with_it(world: World):
    tree(world)
    act(world, "dept", "close")
    world.make_queue("late", parent="dept")
    world.settle()
    assert state(world, "late") == "Closed"
    act(world, "dept", "open")
    assert state(world, "late") == "Open"


def test_commands_that_come_in_any_order_reach_the_same_end_after_a_restart(world: World):
    tree(world)
    act(world, "dept", "close")
    world.cluster.create(COMMAND, command(world.queue("a"), "OpenQueue", namespace="default"))  # fails until the parent is open
    operations.act(world.cluster, "dept", "open")
    world.restart()
    for _ in range(10):
        world.settle()
        world.clock.advance(1)
    assert (state(world, "a"), state(world, "dept")) == ("Open", "Open")
    assert world.cluster.list(COMMAND).items == []


def test_a_command_that_can_never_be_carried_out_is_given_up(world: World):
    tree(world)
    act(world, "dept", "close")
    world.cluster.create(COMMAND, command(world.queue("a"), "OpenQueue", namespace="default"))
    for _ in range(30):
        world.settle()
        world.clock.advance(61)
    assert world.cluster.list(COMMAND).items == []
    assert state(world, "a") == "Closed"


def test_unknown_actions_missing_queues_and_closing_root_are_refused(world: World):
    with pytest.raises(BadRequest):
        operations.act(world.cluster, "default", "explode")
    with pytest.raises(NotFound):
        operations.act(world.cluster, "nowhere", "open")
    with pytest.raises(Conflict):
        operations.act(world.cluster, "root", "close")
    world.cluster.create(COMMAND, command(world.queue("root"), "CloseQueue", namespace="default"))
    world.settle()
    assert state(world, "root") == "Open"


def test_groups_are_counted_by_phase_and_written_only_now_and_then(world: World):
    world.make_queue("team")
    world.settle()
    for index, phase in enumerate(["Pending", "Inqueue", "Running", "Running", "Completed", "Unknown"]):
        group(world, f"g{index}", "team", phase)
        world.settle()
    writes = world.cluster.list(QUEUE).items
    world.clock.advance(1)
    world.settle()
    status = world.queue("team")["status"]
    counts = {name: status[name] for name in ("pending", "inqueue", "running", "completed", "unknown")}
    assert counts == {"pending": 1, "inqueue": 1, "running": 2, "completed": 1, "unknown": 1}
    assert len(writes) == 3


# --- the state table ----------------------------------------------------------------------------------------------

OPEN, CLOSING, CLOSED, UNKNOWN = "Open", "Closing", "Closed", "Unknown"


@pytest.mark.parametrize(
    ("was", "action", "with_group", "then"),
    [
        ("", "", False, OPEN),
        (OPEN, "", False, OPEN),
        (OPEN, "", True, OPEN),
        (CLOSING, "", True, CLOSING),
        (CLOSING, "", False, CLOSED),
        (CLOSED, "", False, CLOSED),
        (CLOSED, "", True, CLOSED),
        (UNKNOWN, "", False, UNKNOWN),
        (UNKNOWN, "", True, UNKNOWN),
        ("", "OpenQueue", False, OPEN),
        (OPEN, "OpenQueue", True, OPEN),
        (CLOSING, "OpenQueue", True, OPEN),
        (CLOSED, "OpenQueue", False, OPEN),
        (UNKNOWN, "OpenQueue", True, OPEN),
        ("", "CloseQueue", False, CLOSED),
        (OPEN, "CloseQueue", False, CLOSED),
        (OPEN, "CloseQueue", True, CLOSING),
        (CLOSING, "CloseQueue", True, CLOSING),
        (CLOSING, "CloseQueue", False, CLOSED),
        (CLOSED, "CloseQueue", True, CLOSED),
        (UNKNOWN, "CloseQueue", False, CLOSED),
        (UNKNOWN, "CloseQueue", True, CLOSING),
    ],
)
def test_every_state_answers_every_action(world: World, was: str, action: str, with_group: bool, then: str):
    world.make_queue("team")
    if with_group:
        group(world, "g", "team", "Running")
    world.cluster.patch_status(QUEUE, "team", "", {"state": was or None})
    if action:
        world.cluster.create(COMMAND, command(world.queue("team"), action, namespace="default"))
    world.settle()
    assert (state(world, "team"), world.cluster.list(COMMAND).items) == (then, [])


@pytest.mark.parametrize("child", [OPEN, UNKNOWN])
def test_closing_a_parent_closes_every_child_that_is_not_shut_yet(world: World, child: str):
    tree(world)
    world.cluster.patch_status(QUEUE, "a", "", {"state": child})
    act(world, "dept", "close")
    assert (state(world, "a"), state(world, "a-1")) == (CLOSED, CLOSED)
    assert world.queue("a")["metadata"]["annotations"]["volcano.sh/closed-by-parent"] == "true"
    act(world, "dept", "open")
    assert world.queue("a")["metadata"]["annotations"]["volcano.sh/closed-by-parent"] == "false"
    assert (state(world, "a"), state(world, "a-1")) == (OPEN, OPEN)


def test_a_queue_that_moves_below_another_parent_follows_that_one(world: World):
    tree(world)
    world.make_queue("other")
    act(world, "dept", "close")
    world.cluster.patch(QUEUE, "b", "", {"spec": {"parent": "other"}})
    world.settle()
    assert state(world, "b") == OPEN
    world.cluster.patch(QUEUE, "b", "", {"spec": {"parent": "dept"}})
    world.settle()
    assert state(world, "b") == CLOSED


def test_a_state_that_is_none_counts_as_unknown(world: World):
    world.make_queue("team")
    world.cluster.patch_status(QUEUE, "team", "", {"state": "Ajar"})
    world.settle()
    act(world, "team", "open")
    assert state(world, "team") == OPEN
