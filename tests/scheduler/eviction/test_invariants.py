"""What holds on every cluster: evictions are minimal and useful, protected gangs stay whole, and it all comes to rest."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import conf as configuration
from scheduler.eviction import taker
from scheduler.framework.victims import VictimRules
from scheduler.model.tasks import TaskStatus
from tests.scheduler.eviction.world import HIGH, LOW, MID, Busy, conf, job
from tests.scheduler.test_statement import picture, same
from tests.scheduler.world import node, queue

ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"
GUARDED = conf(ACTIONS, "priority gang conformance -drf predicates proportion nodeorder")
CHART = conf(ACTIONS, "priority -gang conformance -drf predicates proportion nodeorder")
TIERS = conf(ACTIONS, "priority gang conformance", "drf predicates proportion nodeorder")


@st.composite
def cluster_makers(draw, text):
    nodes = [
        node(f"n{i}", cpu=draw(st.integers(1, 6)), gpu=draw(st.sampled_from([0, 2]))) for i in range(draw(st.integers(1, 3)))
    ]
    queues = [queue("a", draw(st.integers(1, 3))), queue("b", draw(st.integers(1, 3)))]
    gangs = []
    for number in range(draw(st.integers(2, 7))):
        replicas = draw(st.integers(1, 4))
        amounts = {"cpu": draw(st.integers(1, 3))} | ({"gpu": 1} if draw(st.integers(0, 3)) == 0 else {})
        at = {"queue": draw(st.sampled_from("ab")), "priority": draw(st.sampled_from([LOW, MID, HIGH]))}
        gangs.append(job(f"j{number}", replicas, draw(st.integers(1, replicas)), at=number, **at, **amounts))
    first, cycles = draw(st.integers(1, len(gangs))), draw(st.integers(0, 3))

    def made():
        world = Busy(*deepcopy((nodes, queues, *gangs[:first])), conf=text, restarts=True)
        return world.cycle(cycles), deepcopy(gangs[first:])

    return made


def clusters(text):
    return cluster_makers(text).map(lambda made: made())


@settings(deadline=None, max_examples=20)
@given(clusters(GUARDED))
def test_gangs_are_never_broken_where_gang_has_a_say(made):
    world, later = made
    for parts in later:
        world.add(parts)
        for _ in range(3):
            whole = {j.uid: j.ready_count() for j in world.offline.cache.jobs.values() if j.ready_count() >= j.min_available}
            world.cycle()
            for uid, before in whole.items():
                now = world.offline.cache.jobs[uid]
                assert now.ready_count() >= now.min_available, (uid, before, now.ready_count())


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([GUARDED, CHART, TIERS]).flatmap(clusters))
def test_it_comes_to_rest(made):
    world, later = made
    world.add(*later).cycle(25)
    before = len(world.evicted)
    world.cycle(8)
    assert len(world.evicted) == before


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([GUARDED, CHART, TIERS]).flatmap(clusters), st.data())
def test_no_victim_of_a_cycle_could_have_been_spared(made, data):
    """Each plan is put to the test as it is committed: without any one of its victims some task has no place."""
    world, later = made
    world.add(*later)
    kept = []
    commit = taker.starving.commit

    def watched(ssn, statement, gang):
        for victim in statement.evicted():
            cause = statement.spare(victim)
            terms = PREEMPT_ROOM if cause.action == "preempt" else RECLAIM_ROOM
            stays = True
            for task in statement.pipelined():
                if task.node == victim.node:
                    with statement.lifted(task) as row:
                        standing = ssn.evaluator.standing(task.cls)
                        stays = stays and taker.fits(ssn, standing, task, row, asks_room=terms)
            statement.evict(victim, cause)
            kept.append((victim.name, stays))
        commit(ssn, statement, gang)

    taker.starving.commit = watched
    try:
        world.cycle(data.draw(st.integers(1, 4)))
    finally:
        taker.starving.commit = commit
    assert not [name for name, spare in kept if spare]


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([GUARDED, CHART, TIERS]).flatmap(cluster_makers), st.integers(1, 4))
def test_what_is_known_of_whole_jobs_changes_no_decision(made, cycles):
    """Which rows have no victims, and which rule spares whom, is the same when every task is looked at."""

    def decided():
        world, later = made()
        world.add(*later).cycle(cycles)
        return [
            ([(binding.uid, binding.node) for binding in cycle.binds], cycle.record.evictions, cycle.record.verdicts)
            for cycle in world.cycles
        ]

    quick = decided()
    with mock.patch.multiple(VictimRules, hosts=lambda *_: None, surely_spared_by=lambda *_: ""):
        assert decided() == quick


PREEMPT_ROOM, RECLAIM_ROOM = True, False


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([GUARDED, CHART, TIERS]).flatmap(clusters))
def test_whoever_evicts_alone_runs_in_the_next_cycle_unless_others_take_the_room(made):
    world, later = made
    world.cycle(6)
    world.restarts = False
    for parts in later[:1]:
        takers = {record.preemptor for record in world.add(parts).cycle().cycles[-1].record.evictions}
        world.cycle()
        if len(takers) == 1:
            (taking,) = takers
            tasks = [world.offline.cache.tasks[binding.uid] for binding in world.cycles[-1].binds]
            others = [task for task in tasks if task.job is not None and task.job.uid != taking]
            assert world.offline.cache.jobs[taking].is_ready() or others, taking


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([GUARDED, CHART, TIERS]).flatmap(clusters))
def test_taking_back_restores_every_array_bit_for_bit(made):
    world, later = made
    world.add(*later)
    settled = configuration.load(conf("allocate", "priority gang predicates proportion"))
    cache = world.offline.cache
    before = picture(cache.open_session("a", settled, now=0.0, random=Random(0)))
    ssn = cache.open_session("b", world.offline.conf, now=0.0, random=Random(0))
    from scheduler.framework import registry

    for name in ("preempt", "reclaim"):
        registry.actions[name](ssn.conf.action_arguments(name)).execute(ssn)
    taken = [task for task, _ in ssn.evictions]
    ssn.undo()
    for task in taken:
        cache.evict_failed(task.uid)
    assert same(before, picture(cache.open_session("c", settled, now=0.0, random=Random(0))))
    assert all(task.status in (TaskStatus.RUNNING, TaskStatus.BOUND) for task in taken)
