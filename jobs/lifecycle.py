"""The life of a job as a pure function: what to do in a phase when an action is asked for, and which phase follows.

`effect(phase, action)` says what happens to the pods; when that was done and the pods were counted, `advance(phase, action, …)`
says which phase the job is in. The rules are Volcano's, but that suspending and resuming cost no retry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """Job phases as they stand in `status.state.phase`."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


class Action(StrEnum):
    """What can be asked of a job; the names of Commands and policies."""

    SYNC = "SyncJob"
    ABORT = "AbortJob"
    RESTART = "RestartJob"
    TERMINATE = "TerminateJob"
    COMPLETE = "CompleteJob"
    RESUME = "ResumeJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"


class Effect(StrEnum):
    """What happens to the pods."""

    SYNC = "sync"
    """Make what is missing, delete what is too much."""
    KILL_ALL = "kill all"
    KILL_SOFT = "kill soft"
    """Delete the pods that have not finished."""
    KILL_TARGET = "kill target"
    """Delete the pods of one role, partition or name."""


FINAL = frozenset({Phase.COMPLETED, Phase.TERMINATED, Phase.FAILED})
STOPPED = FINAL | {Phase.ABORTED}
"""Phases in which no pod of the job runs for long; the time to live counts from entering one."""
TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})

_ENDING = {Phase.ABORTING: Phase.ABORTED, Phase.COMPLETING: Phase.COMPLETED, Phase.TERMINATING: Phase.TERMINATED}
_ASKED = {Action.ABORT: Phase.ABORTING, Action.TERMINATE: Phase.TERMINATING, Action.COMPLETE: Phase.COMPLETING}


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods by what their phase says; a pod with a deletion timestamp counts only as terminating."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0

    @property
    def none_left(self) -> bool:
        """No pod is on its way or at work."""
        return self.terminating == self.pending == self.running == 0


@dataclass(frozen=True, slots=True)
class Role:
    """One task of the job: `min_available` is None where the manifest gives none, `succeeded` where nothing was counted."""

    replicas: int
    min_available: int | None = None
    succeeded: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at besides phase and action.

    `min_available` is the job's own; `status_min_available` is the copy in its status, which the restart rule uses.
    """

    counts: Counts
    roles: Mapping[str, Role] = field(default_factory=dict)
    min_available: int = 0
    status_min_available: int = 0
    min_success: int | None = None
    retry_count: int = 0
    max_retry: int = 3

    @property
    def replicas(self) -> int:
        """The sum over all roles."""
        return sum(role.replicas for role in self.roles.values())


@dataclass(frozen=True, slots=True)
class Step:
    """The phase that follows and the retries used so far."""

    phase: Phase
    retry_count: int


def effect(phase: Phase, action: Action) -> Effect:
    """What happens to the pods when `action` meets a job in `phase` (a job without a phase is Pending)."""
    if phase in (Phase.PENDING, Phase.RUNNING):
        if action is Action.RESTART:
            return Effect.KILL_ALL
        if action in TARGETED:
            return Effect.KILL_TARGET
        return Effect.KILL_SOFT if action in _ASKED else Effect.SYNC
    if phase is Phase.RESTARTING:
        if action is Action.SYNC:
            return Effect.SYNC
        return Effect.KILL_TARGET if action in TARGETED else Effect.KILL_ALL
    return Effect.KILL_SOFT


def advance(phase: Phase, action: Action, facts: Facts) -> Step:
    """The phase after the effect of `action` was carried out and `facts` were counted."""
    same = Step(phase, facts.retry_count)
    if phase in (Phase.PENDING, Phase.RUNNING):
        if action is Action.RESTART or action in TARGETED:
            return Step(Phase.RESTARTING, facts.retry_count + 1)
        if action in _ASKED:
            return Step(_ASKED[action], facts.retry_count)
        return Step(_pending(facts) if phase is Phase.PENDING else _running(facts), facts.retry_count)
    if phase is Phase.RESTARTING:
        return Step(_restarting(facts), facts.retry_count)
    if action is Action.RESUME and phase in (Phase.ABORTING, Phase.ABORTED):
        return Step(Phase.RESTARTING, facts.retry_count)
    if phase in _ENDING and facts.counts.none_left:
        return Step(_ENDING[phase], facts.retry_count)
    return same


def keeps_finished(action_effect: Effect, retry_count: int, max_retry: int) -> bool:
    """Whether a kill spares finished pods: a soft one does, and so does every kill of the last try, as evidence."""
    return action_effect is Effect.KILL_SOFT or retry_count >= max_retry - 1


def _pending(facts: Facts) -> Phase:
    counts = facts.counts
    started = counts.running + counts.succeeded + counts.failed
    return Phase.RUNNING if facts.min_available <= started else Phase.PENDING


def _running(facts: Facts) -> Phase:
    counts, replicas = facts.counts, facts.replicas
    if replicas == 0:
        return Phase.RUNNING  # scaled to zero, by intent
    if facts.min_success is not None and counts.succeeded >= facts.min_success:
        return Phase.COMPLETED
    if counts.succeeded + counts.failed == replicas:
        return _verdict(facts)
    if counts.pending > replicas - facts.min_available:
        return Phase.PENDING
    return Phase.RUNNING


def _verdict(facts: Facts) -> Phase:
    """All pods have finished: was it enough?"""
    minima = sum(role.min_available or 0 for role in facts.roles.values())
    if facts.min_available >= minima and any(
        role.min_available is not None and role.succeeded is not None and role.succeeded < role.min_available
        for role in facts.roles.values()
    ):
        return Phase.FAILED
    if facts.min_success is not None:  # reached would have ended it before
        return Phase.FAILED
    return Phase.COMPLETED if facts.counts.succeeded >= facts.min_available else Phase.FAILED


def _restarting(facts: Facts) -> Phase:
    if facts.retry_count >= facts.max_retry:
        return Phase.FAILED
    gone = facts.replicas - facts.counts.terminating
    return Phase.PENDING if gone >= facts.status_min_available else Phase.RESTARTING
