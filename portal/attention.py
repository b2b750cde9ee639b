"""What needs somebody, most urgent first. Each entry ends in an action."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.access import policy
from cluster.display import duration, number, spaced
from cluster.queries import Fleet
from jobs import reasons
from jobs.choices import JobPhase
from jobs.models import Job
from jobs.rows import JOB_FIELDS
from portal.cockpit import cycles
from portal.cockpit.health import State, health
from portal.figures import WAITING
from portal.models import SchedulerConfiguration
from queues.choices import QueueState
from queues.models import Queue

LIMIT = 8
LONG = timedelta(minutes=10)
RECENT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: what is the matter, a detail, and where to do something about it."""

    mark: str
    title: str
    detail: str
    url: str
    action: str


def entries(user: Any, fleet: Fleet, queues: list[Queue], present: datetime) -> list[Entry]:
    """What is wrong with the scheduler itself, jobs that can never start, broken GPUs, lost nodes, closed queues with waiting
    jobs, fresh failures, then the longest waits.
    """
    jobs = policy().visible(user, Job.objects.all())
    waiting = list(jobs.filter(WAITING, verdict_stage__gt="").only(*JOB_FIELDS).order_by("created_at")[:200])
    fresh = jobs.filter(phase=JobPhase.FAILED, deleted_at=None, finished_at__gt=present - RECENT)
    failed = list(fresh.only(*JOB_FIELDS).order_by("-finished_at")[:3])
    impossible = [job for job in waiting if reasons.is_impossible(job.verdict)]
    long = [job for job in waiting if job not in impossible and present - job.created_at > LONG]
    found = _scheduler(present)
    found += [_impossible(job) for job in impossible[:3]]
    found += _machines(fleet)
    found += [_closed(queue) for queue in queues if queue.state != QueueState.OPEN and queue.groups_pending]
    found += [_failed(job, present) for job in failed]
    found += [_long(job, present) for job in long]
    return found[:LIMIT]


def _scheduler(present: datetime) -> list[Entry]:
    """What is the matter with the scheduler itself: nothing else moves without it."""
    found = []
    how = health(cycles.newest(), present)
    if how.state is State.SILENT and how.age is not None:
        title = _("The scheduler has run no cycle for %(time)s") % {"time": duration(how.age)}
        found.append(Entry("failed", title, _("nothing is placed until it does"), reverse("scheduler"), _("Scheduler")))
    if SchedulerConfiguration.objects.exclude(faults=[]).exists():
        title, url = _("A newer configuration of the scheduler is broken"), reverse("cockpit:configuration")
        found.append(Entry("failed", title, _("the last good one stays in force"), url, _("See why")))
    return found


def _impossible(job: Job) -> Entry:
    statement, _missing = reasons.headline(job.verdict or {}, job.gpu_model)
    url = reverse("jobs:detail", args=(job.uid,))
    return Entry("failed", _("%(job)s can never start") % {"job": job.name}, statement, url, _("Change it"))


def _machines(fleet: Fleet) -> list[Entry]:
    found = []
    for strip in fleet.strips:
        node = strip.node
        broken = [cell.index for cell in strip.cells if cell.state == "unhealthy"]
        url = reverse("cluster:node", args=(node.name,))
        if not node.ready:
            detail = ngettext("%(count)s GPU is out of reach", "%(count)s GPUs are out of reach", node.gpu_count)
            detail = spaced(detail % {"count": number(node.gpu_count)})
            found.append(Entry("unknown", _("%(node)s is not ready") % {"node": node.name}, detail, url, _("Node")))
        elif broken:
            title = ngettext("%(count)s unhealthy GPU", "%(count)s unhealthy GPUs", len(broken)) % {"count": number(len(broken))}
            places = ", ".join(str(index) for index in broken)
            detail = _("%(node)s, index %(places)s") % {"node": node.name, "places": places}
            found.append(Entry("failed", title, detail, url, _("Node")))
    return found


def _closed(queue: Queue) -> Entry:
    count = ngettext("%(count)s job waits in it", "%(count)s jobs wait in it", queue.groups_pending)
    title = _("Queue %(queue)s takes no jobs") % {"queue": queue.name}
    url = reverse("queues:detail", args=(queue.name,))
    return Entry("aborted", title, count % {"count": number(queue.groups_pending)}, url, _("Queue"))


def _failed(job: Job, present: datetime) -> Entry:
    detail = _("%(time)s ago in queue %(queue)s") % {
        "time": duration(present - (job.finished_at or present)),
        "queue": job.queue,
    }
    url = reverse("jobs:detail", args=(job.uid,))
    return Entry("failed", _("%(job)s failed") % {"job": job.name}, detail, url, _("See why"))


def _long(job: Job, present: datetime) -> Entry:
    detail = _("waits %(time)s. %(reason)s") % {
        "time": duration(present - job.created_at),
        "reason": reasons.say(job.verdict, job.gpu_model),
    }
    url = reverse("jobs:detail", args=(job.uid,))
    return Entry("pending", job.name, detail, url, _("What to do"))
