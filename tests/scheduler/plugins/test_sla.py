"""sla: deadlines order jobs, and force admission and reservations once they have come."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import conf
from scheduler.framework.plugin import Vote
from tests.scheduler.plugins.world import World

CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: sla\n    arguments:\n      sla-waiting-time: {text}\n'


def world(**jobs: Any) -> World:
    """Jobs by their age in seconds and their annotations; the session opens at 1000."""
    at = World()
    for name, (age, *marks) in jobs.items():
        job = at.job(name, annotations=marks[0] if marks else {})
        job.creation = 1000.0 - age
    return at


def own(text: str, key: str = "volcano.sh/sla-waiting-time") -> dict[str, str]:
    return {key: text}


def test_the_earliest_deadline_goes_first_and_jobs_without_one_last() -> None:
    at = world(a=(10,), b=(0, own("20s")), c=(50, own("1h")), d=(500, own("none")))
    session = at.session("sla")
    order = sorted(at.jobs.values(), key=session.job_key)
    assert [job.name for job in order] == ["b", "c", "d", "a"]


def test_the_argument_is_for_all_and_the_annotation_goes_before_it() -> None:
    at = world(a=(61,), b=(61, own("2m")), c=(10, own("5s", "sla-waiting-time")), d=(61, own("-3s")))
    session = at.session(("sla", {"sla-waiting-time": "1m"}))
    (forced,) = session.functions("enqueueable")
    votes = {job.name: forced(job) for job in at.jobs.values()}
    assert votes == {"a": Vote.PERMIT, "b": Vote.ABSTAIN, "c": Vote.PERMIT, "d": Vote.PERMIT}


def test_at_the_very_deadline_it_is_forced() -> None:
    at = world(a=(60, own("1m")), b=(59.999, own("1m")))
    (pipelined,) = at.session("sla").functions("job_pipelined")
    assert [pipelined(job) for job in at.jobs.values()] == [Vote.PERMIT, Vote.ABSTAIN]


@pytest.mark.parametrize("text", ['"soon"', '"0s"', '"-1m"', "60"])
def test_a_waiting_time_that_is_none_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(conf.ConfError) as caught:
        conf.load(CONF.format(text=text))
    assert caught.value.faults[0].line == 6


def test_in_a_tier_before_the_quotas_it_admits_what_they_would_refuse() -> None:
    at = world(late=(100, own("30s")), early=(10, own("30s")))
    at.node("n", cpu=1, memory="1Gi")
    for job in at.jobs.values():
        job.min_resources = at.amounts({"cpu": 8})
    session = at.session("sla", "proportion", apart=True)
    assert session.enqueueable(at.jobs["ns/late"]) is None
    assert session.enqueueable(at.jobs["ns/early"]) is not None
