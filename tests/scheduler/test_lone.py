"""What a class finds on single rows in plain numbers is what it finds by arrays, to the last bit."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.model.nodes import Block
from scheduler.placement.standing import Evaluator
from tests.scheduler.test_ladder import PACK, SPREAD, build, fleets, jobs
from tests.scheduler.world import World, gang, node

MOST = SPREAD.replace("- name: nodeorder", "- name: nodeorder\n    arguments: {mostrequested.weight: 3}")


def held_to_arrays(seen: list[int]):
    """`Evaluator._follow` that compares every row which plain numbers can tell of with what arrays tell."""
    follow = Evaluator._follow

    def compared(evaluator, standing, changed):
        follow(evaluator, standing, changed)
        lone = evaluator._alone(standing)
        if lone is None:
            return
        nodes, found = evaluator.nodes, evaluator.views(standing, Block(evaluator.nodes))
        for row in np.flatnonzero(standing.static_ok).tolist():
            idle, future, score = lone.view(row, nodes.plain(row), settled=not nodes.unsettled)
            assert (idle, future) == (bool(found.idle[row]), bool(found.future[row]))
            assert not future or score == float(found.score[row])
            seen.append(row)
        mine, open_ = standing.views, found.future
        assert (mine.idle == found.idle).all()
        assert (mine.future == found.future).all()
        assert (mine.score[open_] == found.score[open_]).all()
        if not standing.normalised:
            best = np.where(found.idle, found.score, -np.inf)
            assert standing.best_idle() == (int(best.argmax()) if found.idle.any() else -1)

    return patch.object(Evaluator, "_follow", compared)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(fleets, jobs, st.sampled_from([SPREAD, PACK, MOST]))
def test_every_row_is_found_as_arrays_find_it(fleet, specs, conf):
    with held_to_arrays([]):
        build(fleet, specs, conf).cycle(2)


@pytest.mark.parametrize("conf", [SPREAD, PACK, MOST])
@pytest.mark.parametrize("memory", [7, 0], ids=["with memory", "without"])
def test_jobs_of_one_pod_are_looked_at_so(conf, memory):
    seen: list[int] = []
    fleet = [node(f"n{i}", cpu=16, gpu=8 * (i % 2), memory=f"{memory}Gi") for i in range(5)]
    wanted = [gang(f"j{i}", 1, cpu=1 + i % 3, **({"gpu": 1} if i % 4 == 0 else {})) for i in range(20)]
    with held_to_arrays(seen):
        World(fleet, *wanted, conf=conf).cycle()
    assert seen


def test_what_is_kept_of_a_row_goes_with_every_change_of_it():
    world = World([node("a", cpu=16)], gang("j", 2, cpu=3))
    nodes = world.offline.cache.nodes
    row = nodes.index["a"]
    before = nodes.plain(row)
    assert nodes.plain(row) is before
    world.cycle()
    assert nodes.plain(row).used[0] == 6000
    assert nodes.plain(row).pod_count == 2
