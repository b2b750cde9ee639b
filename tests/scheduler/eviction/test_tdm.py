"""tdm with shuffle: lent nodes in their hours and after them."""

from __future__ import annotations

import pytest

from scheduler.conf import ConfError, load
from scheduler.plugins.tdm import Window
from tests.scheduler.eviction.world import LOW, Busy, conf, job
from tests.scheduler.world import node

MIDNIGHT = 1_893_456_000.0
NIGHT = {"tdm": ["arguments:", '  tdm.revocable-zone.night: "20:00-23:00"', '  tdm.evict.period: "1m"']}
TEXT = conf("enqueue, allocate, shuffle, backfill", "priority gang tdm predicates proportion nodeorder", **NIGHT)
LENT = {"volcano.sh/revocable-zone": "night"}


def clock(world: Busy, hour: float) -> Busy:
    world.offline.now = MIDNIGHT + hour * 3600
    return world


def lent_job(name, replicas, least=1, **marks):
    parts = job(name, replicas, least, cpu=1, priority=LOW)
    parts[0]["metadata"]["annotations"] = marks
    for pod in parts[1:]:
        pod["metadata"]["annotations"]["volcano.sh/revocable-zone"] = "*"
    return parts


def test_only_pods_that_may_be_ended_run_on_a_lent_node_and_only_in_its_hours():
    world = Busy(node("n0", cpu=4, labels=LENT), lent_job("a", 1), job("b", 1, cpu=1), conf=TEXT)
    assert clock(world, 12).cycle(2).running() == {}
    assert clock(world, 21).cycle(2).running() == {"a": 1}
    assert world.verdicts["b"].rejected == {"revocable_zone": 1}


def test_a_lent_node_in_its_hours_is_preferred():
    world = Busy(node("a0", cpu=4), node("n0", cpu=4, labels=LENT), lent_job("a", 1), conf=TEXT)
    clock(world, 21).cycle(2)
    assert world.bound["a-w-0"] == "n0"


@pytest.mark.parametrize(
    ("marks", "counts"),
    [
        ({}, [1, 0, 1]),
        ({"volcano.sh/jdb-max-unavailable": "2"}, [2, 0, 2]),
        ({"volcano.sh/jdb-max-unavailable": "50%"}, [2, 0, 1]),
        ({"volcano.sh/jdb-min-available": "3"}, [1, 0, 0]),
        ({"volcano.sh/jdb-min-available": "9"}, [0, 0, 0]),
    ],
)
def test_after_its_hours_pods_leave_once_a_period_as_budgets_let_them(marks, counts):
    world = Busy(node("n0", cpu=4, labels=LENT), lent_job("a", 4, **marks), conf=TEXT)
    assert clock(world, 21).cycle(5).running() == {"a": 4}
    seen = []
    for minute in (0.0, 0.5, 1.5):
        before = len(world.evicted)
        clock(world, 23.5 + minute / 60).cycle()
        seen.append(len(world.evicted) - before)
    assert seen == counts


def test_the_ledger_says_who_wanted_it():
    world = Busy(node("n0", cpu=4, labels=LENT), lent_job("a", 1), conf=TEXT)
    clock(world, 21).cycle(2)
    clock(world, 23.5).cycle()
    assert [(r.action, r.rule, r.preemptor) for r in world.records] == [("shuffle", "tdm", "")]


@pytest.mark.parametrize(
    ("start", "end", "hour", "inside"),
    [(8, 10, 9, True), (8, 10, 10, True), (8, 10, 11, False), (22, 6, 23, True), (22, 6, 5, True), (22, 6, 12, False)],
)
def test_a_window_may_reach_over_midnight(start, end, hour, inside):
    assert Window(start * 3600, end * 3600).holds(MIDNIGHT + hour * 3600) is inside


@pytest.mark.parametrize("hours", ["25:00-26:00", "8-10", "night"])
def test_hours_that_make_no_sense_are_refused_with_their_line(hours):
    with pytest.raises(ConfError, match="10:00-21:30"):
        load(conf("allocate", "gang tdm", tdm=["arguments:", f'  tdm.revocable-zone.z: "{hours}"']))
