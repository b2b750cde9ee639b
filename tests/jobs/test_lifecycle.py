"""The life cycle as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.lifecycle import FINAL, Action, Counts, Effect, Facts, Phase, Role, advance, effect, keeps_finished

LIVE = (Phase.PENDING, Phase.RUNNING)
TARGETS = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)


def facts(replicas: int = 4, *, minimum: int = 2, **more) -> Facts:
    counts = more.pop("counts", Counts())
    roles = more.pop("roles", {"worker": Role(replicas)})
    return Facts(counts=counts, roles=roles, min_available=minimum, status_min_available=minimum, **more)


EFFECTS = [
    *((phase, Action.RESTART, Effect.KILL_ALL) for phase in LIVE),
    *((phase, action, Effect.KILL_TARGET) for phase in LIVE for action in TARGETS),
    *((phase, action, Effect.KILL_SOFT) for phase in LIVE for action in (Action.ABORT, Action.TERMINATE, Action.COMPLETE)),
    *((phase, action, Effect.SYNC) for phase in LIVE for action in (Action.SYNC, Action.RESUME)),
    (Phase.RESTARTING, Action.SYNC, Effect.SYNC),
    *((Phase.RESTARTING, action, Effect.KILL_TARGET) for action in TARGETS),
    *((Phase.RESTARTING, action, Effect.KILL_ALL) for action in (Action.ABORT, Action.TERMINATE, Action.RESTART)),
    *(
        (phase, action, Effect.KILL_SOFT)
        for phase in (Phase.ABORTING, Phase.ABORTED, Phase.COMPLETING, Phase.TERMINATING, *sorted(FINAL))
        for action in Action
    ),
]


@pytest.mark.parametrize(("phase", "action", "expected"), EFFECTS)
def test_what_an_action_does_to_the_pods(phase, action, expected):
    assert effect(phase, action) is expected


@pytest.mark.parametrize("phase", LIVE)
@pytest.mark.parametrize(
    ("action", "next_phase", "retries"),
    [
        (Action.RESTART, Phase.RESTARTING, 1),
        *((target, Phase.RESTARTING, 1) for target in TARGETS),
        (Action.ABORT, Phase.ABORTING, 0),
        (Action.TERMINATE, Phase.TERMINATING, 0),
        (Action.COMPLETE, Phase.COMPLETING, 0),
    ],
)
def test_where_an_action_leads_a_live_job(phase, action, next_phase, retries):
    step = advance(phase, action, facts())
    assert (step.phase, step.retry_count) == (next_phase, retries)


@pytest.mark.parametrize(
    ("counts", "phase"),
    [
        (Counts(pending=4), Phase.PENDING),
        (Counts(pending=3, running=1), Phase.PENDING),
        (Counts(pending=2, running=2), Phase.RUNNING),
        (Counts(pending=2, running=1, failed=1), Phase.RUNNING),
        (Counts(succeeded=1, failed=1, pending=2), Phase.RUNNING),
    ],
)
def test_a_pending_job_runs_when_enough_pods_have_started_failed_ones_included(counts, phase):
    assert advance(Phase.PENDING, Action.SYNC, facts(counts=counts)).phase is phase


RUNNING = [
    ("scaled to zero", facts(0, minimum=0), Phase.RUNNING),
    ("minSuccess reached while pods run", facts(counts=Counts(running=2, succeeded=2), min_success=2), Phase.COMPLETED),
    ("all succeeded", facts(counts=Counts(succeeded=4)), Phase.COMPLETED),
    ("enough succeeded", facts(counts=Counts(succeeded=2, failed=2)), Phase.COMPLETED),
    ("too few succeeded", facts(counts=Counts(succeeded=1, failed=3)), Phase.FAILED),
    ("a failure alone ends nothing", facts(counts=Counts(running=3, failed=1)), Phase.RUNNING),
    ("minSuccess missed", facts(counts=Counts(succeeded=3, failed=1), min_success=4), Phase.FAILED),
    ("too many pending", facts(counts=Counts(pending=3, running=1)), Phase.PENDING),
    ("as many pending as may be", facts(counts=Counts(pending=2, running=2)), Phase.RUNNING),
    (
        "a role below its minimum",
        facts(counts=Counts(succeeded=3, failed=1), roles={"a": Role(2, 2, 1), "b": Role(2, 0, 2)}),
        Phase.FAILED,
    ),
    (
        "role minima do not count above the job's minimum",
        facts(minimum=1, counts=Counts(succeeded=3, failed=1), roles={"a": Role(2, 2, 1), "b": Role(2, 2, 2)}),
        Phase.COMPLETED,
    ),
    (
        "a role that was not counted is not judged",
        facts(2, minimum=2, counts=Counts(succeeded=2), roles={"a": Role(2, 2, None)}),
        Phase.COMPLETED,
    ),
]


@pytest.mark.parametrize(("state", "phase"), [row[1:] for row in RUNNING], ids=[row[0] for row in RUNNING])
def test_where_a_running_job_goes_on_sync(state, phase):
    assert advance(Phase.RUNNING, Action.SYNC, state).phase is phase


@pytest.mark.parametrize(
    ("retries", "terminating", "phase"),
    [(3, 0, Phase.FAILED), (4, 4, Phase.FAILED), (2, 0, Phase.PENDING), (1, 2, Phase.PENDING), (1, 3, Phase.RESTARTING)],
)
@pytest.mark.parametrize("action", [Action.SYNC, Action.ABORT, Action.TERMINATE, Action.RESTART_POD])
def test_a_restarting_job_goes_back_to_pending_or_fails_whatever_is_asked(retries, terminating, phase, action):
    state = facts(counts=Counts(terminating=terminating), retry_count=retries)
    assert advance(Phase.RESTARTING, action, state).phase is phase


@pytest.mark.parametrize(
    ("phase", "after"),
    [(Phase.ABORTING, Phase.ABORTED), (Phase.COMPLETING, Phase.COMPLETED), (Phase.TERMINATING, Phase.TERMINATED)],
)
@pytest.mark.parametrize(
    ("counts", "ends"),
    [
        (Counts(), True),
        (Counts(succeeded=2, failed=1), True),
        (Counts(terminating=1), False),
        (Counts(pending=1), False),
        (Counts(running=1), False),
    ],
)
def test_an_ending_phase_ends_when_no_pod_is_left_at_work(phase, after, counts, ends):
    assert advance(phase, Action.SYNC, facts(counts=counts)).phase is (after if ends else phase)


@pytest.mark.parametrize("phase", [Phase.ABORTING, Phase.ABORTED])
def test_resuming_restarts_without_using_up_a_retry(phase):
    step = advance(phase, Action.RESUME, facts(retry_count=2))
    assert (step.phase, step.retry_count) == (Phase.RESTARTING, 2)


@pytest.mark.parametrize("phase", sorted(FINAL))
@pytest.mark.parametrize("action", list(Action))
def test_nothing_moves_a_final_phase(phase, action):
    assert advance(phase, action, facts()).phase is phase


def test_the_last_try_keeps_its_finished_pods_as_evidence():
    assert keeps_finished(Effect.KILL_ALL, retry_count=2, max_retry=3)
    assert not keeps_finished(Effect.KILL_ALL, retry_count=1, max_retry=3)
    assert keeps_finished(Effect.KILL_SOFT, retry_count=0, max_retry=3)


@given(
    phase=st.sampled_from(list(Phase)),
    action=st.sampled_from(list(Action)),
    counts=st.builds(Counts, *[st.integers(0, 5)] * 6),
    replicas=st.integers(0, 8),
    minimum=st.integers(0, 8),
    retries=st.integers(0, 5),
)
def test_retries_grow_only_with_a_restart_and_never_by_more_than_one(phase, action, counts, replicas, minimum, retries):
    step = advance(phase, action, facts(replicas, minimum=minimum, counts=counts, retry_count=retries))
    grew = step.retry_count - retries
    assert grew == (phase in LIVE and (action is Action.RESTART or action in TARGETS))
