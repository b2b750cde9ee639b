"""A queue goes only when nothing in it waits or runs, whoever comes in between."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from cluster.errors import ApiError, Forbidden
from cluster.kinds import JOB, POD_GROUP, QUEUE
from queues import operations
from queues.tree import Tree, parent_of
from tests.jobs.world import World, job

ENDED = ("Completed", "Failed", "Terminated")


def queue(name: str, parent: str = "root") -> dict:
    return {"metadata": {"name": name}, "spec": {"parent": parent, "weight": 1}}


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Restarting", "Aborted"])
def test_a_queue_with_a_job_that_has_not_ended_stays(world: World, phase: str):
    world.make_queue("team")
    world.settle()
    world.submit(job(queue="team"))
    world.cluster.patch_status(JOB, "train", "default", {"state": {"phase": phase}})
    with pytest.raises(Forbidden, match=r"queue team holds a job that has not ended \(default/train\)"):
        operations.delete(world.cluster, "team")
    with pytest.raises(Forbidden):
        world.cluster.delete(QUEUE, "team")  # as kubectl would


@pytest.mark.parametrize("phase", ENDED)
def test_a_queue_whose_jobs_have_ended_can_go(world: World, phase: str):
    world.make_queue("team")
    world.settle()
    world.submit(job(queue="team"))
    world.cluster.patch_status(JOB, "train", "default", {"state": {"phase": phase}})
    operations.delete(world.cluster, "team")
    assert "team" not in Tree(world.cluster.list(QUEUE).items).queues


def test_a_gang_of_bare_pods_counts_as_a_job(world: World):
    world.make_queue("team")
    world.settle()
    group = {"metadata": {"name": "bare", "namespace": "default"}, "spec": {"minMember": 1, "queue": "team"}}
    world.cluster.create(POD_GROUP, group)
    with pytest.raises(Forbidden, match="default/bare"):
        operations.delete(world.cluster, "team")
    world.cluster.patch_status(POD_GROUP, "bare", "default", {"phase": "Completed"})
    operations.delete(world.cluster, "team")


def test_of_many_jobs_three_are_named(world: World):
    world.make_queue("team")
    world.settle()
    for number in range(5):
        world.submit(job(f"j{number}", queue="team"))
    with pytest.raises(Forbidden, match=r"5 jobs that have not ended \(default/j0, default/j1, default/j2, …\)"):
        operations.delete(world.cluster, "team")


@pytest.mark.parametrize("seed", range(6))
def test_closing_and_deleting_while_children_and_jobs_are_made_ends_consistent(world: World, seed: int):
    world.make_queue("above")
    world.make_queue("side")
    world.settle()
    rng = random.Random(seed)
    pace = threading.Barrier(4)

    def attempt(*steps: Callable[[], object]) -> None:
        pace.wait()
        for step in steps:
            try:
                step()
            except ApiError:
                continue

    def shuffled(steps: list[Callable[[], object]]) -> list[Callable[[], object]]:
        rng.shuffle(steps)
        return steps

    children = shuffled([lambda n=n: operations.create(world.cluster, queue(f"below-{n}", "above")) for n in range(8)])
    places = ("above", "side", "below-1")
    jobs = shuffled([lambda n=n, q=q: world.submit(job(f"{q}-{n}", queue=q)) for n in range(6) for q in places])
    ends = shuffled(
        [lambda: operations.act(world.cluster, "above", "close"), lambda: operations.delete(world.cluster, "side")] * 3
    )
    more = shuffled([lambda n=n: operations.delete(world.cluster, f"below-{n}") for n in range(8)])
    threads = [threading.Thread(target=attempt, args=steps) for steps in (children, jobs, ends, more)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.settle()

    tree = Tree(world.cluster.list(QUEUE).items)
    for name, each in tree.queues.items():
        assert parent_of(each) in ("", *tree.queues), f"{name} hangs below nothing"
        if parent_of(each) == "above":
            assert each["status"]["state"] in ("Closing", "Closed")
            assert each["metadata"]["annotations"]["volcano.sh/closed-by-parent"] == "true"
    assert tree.queues["above"]["status"]["state"] in ("Closing", "Closed")
    for each in world.cluster.list(JOB).items:
        assert each["spec"]["queue"] in tree.queues, f"{each['metadata']['name']} is in a queue that is gone"
    with pytest.raises(ApiError):
        world.submit(job("late", queue="above"))
