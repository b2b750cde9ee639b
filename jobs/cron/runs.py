"""The jobs of a cron job: what they are called, which of them run, and which may go. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from cluster import objects
from cluster.kinds import CRON_JOB, JOB
from cluster.port import Obj
from jobs import keys
from jobs.cron.schedule import Schedule, zone
from jobs.roles import told_phase

FINISHED = frozenset({"Completed", "Failed", "Terminated"})
"""An aborted job may be resumed, so it still counts as active."""

_MINUTE = 60


def owning_cron(obj: Obj) -> Obj | None:
    """The owner reference to the CronJob that controls a job; None when no cron job does."""
    return keys.owner_of(CRON_JOB, obj)


def schedule_of(cron: Obj) -> Schedule:
    """The schedule in its zone. Raises ScheduleError."""
    spec = cron["spec"]
    return Schedule(str(spec.get("schedule") or ""), spec.get("timeZone"))


def run_name(cron: Obj, schedule: Schedule, slot: float) -> str:
    """The name of the job of one time; periods below a minute need the seconds in it."""
    short = schedule.period is not None and schedule.period < _MINUTE
    return f"{objects.name(cron)}-{int(slot) if short else int(slot) // _MINUTE}"


def build_run(cron: Obj, name: str, slot: float | None = None) -> Obj:
    """The job of one time, or (without `slot`) one that people asked for. It belongs to whom the cron job belongs."""
    template = cron["spec"]["jobTemplate"]
    meta = template.get("metadata") or {}
    notes = {**(meta.get("annotations") or {})}
    notes.pop(keys.OWNER, None)
    if slot is not None:
        notes[keys.SCHEDULED_AT] = stamp_in_zone(slot, cron["spec"].get("timeZone"))
    if owner := objects.annotations(cron).get(keys.OWNER):
        notes[keys.OWNER] = owner
    named: dict[str, Any] = {
        "name": name,
        "namespace": objects.namespace(cron),
        "labels": dict(meta.get("labels") or {}),
        "annotations": notes,
        "ownerReferences": [objects.owner_reference({"apiVersion": CRON_JOB.api_version, "kind": CRON_JOB.kind, **cron})],
    }
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": named, "spec": objects.clone(template["spec"])}


def stamp_in_zone(instant: float, time_zone: str | None) -> str:
    """An instant as RFC 3339 in a zone; in UTC with a Z."""
    return datetime.fromtimestamp(int(instant), zone(time_zone)).isoformat().replace("+00:00", "Z")


def slot_of(job: Obj) -> float | None:
    """The time that a job was made for, None for one that people asked for."""
    text = objects.annotations(job).get(keys.SCHEDULED_AT)
    try:
        return objects.parse_time(text) if text else None
    except ValueError:
        return None


def last_run(cron: Obj, jobs: Iterable[Obj]) -> float | None:
    """The latest time for which a job was made, as the status and the jobs that are left tell it."""
    known = [slot for job in jobs if (slot := slot_of(job)) is not None]
    if last := (cron.get("status") or {}).get("lastScheduleTime"):
        known.append(objects.parse_time(last))
    return max(known, default=None)


def begins(cron: Obj, jobs: Collection[Obj]) -> float:
    """The instant after which times count: that of the last run, or since when it has its schedule.

    When the status has lost the last run, it was not later than the last success, unless that was a run out of turn.
    """
    status = cron.get("status") or {}
    known = [objects.parse_time(cron["metadata"]["creationTimestamp"])]
    with suppress(ValueError):
        if since := objects.annotations(cron).get(keys.SCHEDULE_SINCE, "").partition(" ")[0]:
            known.append(objects.parse_time(since))
    if (last := last_run(cron, jobs)) is not None:
        known.append(last)
    success = status.get("lastSuccessfulTime")
    by_hand = [((job.get("status") or {}).get("state") or {}).get("lastTransitionTime") for job in jobs if slot_of(job) is None]
    if success and not status.get("lastScheduleTime") and success not in by_hand:
        known.append(objects.parse_time(success))
    return max(known)


def active(jobs: Iterable[Obj]) -> list[Obj]:
    """The jobs that have not finished, oldest first."""
    return by_age(job for job in jobs if told_phase(job) not in FINISHED)


def by_age(jobs: Iterable[Obj]) -> list[Obj]:
    """Oldest first."""
    return sorted(jobs, key=lambda job: (job["metadata"]["creationTimestamp"], objects.name(job)))


def superfluous(cron: Obj, jobs: Sequence[Obj]) -> list[Obj]:
    """The finished jobs beyond the history limits. A terminated run counts among the failed ones."""
    spec, found = cron["spec"], []
    for phases, field, default in (
        (("Completed",), "successfulJobsHistoryLimit", 3),
        (("Failed", "Terminated"), "failedJobsHistoryLimit", 1),
    ):
        limit = spec.get(field)
        kept = by_age(job for job in jobs if told_phase(job) in phases)
        found += kept[: max(0, len(kept) - int(default if limit is None else limit))]
    return found


def last_success(cron: Obj, jobs: Iterable[Obj]) -> str | None:
    """When a run last completed, as a time stamp."""
    told = [(cron.get("status") or {}).get("lastSuccessfulTime")]
    for job in jobs:
        state: Mapping[str, Any] = (job.get("status") or {}).get("state") or {}
        if state.get("phase") == "Completed":
            told.append(state.get("lastTransitionTime"))
    return max((text for text in told if text), default=None)


def reference(job: Obj) -> Obj:
    """How `status.active` names a job."""
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "namespace": objects.namespace(job),
        "name": objects.name(job),
        "uid": objects.uid(job),
    }
