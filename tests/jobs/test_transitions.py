"""Every phase × action, and every event → action, as one table each: the rules of Volcano with their exact values.

A row of the first table says what happens to the pods, and which phase follows once a given number of pods is left.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from jobs.lifecycle import Action, Counts, Effect, Facts, Phase, Role, advance, effect
from jobs.policies import INTERNAL_EVENTS, PUBLIC_ACTIONS, PUBLIC_EVENTS, SYNC, Choice, Event, Happening, choose

# One letter a fate of the pods: sync, all, soft, target.
_EFFECTS = {"S": Effect.SYNC, "A": Effect.KILL_ALL, "F": Effect.KILL_SOFT, "T": Effect.KILL_TARGET}
_COLUMNS = (
    Action.SYNC, Action.RESUME, Action.ABORT, Action.TERMINATE, Action.COMPLETE, Action.RESTART,
    Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION,
)  # fmt: skip

EFFECTS = {
    #                   Sync Resume Abort Terminate Complete Restart Task Pod Partition
    Phase.PENDING:     "S    S      F     F         F        A       T    T   T",
    Phase.RUNNING:     "S    S      F     F         F        A       T    T   T",
    Phase.RESTARTING:  "S    A      A     A         A        A       T    T   T",
    Phase.ABORTING:    "F    F      F     F         F        F       F    F   F",
    Phase.ABORTED:     "F    F      F     F         F        F       F    F   F",
    Phase.COMPLETING:  "F    F      F     F         F        F       F    F   F",
    Phase.COMPLETED:   "F    F      F     F         F        F       F    F   F",
    Phase.TERMINATING: "F    F      F     F         F        F       F    F   F",
    Phase.TERMINATED:  "F    F      F     F         F        F       F    F   F",
    Phase.FAILED:      "F    F      F     F         F        F       F    F   F",
}  # fmt: skip

# The phase that follows when no pod is left, then when one is still terminating; + where a retry is counted.
# Four replicas of which three are needed, all of them gone or one of them going.
AFTER = {
    Phase.PENDING: {
        Action.SYNC: "Pending Pending", Action.RESUME: "Pending Pending", Action.ABORT: "Aborting Aborting",
        Action.TERMINATE: "Terminating Terminating", Action.COMPLETE: "Completing Completing",
        Action.RESTART: "Restarting+ Restarting+", Action.RESTART_TASK: "Restarting+ Restarting+",
        Action.RESTART_POD: "Restarting+ Restarting+", Action.RESTART_PARTITION: "Restarting+ Restarting+",
    },
    Phase.RUNNING: {
        Action.SYNC: "Running Running", Action.RESUME: "Running Running", Action.ABORT: "Aborting Aborting",
        Action.TERMINATE: "Terminating Terminating", Action.COMPLETE: "Completing Completing",
        Action.RESTART: "Restarting+ Restarting+", Action.RESTART_TASK: "Restarting+ Restarting+",
        Action.RESTART_POD: "Restarting+ Restarting+", Action.RESTART_PARTITION: "Restarting+ Restarting+",
    },
    Phase.RESTARTING: dict.fromkeys(_COLUMNS, "Pending Pending"),
    Phase.ABORTING: {**dict.fromkeys(_COLUMNS, "Aborted Aborting"), Action.RESUME: "Restarting Restarting"},
    Phase.ABORTED: {**dict.fromkeys(_COLUMNS, "Aborted Aborted"), Action.RESUME: "Restarting Restarting"},
    Phase.COMPLETING: dict.fromkeys(_COLUMNS, "Completed Completing"),
    Phase.COMPLETED: dict.fromkeys(_COLUMNS, "Completed Completed"),
    Phase.TERMINATING: dict.fromkeys(_COLUMNS, "Terminated Terminating"),
    Phase.TERMINATED: dict.fromkeys(_COLUMNS, "Terminated Terminated"),
    Phase.FAILED: dict.fromkeys(_COLUMNS, "Failed Failed"),
}  # fmt: skip


def facts(counts: Counts, **more: Any) -> Facts:
    return Facts(counts=counts, roles={"worker": Role(4)}, min_available=3, status_min_available=3, **more)


def test_the_tables_leave_nothing_out():
    assert set(EFFECTS) == set(AFTER) == set(Phase)
    assert set(_COLUMNS) == set(Action)


@pytest.mark.parametrize(("phase", "action"), list(product(Phase, _COLUMNS)))
def test_what_happens_to_the_pods(phase, action):
    letters = EFFECTS[phase].split()
    assert effect(phase, action) is _EFFECTS[letters[_COLUMNS.index(action)]]


@pytest.mark.parametrize("left", [0, 1], ids=["none left", "one terminating"])
@pytest.mark.parametrize(("phase", "action"), list(product(Phase, _COLUMNS)))
def test_which_phase_follows_and_whether_a_retry_is_counted(phase, action, left):
    expected = AFTER[phase][action].split()[left]
    step = advance(phase, action, facts(Counts(terminating=left), retry_count=1))
    assert (step.phase, step.retry_count) == (Phase(expected.rstrip("+")), 1 + expected.endswith("+"))


@pytest.mark.parametrize(
    ("terminating", "retries", "after"),
    [
        (1, 2, "Pending"),  # 4 − 1 ≥ 3
        (2, 2, "Restarting"),  # 4 − 2 < 3
        (4, 2, "Restarting"),
        (0, 3, "Failed"),  # the third of three
        (4, 3, "Failed"),  # whatever still goes
        (0, 9, "Failed"),
    ],
)
@pytest.mark.parametrize("action", list(_COLUMNS))
def test_the_restart_rule_holds_for_every_action(action, terminating, retries, after):
    state = facts(Counts(terminating=terminating), retry_count=retries, max_retry=3)
    assert advance(Phase.RESTARTING, action, state).phase == after


def job(job_policies: list[Any] = (), role_policies: list[Any] = (), version: int = 0) -> dict[str, Any]:
    roles = [{"name": "worker", "policies": list(role_policies)}, {"name": "other"}]
    return {
        "metadata": {"uid": "u1"},
        "spec": {"policies": list(job_policies), "tasks": roles},
        "status": {"version": version},
    }


def chosen(event: Event, **more: Any) -> Happening:
    return Happening(event, role="worker", pod="p", job_uid="u1", **more)


@pytest.mark.parametrize("level", ["job", "role"])
@pytest.mark.parametrize("action", list(PUBLIC_ACTIONS))
@pytest.mark.parametrize("event", [event for event in PUBLIC_EVENTS if event is not Event.ANY])
@pytest.mark.parametrize("written", ["event", "events", "any"])
def test_every_public_event_leads_to_every_public_action(event, action, written, level):
    entry = {"event": {"event": str(event)}, "events": {"events": ["JobUpdated", str(event)]}, "any": {"event": "*"}}[written]
    policy = {**entry, "action": str(action)}
    found = job([policy]) if level == "job" else job(role_policies=[policy])
    without = Choice(action) if event is not Event.POD_PENDING else SYNC  # a pending pod takes a time-out
    assert choose(found, chosen(event)) == without
    policy["timeout"] = "30s"
    assert choose(found, chosen(event)) == Choice(action, 30.0)
    others = [other for other in PUBLIC_EVENTS if other not in (event, Event.ANY, Event.JOB_UPDATED)]
    for other in others if written != "any" else []:
        assert choose(found, chosen(other)) == SYNC


@pytest.mark.parametrize("event", sorted(INTERNAL_EVENTS))
@pytest.mark.parametrize("text", ["*", "PodRunning", "OutOfSync", "CommandIssued"])
def test_no_policy_hears_an_internal_event(event, text):
    assert choose(job([{"event": text, "action": "AbortJob"}]), chosen(event)) == SYNC


@pytest.mark.parametrize("action", list(PUBLIC_ACTIONS))
@pytest.mark.parametrize(("code", "meets"), [(3, True), (137, False), (0, False)])
def test_an_exit_code_leads_to_every_action_and_only_exactly(action, code, meets):
    policy = {"exitCode": 3, "action": str(action)}
    expected = Choice(action) if meets else SYNC
    assert choose(job([policy]), chosen(Event.POD_FAILED, exit_code=code)) == expected
    assert choose(job(role_policies=[policy]), chosen(Event.POD_FAILED, exit_code=code)) == expected


FIRST = [
    ("the role before the job", ["PodFailed RestartJob"], ["PodFailed AbortJob"], Action.ABORT),
    ("the job where the role is silent", ["PodFailed RestartJob"], ["PodEvicted AbortJob"], Action.RESTART),
    ("the first of a list", ["PodFailed RestartJob", "PodFailed AbortJob"], [], Action.RESTART),
    ("an exit code before a later event", ["3 CompleteJob", "PodFailed AbortJob"], [], Action.COMPLETE),
    ("an event before a later exit code", ["PodFailed AbortJob", "3 CompleteJob"], [], Action.ABORT),
    ("the role's exit code before the job's event", ["* AbortJob"], ["3 RestartTask"], Action.RESTART_TASK),
    ("nothing at all", ["PodEvicted AbortJob"], ["4 RestartTask"], Action.SYNC),
]


def _entries(texts: list[str]) -> list[dict[str, Any]]:
    found = []
    for text in texts:
        cause, action = text.split()
        found.append({"action": action, **({"exitCode": int(cause)} if cause.isdigit() else {"event": cause})})
    return found


@pytest.mark.parametrize(("of_job", "of_role", "action"), [row[1:] for row in FIRST], ids=[row[0] for row in FIRST])
def test_the_first_match_wins(of_job, of_role, action):
    found = choose(job(_entries(of_job), _entries(of_role)), chosen(Event.POD_FAILED, exit_code=3))
    assert found.action is action


@pytest.mark.parametrize("event", [event for event in PUBLIC_EVENTS if event not in (Event.ANY, Event.POD_PENDING)])
@pytest.mark.parametrize(
    ("version", "uid", "acts"), [(2, "u1", True), (3, "u1", True), (1, "u1", False), (2, "u2", False), (2, "", True)]
)
def test_events_of_an_earlier_generation_or_another_job_only_sync(event, version, uid, acts):
    found = choose(job([{"event": "*", "action": "AbortJob"}], version=2), Happening(event, job_uid=uid, version=version))
    assert found == (Choice(Action.ABORT) if acts else SYNC)
