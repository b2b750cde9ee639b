"""Schedules: the grammar, the zones, the changes of the clocks, what was missed."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.cron.schedule import Schedule, ScheduleError, zone


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def times(schedule: str, name: str | None, start: str, count: int) -> list[str]:
    where = zone(name)
    return [datetime.fromtimestamp(t, where).isoformat() for t in Schedule(schedule, name).upcoming(at(start), count)]


@pytest.mark.parametrize(
    ("schedule", "first", "second"),
    [
        ("*/5 * * * *", "2030-01-01T00:05", "2030-01-01T00:10"),
        ("0 */6 * * *", "2030-01-01T06:00", "2030-01-01T12:00"),
        ("30 8 * * MON-FRI", "2030-01-01T08:30", "2030-01-02T08:30"),
        ("0 0 1,15 * *", "2030-01-15T00:00", "2030-02-01T00:00"),
        ("0 0 1 jan ?", "2031-01-01T00:00", "2032-01-01T00:00"),
        ("0 12 13 * FRI", "2030-01-04T12:00", "2030-01-11T12:00"),  # two restricted days: either will do
        ("0 0 1-31/10 * 3", "2030-01-02T00:00", "2030-01-09T00:00"),
        ("5/20 * * * *", "2030-01-01T00:05", "2030-01-01T00:25"),
        ("0 0 29 2 *", "2032-02-29T00:00", "2036-02-29T00:00"),
        ("@hourly", "2030-01-01T01:00", "2030-01-01T02:00"),
        ("@daily", "2030-01-02T00:00", "2030-01-03T00:00"),
        ("@midnight", "2030-01-02T00:00", "2030-01-03T00:00"),
        ("@weekly", "2030-01-06T00:00", "2030-01-13T00:00"),
        ("@monthly", "2030-02-01T00:00", "2030-03-01T00:00"),
        ("@yearly", "2031-01-01T00:00", "2032-01-01T00:00"),
        ("@annually", "2031-01-01T00:00", "2032-01-01T00:00"),
        ("@every 1h30m", "2030-01-01T01:30", "2030-01-01T03:00"),
    ],
)
def test_the_next_two_times(schedule: str, first: str, second: str):
    found = times(schedule, None, "2030-01-01T00:00:00+00:00", 2)
    assert found == [f"{first}:00+00:00", f"{second}:00+00:00"]


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("* * * *", "has 4 fields and must have 5"),
        ("0 0 * * * *", "has 6 fields and must have 5"),
        ("60 * * * *", "'60' is no minute: they go from 0 to 59"),
        ("* 24 * * *", "'24' is no hour"),
        ("* * 0 * *", "'0' is no day of month: they go from 1 to 31"),
        ("* * * 13 *", "'13' is no month: they go from 1 to 12, or JAN to DEC"),
        ("* * * * 7", "'7' is no day of week: they go from 0 to 6, or SUN to SAT"),
        ("* * * * FOO", "'FOO' is no day of week"),
        ("*/0 * * * *", "the step of the minute '*/0' must be 1 or more"),
        ("30-10 * * * *", "begins after its end"),
        ("1,, * * * *", "'' is no minute"),
        ("* * L * *", "'L' is no day of month"),
        ("* * * * 5#2", "'5#2' is no day of week"),
        ("0 0 30 2 *", "names a day that never comes"),
        ("0 0 31 4,6,9,11 *", "names a day that never comes"),
        ("@often", "known names are @annually"),
        ("@every", "after @every stands a duration"),
        ("@every -1h", "above 0"),
        ("@every 100000h", "ten years at most"),
        ("TZ=UTC 0 0 * * *", "name it in timeZone"),
        ("CRON_TZ=UTC 0 0 * * *", "name it in timeZone"),
        ("", "has 0 fields"),
        ("٣ * * * *", "is no minute"),
    ],
)
def test_a_schedule_that_is_none_is_refused_by_what_would_be_right(schedule: str, said: str):
    with pytest.raises(ScheduleError) as refusal:
        Schedule(schedule)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "name", ["Local", "local", "", "Nowhere/City", "../etc/passwd", "-x", "a" * 15, "Europe/Berlin/../x", "Ä"]
)
def test_a_time_zone_that_is_none_is_refused(name: str):
    with pytest.raises(ScheduleError, match="no time zone"):
        zone(name)


def test_times_are_those_of_the_zone():
    assert times("0 9 * * *", "Asia/Shanghai", "2030-01-01T00:00:00+00:00", 2) == [
        "2030-01-01T09:00:00+08:00",
        "2030-01-02T09:00:00+08:00",
    ]


# Berlin leaves 02:00 to 03:00 out on 31 March 2030, and has it twice on 27 October 2030.


def test_a_time_of_day_that_is_left_out_comes_right_after_the_gap():
    assert times("30 2 * * *", "Europe/Berlin", "2030-03-30T12:00:00+01:00", 2) == [
        "2030-03-31T03:00:00+02:00",
        "2030-04-01T02:30:00+02:00",
    ]


def test_a_time_of_day_that_comes_twice_counts_once():
    assert times("30 2 * * *", "Europe/Berlin", "2030-10-26T12:00:00+02:00", 2) == [
        "2030-10-27T02:30:00+02:00",
        "2030-10-28T02:30:00+01:00",
    ]


def test_what_repeats_goes_by_elapsed_time():
    assert times("*/30 * * * *", "Europe/Berlin", "2030-10-27T01:30:00+02:00", 5) == [
        "2030-10-27T02:00:00+02:00",
        "2030-10-27T02:30:00+02:00",
        "2030-10-27T02:00:00+01:00",
        "2030-10-27T02:30:00+01:00",
        "2030-10-27T03:00:00+01:00",
    ]
    assert times("0 */1 * * *", "Europe/Berlin", "2030-03-31T00:30:00+01:00", 3) == [
        "2030-03-31T01:00:00+01:00",
        "2030-03-31T03:00:00+02:00",
        "2030-03-31T04:00:00+02:00",
    ]


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", None])
@pytest.mark.parametrize("schedule", ["30 2 * * *", "*/20 * * * *", "15 */3 * * *", "0 1-4 * * *"])
def test_times_go_forward_and_agree_wherever_one_begins(schedule: str, name: str | None):
    plan = Schedule(schedule, name)
    for change in ("2030-03-09", "2030-03-30", "2030-04-05", "2030-10-04", "2030-10-26", "2030-11-02"):
        start = at(f"{change}T00:00:00+00:00")
        found = [t for t in plan.upcoming(start, 300) if t < start + 3 * 86_400]
        for before, after in pairwise(found):
            assert before < after == plan.next(before)
            assert plan.missed(before, after).latest == after
            assert plan.missed(before, after - 1).latest is None


def test_missed_times_are_counted_up_to_a_hundred():
    plan, start = Schedule("* * * * *"), at("2030-01-01T00:00:00+00:00")
    hundred, more = plan.missed(start, start + 100 * 60), plan.missed(start, start + 101 * 60)
    assert (hundred.latest, hundred.many) == (start + 6000, False)
    assert (more.latest, more.many) == (start + 6060, True)
    assert plan.missed(start, start + 400 * 86_400 + 59).latest == start + 400 * 86_400


def test_missed_periods_are_counted_from_the_last():
    plan, start = Schedule("@every 90s"), at("2030-01-01T00:00:10+00:00")
    assert plan.missed(start, start + 89).latest is None
    assert plan.missed(start, start + 90).latest == start + 90
    assert plan.missed(start, start + 100_000).latest == start + 1111 * 90
    assert plan.missed(start, start + 100_000).many


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 28), st.floats(1, 5_000_000), st.floats(0, 40_000_000))
def test_the_latest_missed_time_is_the_last_before_now(minute: int, hour: int, day: int, first: float, wait: float):
    plan = Schedule(f"{minute} {hour} {day} * *")
    start = at("2030-01-01T00:00:00+00:00") + first
    missed = plan.missed(start, start + wait)
    listed = [t for t in plan.upcoming(start, 20) if t <= start + wait]
    assert missed.latest == (listed[-1] if listed else None)
    assert all(datetime.fromtimestamp(t, UTC).minute == minute for t in listed)
