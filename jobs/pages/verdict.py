"""The panel that says why a job waits: its words and numbers, and the panel as it is sent to a page that shows the job."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation

from jobs import reasons
from jobs.models import Job


def panel(job: Job) -> dict[str, Any] | None:
    """What the panel shows; None when the job does not wait."""
    verdict = job.verdict
    if not verdict or job.deleted_at:
        return None
    statement, missing = reasons.headline(verdict, job.gpu_model)
    needed, placeable = int(verdict.get("needed") or 0), int(verdict.get("placeable") or 0)
    return {
        "verdict": verdict,
        "statement": statement,
        "missing": missing,
        "impossible": reasons.is_impossible(verdict),
        "steps": reasons.steps(verdict),
        "numbers": reasons.numbers(verdict, job.gpu_model),
        "rejections": reasons.rejections(verdict),
        "spared": reasons.spared(verdict),
        "rejected": sum((verdict.get("rejected") or {}).values()),
        "advice": reasons.advice(verdict, job.gpu_model),
        "gang": [i < placeable for i in range(needed)] if 1 < needed <= 64 else [],
    }


def html(job: Job) -> dict[str, str]:
    """The panel in every language; empty texts when the job does not wait."""
    found = {}
    for code, _name in settings.LANGUAGES:
        with translation.override(code):
            why = panel(job)
            found[code] = render_to_string("jobs/why.html", {"why": why, "job": job}) if why else ""
    return found
