"""A snapshot replays to the decisions of the live cycle, in random clusters, also by another configuration."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest
import yaml

from cluster.embedded.patches import merge
from cluster.errors import BadRequest
from cluster.kinds import POD
from scheduler import conf as configuration
from scheduler.cycle import Cycle, run_cycle
from scheduler.replay import Decisions, decisions, replay
from scheduler.snapshot import Offline, Snapshot
from scheduler.status import StatusKeeper
from tests.scheduler.fuzz.clusters import random_cluster
from tests.scheduler.fuzz.confs import random_conf
from tests.scheduler.fuzz.recorded import Recorded

SEEDS = range(60)
REMEMBER = ("tdm", "rescheduling")
"""Plugins that remember by themselves when they evicted last."""


class Live(Recorded):
    """A cluster that keeps everything that the scheduler writes, the nominations of pods included."""

    def take_in(self, done: Cycle) -> None:
        super().take_in(done)
        for write in done.writes.statuses:
            pod = self.truth.get((POD, f"{write.namespace}/{write.name}"))
            if write.kind == POD and pod is not None:
                self.apply("MODIFIED", merge(pod, {"status": write.status}))


def conf_of(random: Random) -> str:
    made = random_conf(random)
    for tier in made["tiers"]:
        tier["plugins"] = [option for option in tier["plugins"] if option["name"] not in REMEMBER]
    return yaml.safe_dump(made, sort_keys=False)


def snapshot_of(world: Recorded, text: str) -> Snapshot:
    """What is written to a file and read again."""
    found = Snapshot.of(deepcopy(list(world.truth.values())), text)
    found.at, found.usage = world.now, dict(world.cache.usage)
    return Snapshot.load(found.dump())


def assert_same(again: Decisions, live: Decisions) -> None:
    assert again.binds == live.binds
    assert again.evictions == live.evictions
    assert {uid: again.reasons()[uid] for uid in live.verdicts} == live.reasons()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_replayed_cycle_decides_as_the_live_one(seed):
    random = Random(seed)
    parts, later = random_cluster(random)
    text, other = conf_of(random), conf_of(random)
    world = Live([obj for part in parts for obj in part], text, Random(seed))
    for number in range(4):
        snapshot = snapshot_of(world, text)
        done = world.decide()
        (again,) = replay(snapshot)
        assert_same(again, decisions(done))
        world.settle(done, failing=0.0)
        for obj in later[number] if number < len(later) else ():
            world.apply("ADDED", obj)
    (again,) = replay(snapshot_of(world, text), other)
    by_other = run_cycle(world.cache, configuration.load(other), StatusKeeper(), 9, now=world.now, random=Random(0))
    assert_same(again, decisions(by_other))


def test_without_a_moment_time_begins_at_nothing_and_what_is_no_moment_is_refused():
    assert Offline(Snapshot.load(Snapshot().dump())).now == 0.0
    assert Snapshot.load(Snapshot(at=5.5, usage={"n0": (1.0, 2.0, 3.0)}).dump()) == Snapshot(
        at=5.5, usage={"n0": (1.0, 2.0, 3.0)}
    )
    with pytest.raises(BadRequest, match="not what a snapshot has there"):
        Snapshot.load(Snapshot(at=5.5).dump().replace(b"5.5", b"[]"))
