"""What the pages of cron jobs show, and the parts of them that come whole over the live channel."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from cluster import runtime
from jobs import summary
from jobs.choices import job_mark
from jobs.cron.models import CronJob
from jobs.cron.rows import upcoming
from jobs.models import Job
from jobs.pages.queries import EVENT_LIMIT, events_of
from jobs.pages.rendered import in_all_languages, parts_in_all_languages

ROW = "crons/row.html"
PARTS = {"head": "crons/head.html", "times": "crons/times.html", "runs": "crons/runs.html", "events": "crons/events.html"}
RUNS = 50


def decorated(cron: CronJob) -> Any:
    """A cron job with what its row draws."""
    found: Any = cron
    mark = "aborted" if cron.suspended else "running" if cron.active else "inqueue"
    words = {"aborted": _("Suspended"), "running": _("Running"), "inqueue": _("On schedule")}
    times = upcoming(cron, runtime.now(), 1)
    found.mark, found.word = mark, words[mark]
    found.next_at = datetime.fromtimestamp(times[0], UTC) if times else None
    return found


def shown(cron: CronJob) -> dict[str, Any]:
    """All that the page of one cron job shows."""
    runs: list[Any] = list(Job.objects.filter(made_by=cron.uid).order_by("-created_at").defer("manifest")[:RUNS])
    for run in runs:
        run.mark = job_mark(run.phase, run.group_phase)
        run.line = summary.line(run)
    return {
        "cron": decorated(cron),
        "times": [datetime.fromtimestamp(instant, UTC) for instant in upcoming(cron, runtime.now())],
        "runs": runs,
        "limits": cron.manifest.get("spec") or {},
        "events": list(events_of(cron.uid)[:EVENT_LIMIT]),
    }


def rendered_rows(crons: Any) -> dict[str, dict[str, Any]]:
    """Rows of the list by uid, drawn in every language."""
    return {
        cron.uid: {"uid": cron.uid, "html": in_all_languages(ROW, lambda cron=cron: {"cron": decorated(cron)})} for cron in crons
    }


def rendered_parts(cron: CronJob) -> dict[str, dict[str, Any]]:
    """Parts of the page of one cron job, by name, drawn in every language."""
    return parts_in_all_languages(PARTS, lambda: shown(cron))
