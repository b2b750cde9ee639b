"""Plays a random cluster: cycles with events between them, and after each what must hold whatever the configuration says."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import yaml

from cluster.kinds import NODE, POD, POD_GROUP, QUEUE
from cluster.port import Obj
from tests.scheduler.fuzz.promises import (
    deterministic,
    everybody_is_told,
    gangs_whole,
    nothing_overcommitted,
    queues_within_limits,
    same_as_counted_anew,
    sound_binds,
    sound_evictions,
    twin_of,
)
from tests.scheduler.fuzz.recorded import ENDED, Recorded, leaving


def play(
    parts: list[list[Obj]], later: list[list[Obj]], conf: dict[str, Any], events: list[tuple[str, int]], *, seed: int = 0
) -> Recorded:
    """`events` are (what happens, to which): one cycle runs whenever one is "cycle"."""
    text = yaml.safe_dump(conf, sort_keys=False)
    objs, later = [obj for part in parts for obj in part], deepcopy(later)
    world = Recorded(objs, text, Random(seed))
    known: dict[str, Any] = {}
    for what, which in events:
        if what == "cycle":
            cycle(world, known, failing=0.3 if which % 4 == 0 else 0.0)
        else:
            happen(world, what, which, later)
    return world


def cycle(world: Recorded, known: dict[str, Any], *, failing: float) -> None:
    same_as_counted_anew(world)
    before = {key: obj for key, obj in world.truth.items() if key[0] == POD}
    waiting = {uid: job.phase for uid, job in world.cache.jobs.items()}
    twin = twin_of(world)
    done = world.decide()
    deterministic(world, done, twin)
    sound_binds(world, before, done)
    sound_evictions(world, before, done)
    nothing_overcommitted(world, before, done)
    gangs_whole(world, done)
    queues_within_limits(world, done)
    for uid, verdict in done.record.verdicts.items():
        known.pop(uid, None) if verdict is None else known.update({uid: verdict})
    everybody_is_told(world, known, waiting, done)
    world.settle(done, failing=failing)


def happen(world: Recorded, what: str, which: int, later: list[list[Obj]]) -> None:
    """Something from outside."""
    if what == "arrive":
        for obj in later.pop(0) if later else ():
            world.apply("ADDED", obj)
        return
    kind = {"pod": POD, "node": NODE, "group": POD_GROUP, "queue": QUEUE}.get(what.partition("-")[0])
    found = (
        world.all(kind)
        if kind
        else [obj for obj in world.truth.values() if obj["kind"] not in ("Pod", "PodGroup", "Node", "Queue")]
    )
    if not found:
        return
    obj = found[which % len(found)]
    match what.partition("-")[2]:
        case "gone":
            world.apply("DELETED", obj)
        case "leaves":
            world.apply("MODIFIED", leaving(obj))
        case "ends" if obj["spec"].get("nodeName"):
            world.apply("MODIFIED", {**obj, "status": {"phase": ENDED[which % 2]}})
        case "cordoned":
            world.apply("MODIFIED", {**obj, "spec": {**obj["spec"], "unschedulable": which % 2 == 0}})
        case "shrinks":
            amounts = {**obj["status"]["allocatable"], "cpu": str(which % 8)}
            world.apply("MODIFIED", {**obj, "status": {**obj["status"], "allocatable": amounts}})
        case "back":
            world.apply("DELETED", obj)
            world.apply("ADDED", {**obj, "metadata": {**obj["metadata"], "uid": f"again-{which}"}})
        case "changes" if kind == POD_GROUP:
            world.apply("MODIFIED", {**obj, "spec": {**obj["spec"], "minMember": which % 5}})
        case "changes" if kind == QUEUE:
            spec = {**obj["spec"], "capability": {"cpu": str(which % 12)}, "weight": which % 5}
            world.apply("MODIFIED", {**obj, "spec": spec})
        case "closes":
            world.apply("MODIFIED", {**obj, "status": {"state": "Closed" if which % 2 else "Open"}})


EVENTS = (
    "arrive", "arrive", "pod-gone", "pod-leaves", "pod-ends", "pod-ends", "node-gone", "node-cordoned", "node-shrinks",
    "node-back", "group-gone", "group-changes", "queue-gone", "queue-changes", "queue-closes", "other-gone",
)  # fmt: skip


def random_events(random: Random) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for _ in range(random.randint(1, 5)):
        found.append(("cycle", random.randint(0, 99)))
        found += [(random.choice(EVENTS), random.randint(0, 99)) for _ in range(random.randint(0, 3))]
    return [*found, ("cycle", 1), ("cycle", 1)]
