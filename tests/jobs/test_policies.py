"""From event to action."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.lifecycle import Action
from jobs.policies import INTERNAL_EVENTS, SYNC, Choice, Event, Happening, choose


def job(policies: list[Any] | None = None, role_policies: list[Any] | None = None, version: int = 0) -> dict[str, Any]:
    return {
        "metadata": {"uid": "u1"},
        "spec": {"policies": policies or [], "tasks": [{"name": "worker", "policies": role_policies or []}]},
        "status": {"version": version},
    }


ABORT = {"event": "PodFailed", "action": "AbortJob"}
RESTART = {"event": "PodFailed", "action": "RestartJob"}
FAILED = Happening(Event.POD_FAILED, role="worker", exit_code=3)


@pytest.mark.parametrize(
    ("policies", "role_policies", "happening", "expected"),
    [
        ([], [], FAILED, SYNC),
        ([ABORT], [], FAILED, Choice(Action.ABORT)),
        ([ABORT], [RESTART], FAILED, Choice(Action.RESTART)),
        ([ABORT], [{"event": "PodEvicted", "action": "RestartJob"}], FAILED, Choice(Action.ABORT)),
        ([ABORT], [RESTART], Happening(Event.POD_FAILED, role="other"), Choice(Action.ABORT)),
        ([ABORT, RESTART], [], FAILED, Choice(Action.ABORT)),
        ([{"events": ["PodEvicted", "PodFailed"], "action": "CompleteJob"}], [], FAILED, Choice(Action.COMPLETE)),
        ([{"event": "*", "action": "TerminateJob"}], [], FAILED, Choice(Action.TERMINATE)),
        ([{"exitCode": 3, "action": "RestartTask"}], [], FAILED, Choice(Action.RESTART_TASK)),
        ([{"exitCode": 4, "action": "RestartTask"}], [], FAILED, SYNC),
        ([{**ABORT, "timeout": "1m30s"}], [], FAILED, Choice(Action.ABORT, 90.0)),
        ([{"event": "PodPending", "action": "RestartJob"}], [], Happening(Event.POD_PENDING), SYNC),
        (
            [{"event": "PodPending", "action": "RestartJob", "timeout": "10s"}],
            [],
            Happening(Event.POD_PENDING),
            Choice(Action.RESTART, 10.0),
        ),
        ([{"event": "*", "action": "AbortJob"}], [], Happening(Event.POD_PENDING), SYNC),
        ([{"event": "*", "action": "AbortJob", "timeout": "1s"}], [], Happening(Event.POD_PENDING), Choice(Action.ABORT, 1.0)),
    ],
)
def test_the_first_matching_policy_wins_and_roles_come_before_the_job(policies, role_policies, happening, expected):
    assert choose(job(policies, role_policies), happening) == expected


@pytest.mark.parametrize("event", sorted(INTERNAL_EVENTS))
def test_internal_events_only_sync_even_under_a_policy_for_everything(event):
    assert choose(job([{"event": "*", "action": "AbortJob"}]), Happening(event)) == SYNC


def test_events_of_an_earlier_generation_or_of_another_job_only_sync():
    assert choose(job([ABORT], version=2), Happening(Event.POD_FAILED, version=1)) == SYNC
    assert choose(job([ABORT]), Happening(Event.POD_FAILED, job_uid="u2")) == SYNC
    assert choose(job([ABORT], version=2), Happening(Event.POD_FAILED, version=2, job_uid="u1")).action is Action.ABORT
