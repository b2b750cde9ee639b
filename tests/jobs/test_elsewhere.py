"""Jobs of other schedulers: what they write onto PodGroups becomes the reason, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from jobs import elsewhere, held
from jobs.models import PodGroup
from jobs.reasons import advice, headline, say, steps

LATE, EARLY = "2030-01-01T00:00:09Z", "2030-01-01T00:00:01Z"
MESSAGE = "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable"


def condition(kind: str, at: str, status: str = "True", **more: Any) -> dict[str, Any]:
    reason = {"Unschedulable": "NotEnoughResources", "Scheduled": "tasks in the gang are ready to be scheduled"}[kind]
    told = {"type": kind, "status": status, "reason": reason, "lastTransitionTime": at, "transitionID": "x"}
    return told | ({"message": MESSAGE} if kind == "Unschedulable" else {}) | more


def group(phase: str, *conditions: Any) -> PodGroup:
    return PodGroup(phase=phase, conditions=list(conditions))


def test_the_newest_condition_counts_since_they_pile_up() -> None:
    waits, starts = condition("Unschedulable", EARLY), condition("Scheduled", LATE)
    assert elsewhere.verdict(group("Running", waits, starts)) is None
    again = condition("Unschedulable", "2030-01-01T00:00:20Z")
    assert elsewhere.verdict(group("Inqueue", waits, starts, again)) == {
        "stage": "gang", "code": "scheduler.said", "reason": "NotEnoughResources", "said": MESSAGE,
    }  # fmt: skip


@pytest.mark.parametrize(("phase", "waits"), [("Inqueue", True), ("Unknown", True), ("Running", False)])
def test_of_two_of_the_same_second_the_phase_decides(phase: str, waits: bool) -> None:
    found = elsewhere.verdict(group(phase, condition("Unschedulable", LATE), condition("Scheduled", LATE)))
    assert (found is not None) is waits


def test_one_that_is_not_admitted_is_held_at_admission() -> None:
    found = elsewhere.verdict(group("Pending", condition("Unschedulable", LATE)))
    assert found is not None
    assert found["stage"] == "admission"


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        ["rubbish"],
        [condition("Unschedulable", LATE, "False")],
        [condition("Unschedulable", "rubbish", message="", reason="")],
    ],
)
def test_who_says_nothing_is_quoted_with_nothing(conditions: list[Any]) -> None:
    assert elsewhere.verdict(group("Pending", *conditions)) is None


def test_it_is_worded_as_a_quotation() -> None:
    found = elsewhere.verdict(group("Inqueue", condition("Unschedulable", LATE, message="100% busy\n  %(asked)s")))
    assert say(found) == "Scheduler: 100% busy %(asked)s"
    assert headline(found) == ("The scheduler of this job says: 100% busy %(asked)s.", "")
    assert advice(found).startswith("Another scheduler than Basalt's")
    assert steps(found) == []  # how far it came is not known
    assert held.is_held(found)
    with translation.override("zh-hans"):
        assert say(found).startswith("调度器：")


def test_whose_job_it_is_follows_from_its_scheduler_and_ours(settings: Any) -> None:
    settings.BASALT_SCHEDULER_NAMES = ["basalt"]
    assert elsewhere.is_ours({"spec": {"schedulerName": "basalt"}})
    assert elsewhere.is_ours({"spec": {}})
    assert not elsewhere.is_ours({"spec": {"schedulerName": "volcano"}})
    settings.BASALT_SCHEDULER = False
    assert not elsewhere.is_ours({"spec": {"schedulerName": "basalt"}})
