"""The steps of a job's life: which phase it entered when, kept after the cluster has forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from cluster.port import Obj
from cluster.projection import instant
from cluster.runtime import now
from jobs.choices import JobPhase
from jobs.models import Job, PhaseChange


def steps(obj: Obj) -> list[tuple[str, datetime]]:
    """The phases that a Job object remembers, with their instants: one entry a phase, the latest last."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    found = [
        ("Pending", instant(obj["metadata"].get("creationTimestamp"))),
        *((condition.get("status") or "", instant(condition.get("lastTransitionTime"))) for condition in conditions),
    ]
    return [(phase, at) for phase, at in found if phase in JobPhase and at is not None]


def first_start(obj: Obj) -> datetime | None:
    """When the job was first seen Running, as far as its conditions remember."""
    return next((at for phase, at in steps(obj) if phase == JobPhase.RUNNING), None)


def record(rows: Sequence[Job]) -> None:
    """Add the steps that are not recorded yet; a phase that came and went between two looks is found in the conditions."""
    known: defaultdict[str, list[PhaseChange]] = defaultdict(list)
    for step in PhaseChange.objects.filter(job_uid__in=[row.uid for row in rows]).order_by("id"):
        known[step.job_uid].append(step)
    new = {row.uid: _missing(row, known[row.uid]) for row in rows}
    late = [step for row in rows for step in _late(row, known[row.uid], new[row.uid])]
    PhaseChange.objects.bulk_update(late, ["at"], batch_size=500)
    PhaseChange.objects.bulk_create([step for steps_ in new.values() for step in steps_], batch_size=500)


def _late(row: Job, known: Sequence[PhaseChange], new: Sequence[PhaseChange]) -> list[PhaseChange]:
    """Steps of the gang alone, stamped when they were seen, which was after the job's own next step: moved back to it."""
    told = {*steps(row.manifest), (row.phase, row.phase_since)}
    late = [step for step in known if new and step.at > new[0].at and (step.phase, step.at) not in told]
    for step in late:
        step.at = new[0].at
    return late


def _missing(row: Job, known: Sequence[PhaseChange]) -> list[PhaseChange]:
    seen = {(step.phase, step.at) for step in known}
    new = [
        PhaseChange(job_uid=row.uid, phase=phase, at=at)
        for phase, at in [*steps(row.manifest), (row.phase, row.phase_since)]
        if (phase, at) not in seen
    ]
    new = list({(step.phase, step.at): step for step in new}.values())
    last = new[-1] if new else (known[-1] if known else None)
    if row.group_phase and (last is None or last.group_phase != row.group_phase):
        if new:
            new[-1].group_phase = row.group_phase
        else:
            new.append(PhaseChange(job_uid=row.uid, phase=row.phase, group_phase=row.group_phase, at=now()))
    return new
