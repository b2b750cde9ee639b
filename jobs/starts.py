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
    """A likely start: in half of the futures by `p50`, in nine of ten by `p90`; None where that is not in sight."""

    p50: datetime | None
    p90: datetime | None


def waits(job: Job) -> bool:
    """Whether a start is to be foretold: not of a job that can never start as things stand."""
    return job.deleted_at is None and job.started_at is None and job.phase == JobPhase.PENDING and not is_impossible(job.verdict)


Ask = Callable[[Collection[str]], Mapping[str, Start]]
_ask: Ask | None = None


def use(ask: Ask | None) -> None:
    """Say who answers: for uids of jobs that wait, what is known now, without waiting for it to be worked out."""
    global _ask
    _ask = ask


def likely(jobs: Iterable[Job]) -> Mapping[str, Start]:
    """The likely starts of those jobs that wait, by uid; absent where nothing is known. One query, whoever waits."""
    return _ask([job.uid for job in jobs if waits(job)]) if _ask is not None else {}
