"""Pages that ask the copy: ways to a start and one confirmed, another priority, a submission tried, a queue's change."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from cluster import documents, runtime
from cluster.access import policy, seen
from cluster.errors import ApiError, Unavailable
from cluster.said import words
from jobs import operations, reasons
from jobs.models import Job
from jobs.submit import views as submit_views
from portal.outlook import questions
from portal.outlook import shown as foretold
from portal.simulations import estimates
from portal.unblock import drawn, placement, priority, queue_preview, shown
from portal.unblock.answers import Answer
from portal.unblock.copy import current
from portal.unblock.trial import try_job
from queues import operations as queue_operations
from queues.forms import QueueForm
from queues.models import Queue

DRAFT = "changed-copy"
"""In the session: the change of the job that is being copied."""

MOMENT = 0.3
"""Seconds that a page waits for how starts move, before it is shown without."""
STRIPS = 24
"""Nodes that are drawn of those with free GPUs."""


def _job(request: HttpRequest, uid: str) -> Job:
    job = seen(request.user, Job.objects.filter(uid=uid), "jobs.view")
    if job is None:
        raise Http404
    return job


def _may_act(request: HttpRequest, job: Job) -> None:
    if not policy().may(request.user, "jobs.act", job):
        raise PermissionDenied(_("Only its owner and administrators may act on this job."))


@require_safe
def ways(request: HttpRequest, uid: str) -> HttpResponse:
    """What would let a job start: a part of its page, or a page of its own; waits a moment for what is being worked out."""
    job = _job(request, uid)
    name = "portal/unblock.html" if request.headers.get("X-Requested-With") == "fetch" else "portal/unblock_page.html"
    return render(request, name, panel(request.user, job, wait=1.0))


def panel(user: Any, job: Job, wait: float = 0.0) -> dict[str, Any]:
    """What the part shows."""
    try:
        answer = shown.answer_of(user, job, wait)
    except Unavailable:
        answer = Answer("unavailable")
    likely = estimates.of(job)
    return {
        "job": job,
        "answer": answer,
        "row": likely.row,
        "state": likely.state,
        "start": likely.start,
        "usual": foretold.clock(likely.start.p50) if likely.start and likely.start.p50 and not likely.start.is_due else "",
        "ways": shown.rows(user, job, answer),
        "free": [(each, "f" * each.free + "u" * (each.gpus - each.free)) for each in answer.free[:STRIPS]],
        "free_total": sum(each.free for each in answer.free),
        "free_more": max(0, len(answer.free) - STRIPS),
        "position": shown.position(answer, job.queue),
        "seconds": round(answer.age),
        "may_raise": policy().may(user, "jobs.act", job) and job.manifest.get("kind", "Job") == "Job",
    }


@require_http_methods(["GET", "HEAD", "POST"])
def way(request: HttpRequest, uid: str, place: int) -> HttpResponse:
    """Look at one way (GET); do it to the live job (POST), or begin a changed copy."""
    job = _job(request, uid)
    if request.method == "POST":
        return _change(request, job)
    answer = shown.answer_of(request.user, job, 1.0)
    if place >= len(answer.found):
        messages.info(request, _("That way is not there any more; the cluster moved on."))
        return redirect("jobs:detail", uid)
    found, row = answer.found[place], shown.rows(request.user, job, answer)[place]
    if not found.in_place:
        if not policy().may(request.user, "jobs.submit"):
            raise PermissionDenied
        request.session[DRAFT] = {"job": job.uid, "patch": found.patch}
        return redirect(f"{submit_views.address()}?from={job.uid}&changed=1")
    asked = questions.patched([(job.namespace, job.name)], found.patch or {})
    context = {"job": job, "way": row, "patch": json.dumps(found.patch), "rows": drawn.rows(found.places)}
    context |= foretold.part(request.user, asked, MOMENT)
    return render(request, "portal/way.html", context)


def _change(request: HttpRequest, job: Job) -> HttpResponse:
    _may_act(request, job)
    try:
        patch = json.loads(request.POST.get("patch", ""))
        spec = patch["spec"]
    except (ValueError, TypeError, KeyError):
        return HttpResponse(status=400)
    try:
        priority.change(job, {"spec": spec})
    except ApiError as error:
        messages.error(request, words(error.message))
    else:
        messages.success(request, _("%(name)s was changed.") % {"name": job.name})
    return redirect("jobs:detail", job.uid)


@require_http_methods(["GET", "HEAD", "POST"])
def job_priority(request: HttpRequest, uid: str) -> HttpResponse:
    """Another priority: who is delayed by it is shown before it is set."""
    job = _job(request, uid)
    _may_act(request, job)
    name = (request.POST if request.method == "POST" else request.GET).get("class", "")
    context: dict[str, Any] = {"job": job, "name": name, "told": None}
    try:
        with current().pinned() as view:
            context["classes"] = priority.classes(view)
        if request.method == "POST":
            priority.set_class(job, name)
            messages.success(request, _("%(name)s now has priority %(class)s.") % {"name": job.name, "class": name})
            return redirect("jobs:detail", uid)
        if name:
            context["told"] = priority.preview(request.user, job, name)
            context |= foretold.part(request.user, priority.question([(job.namespace, job.name)], name), MOMENT)
    except ApiError as error:
        context["error"] = words(error.message)
        return render(request, "portal/priority.html", context, status=error.status)
    return render(request, "portal/priority.html", context)


@require_POST
def dry_run(request: HttpRequest) -> HttpResponse:
    """The submit page's draft tried on the copy; without script it is a page of its own."""
    if not policy().may(request.user, "jobs.submit"):
        raise PermissionDenied
    context: dict[str, Any] = {"part": request.headers.get("HX-Request") == "true"}
    try:
        text = submit_views.draft_of(request)
        manifest = operations.submit(
            runtime.current(), documents.load(text)[0].obj, owner=request.user.get_username(), dry_run=True
        )  # fmt: skip
        with current().pinned() as view:
            trial = try_job(view, manifest)
            context["seconds"] = round(view.age)
    except ApiError as error:
        context["error"] = words(error.message)
        return render(request, "portal/dry_run.html", context, status=200 if context["part"] else error.status)
    context |= foretold.part(request.user, questions.draft(manifest), 0.0 if context["part"] else foretold.PATIENT)
    names = shown.Names(request.user, {each.victim_job for each in trial.evicted} | set(trial.delayed))
    verdict = trial.verdict.as_dict() if trial.verdict is not None else None
    context |= {
        "trial": trial,
        **placement.of_trial(request.user, manifest, trial),
        "why": reasons.headline(verdict) if verdict and not trial.starts else None,
        "evicted": [
            names.as_json(key) | {"name": names.name(key), "pods": pods}
            for key, pods in Counter(each.victim_job for each in trial.evicted).most_common()
        ],
        "delayed": [names.as_json(key) | {"name": names.name(key)} for key in trial.delayed],
    }
    return render(request, "portal/dry_run.html", context)


@require_POST
def queue_impact(request: HttpRequest, name: str) -> HttpResponse:
    """What the posted change of a queue would do; without script it is a page of its own. Nothing is written."""
    if not policy().may(request.user, "queues.change"):
        raise PermissionDenied
    queue = policy().visible(request.user, Queue.objects.filter(deleted_at=None, name=name)).first()
    if queue is None:
        raise Http404
    if not policy().may(request.user, "queues.change", queue):
        raise PermissionDenied
    form = QueueForm.posted(request.POST, [], name)
    context: dict[str, Any] = {"queue": queue, "part": request.headers.get("HX-Request") == "true"}
    try:
        new = queue_operations.update(runtime.current(), name, form.patch(), dry_run=True)
        found = queue_preview.preview(new)
    except ApiError as error:
        context["error"] = words(error.message)
        context["faults"] = error.fields
        return render(request, "portal/queue_impact.html", context, status=200 if context["part"] else error.status)
    context |= queue_preview.told(request.user, found)
    context |= foretold.part(request.user, questions.queue(new), 0.0 if context["part"] else foretold.PATIENT)
    return render(request, "portal/queue_impact.html", context)
