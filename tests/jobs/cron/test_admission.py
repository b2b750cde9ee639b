"""What cron jobs are refused for and where, and what they are given."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.errors import Invalid
from cluster.kinds import CRON_JOB, QUEUE
from jobs import operations
from queues import operations as queues
from tests.jobs.cron.world import cron, make
from tests.jobs.world import World, task


def refused(world: World, obj: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as refusal:
        operations.submit_kind(world.cluster, CRON_JOB, obj)
    return {fault.pointer: fault.message for fault in refusal.value.fields}


def test_what_is_left_out_is_filled_in(world: World):
    spec = make(world, cron())["spec"]
    fields = ("concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    assert [spec[field] for field in fields] == ["Allow", False, 3, 1]


@pytest.mark.parametrize(
    ("spec", "where", "said"),
    [
        ({"schedule": "61 * * * *"}, "/spec/schedule", "'61' is no minute"),
        ({"schedule": ""}, "/spec/schedule", "must have 5"),
        ({"schedule": 5}, "/spec/schedule", "must be text"),
        ({"schedule": "TZ=UTC * * * * *"}, "/spec/schedule", "timeZone"),
        ({"timeZone": ""}, "/spec/timeZone", "is no time zone"),
        ({"timeZone": "Local"}, "/spec/timeZone", "is no time zone"),
        ({"timeZone": "Mars/Phobos"}, "/spec/timeZone", "there is no time zone"),
        ({"startingDeadlineSeconds": -1}, "/spec/startingDeadlineSeconds", "must be 0 or more"),
        ({"concurrencyPolicy": "Maybe"}, "/spec/concurrencyPolicy", "must be one of"),
        ({"suspend": "no"}, "/spec/suspend", "must be true or false"),
        ({"successfulJobsHistoryLimit": -1}, "/spec/successfulJobsHistoryLimit", "must be 0 or more"),
        ({"jobTemplate": {}}, "/spec/jobTemplate/spec", "is required"),
        ({"jobTemplate": {"spec": {"tasks": []}}}, "/spec/jobTemplate/spec/tasks", "at least one task"),
        (
            {"jobTemplate": {"metadata": {"labels": {"a b": "c"}}, "spec": {"tasks": [task()]}}},
            "/spec/jobTemplate/metadata/labels/a b",
            "no label key",
        ),
        (
            {"jobTemplate": {"spec": {"tasks": [task()], "queue": "zzz"}}},
            "/spec/jobTemplate/spec/queue",
            "there is no queue 'zzz'",
        ),
    ],
)
def test_a_faulty_cron_job_is_refused_where_it_is_wrong(world: World, spec: dict[str, Any], where: str, said: str):
    assert said in refused(world, cron(**{"schedule": "@daily", **spec}))[where]
    make(world, cron())
    with pytest.raises(Invalid) as refusal:
        world.cluster.replace(CRON_JOB, cron(**{"schedule": "@daily", **spec}))
    assert where in [fault.pointer for fault in refusal.value.fields]


@pytest.mark.parametrize("title", ["c" * 53, "C", "a_b", ""])
def test_a_name_whose_jobs_would_have_none_is_refused(world: World, title: str):
    assert "/metadata/name" in refused(world, cron(title=title))


def test_a_name_is_as_long_as_the_names_of_its_pods_allow(world: World):
    make(world, cron(title="c" * (63 - len("-30000000-worker-0"))))
    longer = cron(title="c" * (64 - len("-30000000-worker-0")))
    assert "1 characters too long" in refused(world, longer)["/spec/jobTemplate/spec/tasks/0/name"]
    quick = cron("@every 30s", title="c" * (64 - len("-1800000000-worker-0")))
    assert "1 characters too long" in refused(world, quick)["/spec/jobTemplate/spec/tasks/0/name"]


def test_a_queue_that_is_closed_now_is_no_fault(world: World):
    world.make_queue("night")
    world.settle()
    queues.act(world.cluster, "night", "close")
    world.settle()
    assert world.cluster.get(QUEUE, "night")["status"]["state"] == "Closed"
    made = make(world, cron(jobTemplate={"spec": {"tasks": [task()], "queue": "night"}}))
    assert made["spec"]["jobTemplate"]["spec"]["queue"] == "night"


def test_everything_in_a_cron_job_can_change(world: World):
    make(world, cron())
    changes = {"schedule": "@hourly", "timeZone": "Asia/Shanghai", "suspend": True, "concurrencyPolicy": "Replace"}
    assert world.cluster.patch(CRON_JOB, "c", "default", {"spec": changes})["spec"].items() >= changes.items()
