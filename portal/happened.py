"""What happened last, newest first: jobs that started and ended, pods that had to give way. Only of jobs that one may see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster import runtime
from cluster.access import policy
from cluster.display import duration, number, spaced
from jobs.choices import job_mark
from jobs.models import Job
from jobs.rows import JOB_FIELDS
from jobs.summary import line
from portal.cockpit.judged import groups
from portal.models import Eviction


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened: to which job (with `uid`), and what, in words."""

    at: datetime
    mark: str
    name: str
    uid: str
    text: str


def newest(user: Any, most: int) -> list[Line]:
    """The last things of all sorts, in three queries."""
    jobs = policy().visible(user, Job.objects.all()).only(*JOB_FIELDS, "deleted_at")
    ended = [_ended(job) for job in jobs.filter(finished_at__isnull=False).order_by("-finished_at")[:most]]
    began = [_began(job) for job in jobs.filter(started_at__isnull=False).order_by("-started_at")[:most]]
    gone = _gone(user, most)
    return sorted([*ended, *began, *gone], key=lambda each: each.at, reverse=True)[:most]


def _ended(job: Job) -> Line:
    assert job.finished_at is not None
    return Line(job.finished_at, job_mark(job.phase, job.group_phase), job.name, job.uid, line(job))


def _began(job: Job) -> Line:
    assert job.started_at is not None
    waited = duration(max(job.started_at - job.created_at, timedelta()))
    return Line(job.started_at, "running", job.name, job.uid, _("started after %(time)s") % {"time": waited})


def _gone(user: Any, most: int) -> list[Line]:
    found = []
    for each in groups(user, list(Eviction.objects.all()[: most * 8]), runtime.now()):
        if each.victim.other:
            continue
        count = ngettext("%(count)s pod had to give way", "%(count)s pods had to give way", each.pods)
        text = spaced(count % {"count": number(each.pods)})
        found.append(Line(each.at, "terminating", each.victim.job or each.victim.pod, each.victim.uid, text))
    return found
