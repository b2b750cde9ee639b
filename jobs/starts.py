"""When waiting jobs are likely to start, as the rooms above foretell it: this room plays no futures (`use`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from jobs.choices import JobPhase
from jobs.models import Job
from jobs.reasons import is_impossible


@dataclass(frozen=True, slots=True)
class Start:
    """A likely start: in half of the futures by `p50`, in nine of ten by `p90`; None where that is not in sight.

    Never before the instant at which it is asked for: `is_due` says that P50 has passed, so that it may start at any moment.
    `is_old`: it was foretold long ago, or of a cluster that has changed much since.
    """

    p50: datetime | None
    p90: datetime | None
    is_due: bool = False
    is_old: bool = False


def waits(job: Job) -> bool:
    """Whether a start is to be foretold: not of a job that can never start as things stand."""
    return job.deleted_at is None and job.started_at is None and job.phase == JobPhase.PENDING and not is_impossible(job.verdict)


def ahead(p50: datetime | None, p90: datetime | None, now: datetime, *, is_old: bool = False) -> Start | None:
    """What a foretold start says now: what has passed is never ahead, and one whose time is up says nothing any more."""
    if (p90 is not None and p90 < now) or (p50 is not None and p90 is None and p50 < now):
        return None
    is_due = p50 is not None and p50 < now
    return Start(now if is_due else p50, p90, is_due, is_old)


Ask = Callable[[Collection[str]], Mapping[str, Start]]
_ask: Ask | None = None


def use(ask: Ask | None) -> None:
    """Say who answers: for uids of jobs that wait, what is known now, without waiting for it to be worked out."""
    global _ask
    _ask = ask


def likely(jobs: Iterable[Job]) -> Mapping[str, Start]:
    """The likely starts of those jobs that wait, by uid; absent where nothing is known. One query, whoever waits."""
    return _ask([job.uid for job in jobs if waits(job)]) if _ask is not None else {}
