"""The one line that a list says about a job: why it waits, or what is worth knowing about the state that it is in."""

from __future__ import annotations

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from cluster.display import duration, number
from jobs import reasons
from jobs.choices import JobPhase
from jobs.models import Job


def lines(job: Job) -> dict[str, str]:
    """`line` in every language of the portal."""
    said = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            said[code] = line(job)
    return said


def line(job: Job) -> str:
    """One line in the active language; empty when there is nothing to say."""
    if job.verdict and not JobPhase(job.phase).is_final:
        return reasons.say(job.verdict, job.gpu_model)
    if job.trouble and not JobPhase(job.phase).is_final:
        return _trouble(job)
    said = _BY_PHASE.get(job.phase)
    return said(job) if said else ""


def _trouble(job: Job) -> str:
    words = {
        "count": number(job.trouble["pods"]),
        "all": number(job.replicas),
        "reason": job.trouble["reason"],
        "pod": job.trouble["pod"],
    }
    if job.trouble["pods"] == 1:
        return _("%(count)s of %(all)s pods: %(reason)s (%(pod)s)") % words
    return _("%(count)s of %(all)s pods: %(reason)s (%(pod)s and others)") % words


def _running(job: Job) -> str:
    if not job.pending:
        return ""
    return ngettext("%(count)s pod still waits", "%(count)s pods still wait", job.pending) % {"count": number(job.pending)}


def _failed(job: Job) -> str:
    pods = ngettext("%(count)s pod failed", "%(count)s pods failed", job.failed) % {"count": number(job.failed)}
    if not job.retry_count or job.retry_count < job.max_retry:
        return pods if job.failed else ""
    runs = job.retry_count  # the last retry is not run any more: counting it ends the job
    if not job.failed:
        return ngettext("Given up after %(runs)s run", "Given up after %(runs)s runs", runs) % {"runs": number(runs)}
    if runs == 1:
        return _("%(failed)s in its only run") % {"failed": pods}
    return _("%(failed)s in the last of %(runs)s runs") % {"failed": pods, "runs": number(runs)}


def _ran(job: Job) -> str:
    if not job.started_at or not job.finished_at:
        return ""
    return _("Ran %(duration)s") % {"duration": duration(job.finished_at - job.started_at)}


_BY_PHASE = {
    JobPhase.RUNNING: _running,
    JobPhase.FAILED: _failed,
    JobPhase.COMPLETED: _ran,
    JobPhase.RESTARTING: lambda job: (
        _("Retry %(count)s of %(limit)s") % {"count": number(job.retry_count), "limit": number(job.max_retry)}
    ),
    JobPhase.ABORTED: lambda job: _("Suspended; it can be resumed"),
    JobPhase.TERMINATED: lambda job: _("Ended by request"),
}
