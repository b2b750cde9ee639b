"""From an event to an action: lifecycle policies as a pure function of the job's spec.

Role policies come before job policies; the first match wins; nothing matching means a plain sync.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cluster.durations import parse_duration
from jobs.lifecycle import Action


class Event(StrEnum):
    """What can happen to a job. The last three never reach a policy: they always sync."""

    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    JOB_UPDATED = "JobUpdated"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    POD_RUNNING = "PodRunning"


INTERNAL_EVENTS = frozenset({Event.OUT_OF_SYNC, Event.COMMAND_ISSUED, Event.POD_RUNNING})
PUBLIC_EVENTS = tuple(event for event in Event if event not in INTERNAL_EVENTS)
PUBLIC_ACTIONS = tuple(action for action in Action if action is not Action.SYNC)


@dataclass(frozen=True, slots=True)
class Happening:
    """An event as the job sees it. `at` is when it happened (seconds since the epoch); `exit_code` is 0 but for PodFailed."""

    event: Event
    role: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    job_uid: str = ""
    version: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The action that an event leads to, and how long after the event (seconds)."""

    action: Action
    delay: float = 0.0


SYNC = Choice(Action.SYNC)


def choose(job: Mapping[str, Any], happening: Happening) -> Choice:
    """The action for an event. Events of another job of the name, or of a generation that was killed, only sync."""
    if happening.event in INTERNAL_EVENTS or (happening.job_uid and happening.job_uid != job["metadata"]["uid"]):
        return SYNC
    if happening.version < int((job.get("status") or {}).get("version") or 0):
        return SYNC
    spec = job["spec"]
    role: Mapping[str, Any] = next(
        (task for task in spec.get("tasks") or () if happening.role and task.get("name") == happening.role), {}
    )
    for policy in _in_order(role.get("policies"), spec.get("policies")):
        if _matches(policy, happening):
            return Choice(Action(policy["action"]), timeout(policy) or 0.0)
    return SYNC


def has_policies(job: Mapping[str, Any]) -> bool:
    """Whether any event could lead to more than a sync."""
    spec = job["spec"]
    return bool(spec.get("policies")) or any(task.get("policies") for task in spec.get("tasks") or ())


def listens(job: Mapping[str, Any], event: Event) -> bool:
    """Whether any policy of the job, or of one of its roles, is about this event."""
    spec = job["spec"]
    lists = (spec.get("policies"), *(task.get("policies") for task in spec.get("tasks") or ()))
    return any(not {event, Event.ANY}.isdisjoint(events_of(policy)) for policy in _in_order(*lists))


def events_of(policy: Mapping[str, Any]) -> list[str]:
    """The events of an entry, `event` and `events` together."""
    single = policy.get("event")
    return [*(policy.get("events") or ()), *([single] if single else ())]


def timeout(policy: Mapping[str, Any]) -> float | None:
    """The delay of an entry in seconds, None when it gives none."""
    text = policy.get("timeout")
    return parse_duration(text) if text else None


def _in_order(*lists: Iterable[Mapping[str, Any]] | None) -> Iterable[Mapping[str, Any]]:
    for policies in lists:
        yield from policies or ()


def _matches(policy: Mapping[str, Any], happening: Happening) -> bool:
    events = events_of(policy)
    if (happening.event in events or Event.ANY in events) and (
        happening.event is not Event.POD_PENDING or policy.get("timeout") is not None
    ):
        return True
    code = policy.get("exitCode")
    return code is not None and code == happening.exit_code and code != 0
