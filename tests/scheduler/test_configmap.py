"""The configuration in a ConfigMap: heard by the scheduler's own watch, before the first cycle and whenever it changes."""

from __future__ import annotations

import pytest

from cluster.clock import ManualClock
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import AlreadyExists
from cluster.kinds import CONFIG_MAP
from scheduler.configmap import KEY, MapKey
from scheduler.loop import SchedulerLoop
from scheduler.source import ConfState

FILE = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
THEIRS = FILE.replace("allocate", "enqueue, allocate")
NEWER = THEIRS.replace("gang", "priority")
PLACE = MapKey("sched", "conf")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("conf", MapKey("here", "conf", KEY)),
        ("volcano-system/volcano-scheduler-configmap", MapKey("volcano-system", "volcano-scheduler-configmap", KEY)),
        ("a/b.c:my_file.conf", MapKey("a", "b.c", "my_file.conf")),
        ("conf:k", MapKey("here", "conf", "k")),
    ],
)
def test_the_place_is_read_as_it_is_written(text, found):
    assert MapKey.parse(text, "here") == found
    assert MapKey.parse(str(found)) == found


@pytest.mark.parametrize("text", ["", "/", "a/", "/b", "a/b/c", "A/b", "a/b:", "a/b:k/l", "a b", "a/-b", "é"])
def test_what_is_no_place_says_what_would_be_right(text):
    with pytest.raises(ValueError, match="such as volcano-system/volcano-scheduler-configmap"):
        MapKey.parse(text)


class World:
    """A scheduler over a cluster, and what it told of its configuration."""

    def __init__(self, file, last: str = "") -> None:
        self.cluster, self.clock, self.told = EmbeddedCluster(), ManualClock(1000.0), []
        path = file / "own.conf"
        path.write_text(FILE)
        self.path = str(path)
        self.loop = SchedulerLoop(self.cluster, path, self.clock, told=self.told.append, watched=PLACE, last=last)

    def put(self, text: str | None, key: str = KEY) -> None:
        data = {"data": {key: text} if text is not None else {}}
        try:
            self.cluster.create(CONFIG_MAP, {"metadata": {"name": "conf", "namespace": "sched"}, **data})
        except AlreadyExists:
            found = self.cluster.get(CONFIG_MAP, "conf", "sched")
            self.cluster.replace(CONFIG_MAP, {**found, **data})

    def step(self) -> ConfState:
        self.clock.advance(1.0)
        self.loop.step()
        return self.told[-1]


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.loop.close()


def test_the_first_cycle_already_runs_by_the_config_map_and_nothing_else_is_told(world):
    world.put(THEIRS)
    assert world.step() == ConfState(
        "sched/conf:volcano-scheduler.conf", THEIRS, 1001.0, watched="sched/conf:volcano-scheduler.conf"
    )
    assert len(world.told) == 1
    assert world.loop.conf.current.actions == ("enqueue", "allocate")


def test_without_one_the_file_is_in_force_until_there_is_one(world):
    first = world.step()
    assert (first.source, first.text, first.watched) == (world.path, FILE, "sched/conf:volcano-scheduler.conf")
    world.put(THEIRS)
    assert (world.step().text, world.step().source) == (THEIRS, "sched/conf:volcano-scheduler.conf")


def test_a_change_is_in_force_in_the_cycle_that_hears_of_it(world):
    world.put(THEIRS)
    world.step()
    world.put(NEWER)
    state = world.step()
    assert (state.text, state.since) == (NEWER, 1002.0)
    assert [option.name for option in world.loop.conf.current.plugins()] == ["priority"]


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (THEIRS.replace("gang", "gong"), KEY, "'gong' is unknown"),
        (None, KEY, "the ConfigMap sched/conf has no text at volcano-scheduler.conf"),
        (THEIRS, "other.conf", "the ConfigMap sched/conf has no text at volcano-scheduler.conf"),
    ],
)
def test_a_broken_one_is_told_and_the_last_good_one_stays(world, text, key, words):
    world.put(THEIRS)
    world.step()
    world.put(text, key)
    state = world.step()
    assert (state.text, state.since, words in state.faults[0].message) == (THEIRS, 1001.0, True)
    world.put(THEIRS)
    assert world.step().faults == ()


def test_one_that_is_broken_from_the_start_leaves_the_file_in_force(world):
    world.put("actions: 3\n")
    state = world.step()
    assert (state.source, state.text, state.broken, len(state.faults) > 0) == (world.path, FILE, "actions: 3\n", True)


def test_one_that_is_broken_from_the_start_leaves_in_force_what_it_said_last(tmp_path):
    world = World(tmp_path, last=THEIRS)
    world.put("actions: 3\n")
    state = world.step()
    assert (state.source, state.text, state.broken) == (str(PLACE), THEIRS, "actions: 3\n")
    assert (world.loop.conf.current.actions, len(world.told)) == (("enqueue", "allocate"), 1)
    world.put(NEWER)
    assert (world.step().text, world.step().faults) == (NEWER, ())
    world.loop.close()


@pytest.mark.parametrize("said", [None, THEIRS])
def test_what_was_said_last_does_not_matter_while_there_is_a_good_one_or_none(tmp_path, said):
    world = World(tmp_path, last=NEWER)
    if said:
        world.put(said)
    assert world.step().text == (said or FILE)
    world.loop.close()


def test_what_was_said_last_and_cannot_be_read_any_more_leaves_the_file_in_force(tmp_path):
    world = World(tmp_path, last="actions: 4\n")
    world.put("actions: 3\n")
    assert (world.step().text, world.told[-1].broken) == (FILE, "actions: 3\n")
    world.loop.close()


def test_one_that_is_deleted_stays_in_force_and_is_missed(world):
    world.put(THEIRS)
    world.step()
    world.cluster.delete(CONFIG_MAP, "conf", "sched")
    state = world.step()
    assert (state.text, state.faults[0].message) == (THEIRS, "the ConfigMap sched/conf is not there any more")


def test_one_that_goes_while_nobody_watches_is_missed_all_the_same(world):
    world.put(THEIRS)
    world.step()
    world.loop._start_over()
    world.cluster.delete(CONFIG_MAP, "conf", "sched")
    assert world.step().faults[0].message == "the ConfigMap sched/conf is not there any more"


def test_labels_and_other_config_maps_change_nothing(world):
    world.put(THEIRS)
    before = world.step()
    world.cluster.patch(CONFIG_MAP, "conf", "sched", {"metadata": {"labels": {"team": "a"}}})
    world.cluster.create(CONFIG_MAP, {"metadata": {"name": "conf", "namespace": "other"}, "data": {KEY: NEWER}})
    world.cluster.create(CONFIG_MAP, {"metadata": {"name": "other", "namespace": "sched"}, "data": {KEY: NEWER}})
    assert world.step() is before
    assert len(world.told) == 1
