"""What one cycle decided, as its viewer may see it: gangs that got nodes, verdicts that changed, pods that were evicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from jobs import reasons
from jobs.models import Job
from portal.cockpit.judged import READ, Group, groups
from portal.models import Cycle, Eviction
from portal.unblock.shown import Names


@dataclass(frozen=True, slots=True)
class Bound:
    """A gang that got nodes. `job` is None for one that the viewer may not see, or that is no Job."""

    name: str
    job: Job | None
    queue: str
    pods: int
    waited: timedelta | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A job whose verdict changed: what it says now, empty where it waits no longer."""

    name: str
    job: Job | None
    stage: str
    text: str


@dataclass(slots=True)
class Ledger:
    """One cycle's decisions; the `…_more` are those that were not kept."""

    bound: list[Bound] = field(default_factory=list)
    verdicts: list[Judged] = field(default_factory=list)
    evictions: list[Group] = field(default_factory=list)
    bound_more: int = 0
    verdicts_more: int = 0
    kept: int = 0


def of(user: Any, cycle: Cycle, present: datetime) -> Ledger:
    """Everything that is kept of it."""
    told = cycle.decisions or {}
    bound, verdicts = told.get("bound") or [], told.get("verdicts") or []
    names = Names(user, [each[0] for each in [*bound, *verdicts]])
    evictions = list(Eviction.objects.filter(cycle=cycle.number, at=cycle.at)[:READ])
    return Ledger(
        [_bound(names, cycle, *each) for each in bound],
        [_judged(names, *each) for each in verdicts],
        groups(user, evictions, present),
        max(int(told.get("bound_jobs") or 0) - len(bound), 0),
        max(int(told.get("verdict_jobs") or 0) - len(verdicts), 0),
        int(told.get("kept") or 0),
    )


def brief(user: Any, cycle: Cycle, most: int) -> Ledger:
    """The gangs that got most pods alone: what a page shows beside other things."""
    told = cycle.decisions or {}
    bound = (told.get("bound") or [])[:most]
    names = Names(user, [each[0] for each in bound])
    return Ledger([_bound(names, cycle, *each) for each in bound], kept=int(told.get("kept") or 0))


def _bound(names: Names, cycle: Cycle, key: str, queue: str, pods: int, created: float) -> Bound:
    job = names.job(key)
    waited = timedelta(seconds=max(cycle.at.timestamp() - created, 0.0)) if created else None
    return Bound(names.name(key), job, queue if job else "", pods, waited if job else None)


def _judged(names: Names, key: str, verdict: dict[str, Any] | None) -> Judged:
    job = names.job(key)
    if verdict is None:
        return Judged(names.name(key), job, "", _("waits no longer"))
    if job is None:
        return Judged(names.name(key), None, reasons.stage_label(str(verdict.get("stage") or "")), "")
    return Judged(job.name, job, reasons.stage_label(str(verdict.get("stage") or "")), reasons.say(verdict, job.gpu_model))


def cycle_numbered(number: int, pk: int | None = None) -> Cycle | None:
    """The newest cycle with a number, which begins anew with each scheduler; `pk` names an older one."""
    found = Cycle.objects.filter(number=number)
    return (found.filter(pk=pk) if pk else found).first()
