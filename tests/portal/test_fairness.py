"""The fairness report agrees with what the steps were, says what is not known, and loses nothing to thinning."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from cluster.projection import Batch
from queues.fairness import report
from queues.integrals import PARTS, Standing, Step
from queues.models import Queue, QueueSample, SampleTime
from queues.projection import project
from queues.sampling import FINE, KEEP, Sampler, minute_of, tidy
from tests.portal import objects as make
from tests.queues.steps import NAMES, START, brute, one, run, sampled, steps

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(make_user):
    return make_user("ada")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=steps)
def test_a_report_agrees_with_the_areas_between_its_samples(moves, make_user, django_user_model):
    QueueSample.objects.all().delete()
    SampleTime.objects.all().delete()
    user = django_user_model.objects.filter(username="ada").first() or make_user("ada")
    project(Batch([make.queue(name) for name in NAMES]))
    Queue.objects.update(deleted_at=START + timedelta(hours=1))  # of those that are there no longer it is known that they were
    found = run(moves)
    sampled(Sampler(), found)
    told = report(user, "gpu", START, START + timedelta(hours=1))
    moments = list(SampleTime.objects.values_list("at", flat=True))
    edges = [round((at - START).total_seconds() * 1000) for at in (moments[0], moments[-1])]
    inside = [step for step in found if edges[0] <= step.at <= edges[1]]
    if len(moments) < 2:
        assert not told.known
        assert told.total.sums["received"] == 0
        return
    for part in PARTS[:-1]:
        assert told.total.sums[part] == sum(brute(inside, name, part) for name in NAMES), part
    assert told.capacity == 200_000 * (edges[1] - edges[0])


def test_time_in_which_nobody_wrote_is_unknown_and_counts_for_nobody(ada):
    project(Batch([make.queue("a")]))
    every = 10_000
    sampled(Sampler(), [Step(at, one(1000), {"gpu": 4000}) for at in range(0, 300_001, every)])
    sampled(Sampler(), [Step(at, one(3000), {"gpu": 4000}) for at in range(900_000, 1_200_001, every)])
    told = report(ada, "gpu", START, START + timedelta(seconds=1200))
    assert told.seconds == 600
    assert [(gap.begin - START, gap.end - START) for gap in told.gaps] == [(timedelta(seconds=300), timedelta(seconds=900))]
    assert told.total.sums["received"] == (1000 + 3000) * 300_000
    assert told.capacity == 4000 * 600_000


def test_a_process_that_stood_still_begins_anew(ada):
    sampler = Sampler()
    sampled(sampler, [Step(0, one(1000)), Step(10_000, one(1000)), Step(200_000, one(9000)), Step(210_000, one(9000))])
    told = report(ada, "gpu", START, START + timedelta(seconds=300))
    assert told.total.sums["received"] == 1000 * 10_000 + 9000 * 10_000
    assert len(told.known) == 2


def test_a_queue_that_is_gone_keeps_what_it_had(ada):
    with_b = one(1000) | {"b": Standing({"gpu": 2000}, {"gpu": 2000}, {"gpu": 2000})}
    moves = [Step(at, with_b if at < 64_000 else one(1000)) for at in range(0, 600_000, 4000)]
    sampled(Sampler(), moves)
    tidy(START + FINE + timedelta(hours=2))
    told = report(ada, "gpu", START, START + timedelta(seconds=600))
    last = max(at for at in range(0, 600_000, 4000) if SampleTime.objects.filter(at=START + timedelta(milliseconds=at)).exists())
    assert told.total.sums["received"] == 1000 * last + 2000 * 64_000


def test_of_old_minutes_one_sample_is_left_and_nothing_is_lost(ada):
    sampled(Sampler(), [Step(at, one(1000 + at)) for at in range(0, 1_200_000, 10_000)])
    before = report(ada, "gpu", START, START + timedelta(seconds=1200)).total.sums
    tidy(START + FINE + timedelta(minutes=30))
    left = list(SampleTime.objects.values_list("at", flat=True))
    assert len(left) == 21  # the last of each of twenty minutes, and the first of all
    assert len({minute_of(at) for at in left}) == 20
    assert QueueSample.objects.count() == 21
    assert report(ada, "gpu", START, START + timedelta(seconds=1200)).total.sums == before
    tidy(START + KEEP + timedelta(seconds=601))
    assert SampleTime.objects.first().at > START + timedelta(seconds=600)
