"""Shares over time, what waited over time, and which queue has which colour."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache

from jobs.choices import JobPhase
from portal.demand import asked_over_time
from queues import history
from queues.colours import CATEGORIES, categories
from queues.models import QueueSample
from tests import factories as make
from tests.factories import GPU

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 2, 12, 0, 5, tzinfo=UTC)
HOUR = history.WINDOWS["1h"]


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()
    yield
    cache.clear()


def sample(at, **gpus):
    """One sample of every queue at one instant, in GPUs."""
    make.save([QueueSample(queue=name, at=at, allocated={GPU: count * 1000}) for name, count in gpus.items()])


def test_a_window_is_thinned_to_the_last_sample_of_each_slot(django_assert_num_queries):
    for second in range(0, 7200, 10):
        sample(NOW - timedelta(seconds=second), a=second)
    with django_assert_num_queries(2):
        found = history.shares_over_time(["a"], [], GPU, HOUR, NOW)
    assert len(found.times) in (history.POINTS, history.POINTS + 1)
    assert found.times == sorted(found.times)
    assert found.times[-1] == NOW
    assert found.times[0] >= NOW - HOUR - HOUR / history.POINTS
    assert found.series["a"][-1] == 0


def test_the_points_of_a_window_stay_where_they_are_as_time_goes_on():
    for second in range(0, 3600, 10):
        sample(NOW - timedelta(seconds=second), a=1)
    before = history.shares_over_time(["a"], [], GPU, HOUR, NOW).times
    after = history.shares_over_time(["a"], [], GPU, HOUR, NOW + timedelta(seconds=7)).times
    assert set(before[:-1]) <= set(after)


def test_a_long_window_of_a_young_cluster_is_as_fine_as_a_short_one():
    for second in range(0, 1200, 10):
        sample(NOW - timedelta(seconds=second), a=1)
    week = history.shares_over_time(["a"], [], GPU, history.WINDOWS["7d"], NOW)
    assert len(week.times) > history.POINTS / 3


def test_where_nothing_was_sampled_there_is_nothing():
    assert history.shares_over_time(["a"], ["b"], GPU, HOUR, NOW).times == []


def test_named_queues_have_a_series_and_the_others_one_together():
    sample(NOW - timedelta(minutes=2), a=1, b=2, c=3, idle=0)
    sample(NOW, a=4, b=5, c=6, idle=0)
    found = history.shares_over_time(["a", "idle"], ["b", "c"], GPU, HOUR, NOW)
    assert found.series == {"a": [1000, 4000], "": [5000, 11000]}
    assert found.as_json()["series"] == {"a": [1, 4], "": [5, 11]}


def test_an_instant_before_a_queue_was_made_is_unknown_for_it():
    sample(NOW - timedelta(minutes=2), a=1)
    sample(NOW, a=1, b=2)
    assert history.shares_over_time(["a", "b"], [], GPU, HOUR, NOW).series["b"] == [None, 2000]


def test_few_queues_have_a_colour_each_and_a_new_one_changes_no_other():
    queues = [make.queue("root"), *(make.queue(f"q{at}", created_at=NOW + timedelta(seconds=at)) for at in range(5))]
    before = categories(queues)
    assert len(set(before.values())) == 5
    after = categories([*queues, make.queue("a-new-one", created_at=NOW + timedelta(minutes=1))])
    assert {name: after[name] for name in before} == before
    assert len(set(after.values())) == CATEGORIES


def test_a_queue_made_anew_beside_its_forerunner_has_one_colour():
    queues = [make.queue(f"q{at}", created_at=NOW + timedelta(seconds=at)) for at in range(CATEGORIES)]
    again = make.queue("q0", created_at=NOW + timedelta(minutes=1))
    found = categories([*queues, again])
    assert sorted(found) == [queue.name for queue in queues]
    assert len(set(found.values())) == CATEGORIES


def test_a_queue_with_queues_below_it_has_no_colour():
    rows = [make.queue("root"), make.queue("team"), make.queue("nlp", parent="team")]
    assert set(categories(rows)) == {"nlp"}


def test_of_many_queues_those_that_used_most_have_the_colours():
    sample(make.now(), **{f"q{at}": at for at in range(20)})
    assert set(categories([make.queue(f"q{at}") for at in range(20)])) == {f"q{at}" for at in range(14, 20)}


@pytest.fixture
def user():
    return get_user_model().objects.create_user("ada")


def waits(made, **values):
    return make.job(f"j{made.timestamp():.0f}{len(values)}", gpus=8, created_at=made, phase_since=made, **values)


def test_a_job_is_asked_for_from_its_submission_to_its_start(user):
    times = [NOW + timedelta(minutes=at) for at in range(5)]
    start = NOW + timedelta(minutes=3)
    make.save([waits(NOW + timedelta(minutes=1), phase=JobPhase.RUNNING, started_at=start)])
    assert asked_over_time(user, times) == [0, 8, 8, 0, 0]


def test_what_waits_now_is_asked_for_at_the_end(user):
    times = [NOW + timedelta(minutes=at) for at in range(4)]
    again = waits(NOW, started_at=NOW + timedelta(minutes=1), phase=JobPhase.PENDING)
    again.phase_since = NOW + timedelta(minutes=3)
    make.save([waits(NOW + timedelta(minutes=2)), again])
    assert asked_over_time(user, times) == [8, 0, 8, 16]


def test_a_job_that_ended_or_was_let_go_before_it_ran_asks_for_nothing_any_more(user):
    times = [NOW + timedelta(minutes=at) for at in range(4)]
    left = waits(NOW, phase=JobPhase.ABORTED)
    left.phase_since = NOW + timedelta(minutes=2)
    make.save([left, waits(NOW, deleted_at=NOW + timedelta(minutes=1))])
    assert asked_over_time(user, times) == [16, 8, 0, 0]


def test_nothing_is_asked_where_there_are_no_points(user):
    assert asked_over_time(user, []) == []
